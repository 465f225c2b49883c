#include "codegen/kernels/integer_weights.h"

#include <fmt/format.h>

namespace gcompile {

bool fits_int8(std::int64_t taps, std::int64_t depth, std::int64_t columns,
               const std::function<int(std::int64_t, std::int64_t, std::int64_t)>& at) {
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t n = 0; n < columns; ++n) {
        const int w = at(tap, k, n);
        if (w < -128 || w > 127) return false;
      }
    }
  }
  return true;
}

void append_packed(IntegerWeights& weights, std::int64_t taps, std::int64_t depth, std::int64_t columns,
                   std::int64_t x_zero_point,
                   const std::function<int(std::int64_t, std::int64_t, std::int64_t)>& at) {
  const std::int64_t group = weights.narrow ? 4 : 2;
  const std::int64_t groups = (depth + group - 1) / group;
  for (std::int64_t panel = 0; panel < columns; panel += 16) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t g = 0; g < groups; ++g) {
        for (std::int64_t n = panel; n < panel + 16; ++n) {
          for (std::int64_t k = g * group; k < (g + 1) * group; ++k) {
            const int w = n < columns && k < depth ? at(tap, k, n) : 0;
            weights.add(w);
          }
        }
      }
    }
  }
  for (std::int64_t n = 0; n < columns; ++n) {
    std::int64_t sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t k = 0; k < depth; ++k) sum += at(tap, k, n);
    }
    weights.add_offset(x_zero_point, sum);
  }
}

IntegerWeights depthwise_weights(std::int64_t taps, std::int64_t channels, std::int64_t x_zero_point,
                                 const std::function<int(std::int64_t, std::int64_t)>& at) {
  IntegerWeights out;
  out.narrow = false;
  std::vector<std::int64_t> sums(static_cast<std::size_t>(channels), 0);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const int w = at(c, tap);
      out.add(w);
      sums[static_cast<std::size_t>(c)] += w;
    }
  }
  for (const std::int64_t sum : sums) out.add_offset(x_zero_point, sum);
  return out;
}

ZeroPoints zero_points(const CallWriter& writer) {
  ZeroPoints zero;
  zero.w = {0};
  if (writer.has_operand(2)) zero.x = writer.constant(2)->int_at(0);
  if (writer.has_operand(3)) zero.w = writer.constant(3)->ints();
  return zero;
}

std::int64_t read_zero_point(std::int64_t zero_point, ir::ElementType x, bool narrow) {
  return zero_point + (narrow && x == ir::ElementType::kInt8 ? 128 : 0);
}

IntegerWeights integer_rows(std::int64_t rows, std::int64_t depth, std::int64_t stride,
                            std::int64_t x_zero_point,
                            const std::function<int(std::int64_t row, std::int64_t k)>& at) {
  IntegerWeights out;
  out.narrow =
      fits_int8(1, depth, rows, [&](std::int64_t, std::int64_t k, std::int64_t row) { return at(row, k); });
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < stride; ++k) {
      const int w = k < depth ? at(row, k) : 0;
      sum += w;
      out.add(w);
    }
    out.add_offset(x_zero_point, sum);
  }
  return out;
}

namespace {

/// Little-endian.
std::vector<std::uint8_t> as_bytes(const std::vector<std::int32_t>& values) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(4 * values.size());
  for (const std::int32_t v : values) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(v) >> shift & 255u));
    }
  }
  return bytes;
}

}  // namespace

void integer_parameters(CallWriter& writer, const IntegerWeights& packed, const std::string& kernel,
                        const std::string& parameter, const std::string& offsets) {
  const std::string what = fmt::format("{} packed for {}", to_string(writer.type(1)), kernel);
  writer.weights(writer.blob().add(packed.bytes, writer.name(1), what), parameter,
                 packed.narrow ? "std::int8_t" : "std::int16_t");
  writer.weights(writer.blob().add(as_bytes(packed.offsets), writer.name(1), offsets), "offsets",
                 "std::int32_t");
}

}  // namespace gcompile
