#pragma once
// Packing of integer weights (DESIGN law 5): as int8 in groups of four depths when every (weight - zero
// point) fits, else as int16 in groups of two; both accumulate exactly in int32.

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/kernels/call_writer.h"

namespace gcompile {

struct IntegerWeights {
  bool narrow = true;               // int8, else int16
  std::vector<std::uint8_t> bytes;  // cpp: panels of 16 columns; cuda: rows of one output channel each
  /// -x_zero_point * sum over k of the column: what the kernel starts from. For signed x and narrow weights
  /// the zero point is taken 128 higher, since the kernel reads x + 128.
  std::vector<std::int32_t> offsets;

  void add(int weight) {
    bytes.push_back(static_cast<std::uint8_t>(weight & 255));
    if (!narrow) bytes.push_back(static_cast<std::uint8_t>((weight >> 8) & 255));
  }
  void add_offset(std::int64_t x_zero_point, std::int64_t sum) {
    offsets.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(-x_zero_point * sum)));
  }
};

/// `at(tap, k, n)` is weight - zero point; `depth` rows for each of `taps`, padded to the group for each tap.
bool fits_int8(std::int64_t taps, std::int64_t depth, std::int64_t columns,
               const std::function<int(std::int64_t, std::int64_t, std::int64_t)>& at);
void append_packed(IntegerWeights& weights, std::int64_t taps, std::int64_t depth, std::int64_t columns,
                   std::int64_t x_zero_point,
                   const std::function<int(std::int64_t, std::int64_t, std::int64_t)>& at);

/// int16 weights in the order [taps][channels], of both targets; `at(channel, tap)`.
IntegerWeights depthwise_weights(std::int64_t taps, std::int64_t channels, std::int64_t x_zero_point,
                                 const std::function<int(std::int64_t, std::int64_t)>& at);

struct ZeroPoints {
  std::int64_t x = 0;
  std::vector<std::int64_t> w;  // one, or one per output channel
  std::int64_t of_column(std::int64_t n) const { return w[w.size() == 1 ? 0 : static_cast<std::size_t>(n)]; }
};

/// Operands 2 and 3 of an integer product, which are constants where they are given, that of x one.
ZeroPoints zero_points(const CallWriter& writer);
/// What the kernels of the CPU subtract from x, where they read signed x as x + 128 to multiply it by int8
/// weights.
std::int64_t read_zero_point(std::int64_t zero_point, ir::ElementType x, bool narrow);

/// Rows of one output channel each, `stride` elements apart, k contiguous.
IntegerWeights integer_rows(std::int64_t rows, std::int64_t depth, std::int64_t stride,
                            std::int64_t x_zero_point,
                            const std::function<int(std::int64_t row, std::int64_t k)>& at);

/// Adds the packed weights of operand 1 as `parameter`, and "offsets", which `offsets` describes.
void integer_parameters(CallWriter& writer, const IntegerWeights& packed, const std::string& kernel,
                        const std::string& parameter, const std::string& offsets);

}  // namespace gcompile
