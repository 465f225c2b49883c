#pragma once
// Packing of integer weights (DESIGN law 5): as int8 when every (weight - zero point) fits, in groups of four
// depths, or of two beside elements of 16 bits; else as int16 in groups of two.
// All accumulate exactly in int32.

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/calls/call_writer.h"
#include "codegen/packing/integer_packing.h"

namespace gcompile {

struct IntegerWeights {
  bool narrow = true;  // int8, else int16
  Packing packing;     // cpp: panels of 16 columns; cuda: rows of one output channel each
  /// -x_zero_point * sum over k of the column: what the kernel starts from. Narrow panels beside bytes have two
  /// sets (gcrt/cpu/product/dot_int8.h): for bytes of x read as unsigned ones, then for those read as signed.
  std::vector<std::int32_t> offsets;
  std::optional<SplitTable> split = {};  // of narrow panels, where few enough words are split to be worth it

  void add_offsets(std::int64_t x_zero_point, const std::vector<std::int64_t>& sums) {
    for (const std::int64_t sum : sums) {
      offsets.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(-x_zero_point * sum)));
    }
  }
  /// Adds the offsets of panels that multiply elements of type `x`: the sets that dot_int8.h asks for.
  void add_panel_offsets(std::int64_t x_zero_point, const std::vector<std::int64_t>& sums,
                         ir::ElementType x) {
    const bool is_signed = x == ir::ElementType::kInt8;
    if (x == ir::ElementType::kUInt16) return add_offsets(x_zero_point - 32768, sums);
    if (!narrow || ir::bits_of(x) == 16) return add_offsets(x_zero_point, sums);
    add_offsets(x_zero_point + (is_signed ? 128 : 0), sums);
    add_offsets(x_zero_point - (is_signed ? 0 : 128), sums);
  }
};

struct ZeroPoints {
  std::int64_t x = 0;
  std::vector<std::int64_t> w;  // one, or one per output channel
  std::int64_t of_column(std::int64_t n) const { return w[w.size() == 1 ? 0 : static_cast<std::size_t>(n)]; }
};

/// Operands 2 and 3 of an integer product, which are constants where they are given, that of x one.
ZeroPoints zero_points(const CallWriter& writer);
/// int16 weights in the order [taps][channels], of both targets, that multiply elements of type `x`.
IntegerWeights depthwise_weights(const ir::Tensor& weights, const ZeroPoints& zero, ir::ElementType x);
/// Panels of the kernels of the CPU, which multiply elements of type `x`.
IntegerWeights integer_panels(const ir::Tensor& weights, const MatrixView& view, const ZeroPoints& zero,
                              ir::ElementType x);
/// Rows of one output channel each, `stride` elements apart, k contiguous.
IntegerWeights integer_rows(const ir::Tensor& weights, const MatrixView& view, const ZeroPoints& zero,
                            std::int64_t stride);

/// Adds the table "split" of panels; what a call names it by, which is "nullptr" where there is none.
std::string split_parameter(CallWriter& writer, const IntegerWeights& packed);
/// Adds "offsets", one set, behind which a panel of 16 columns may be read to its end.
void column_offsets(CallWriter& writer, const ir::Tensor& weights, const MatrixView& view,
                    const ZeroPoints& zero);
/// Adds "border": what a convolution reads outside its image, for `channels` of one pixel and the vector that
/// they end in.
void border_row(CallWriter& writer, const ir::Problem& problem, std::int64_t channels,
                const ZeroPoints& zero);
/// Adds the packed weights of operand 1 as `parameter`, and "offsets", which `offsets` describes.
void integer_parameters(CallWriter& writer, const IntegerWeights& packed, const std::string& kernel,
                        const std::string& parameter, const std::string& offsets);

// Families for cores without vectors (gcrt/cpu/product/scalar_int8.h): rows of whole words, no offsets, and prices
// behind those of the families for vectors wherever there are any.

/// Bytes of 8 bits by constant weights of 8 bits.
Refusal refuse_unless_bytes_by_constants(const ir::Problem& problem);
/// The time of that many multiply-adds, which reach `efficiency` of what a core without vectors can do, and of
/// `tiles` of two by two sums.
std::int64_t scalar_picoseconds(const ir::Problem& problem, const Machine& machine, double efficiency,
                                std::int64_t tiles);
/// The weights of a matrix in rows of whole words of four depths, as parameter `w`.
void scalar_weights(CallWriter& writer, const MatrixView& view);
/// The weights of a depthwise convolution, [taps][channels], as parameter `w`.
void scalar_taps(CallWriter& writer);
/// "std::int8_t{-128}": the zero point of operand 0.
std::string zero_of_left(const ir::Problem& problem, const CallWriter& writer);

}  // namespace gcompile
