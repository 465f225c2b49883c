#include "passes/rules/integer_parts.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace gcompile::passes {
namespace {

/// More cost as much as they save.
constexpr std::int64_t kMostParts = 8;
/// Parts begin at whole vectors of channels.
constexpr std::int64_t kPartChannels = 16;

/// The greatest and the least sum of one column: of each product whichever end of the range makes it so.
struct Extremes {
  std::int64_t greatest = 0, least = 0;
  void add(std::int64_t weight, const FactorRange& range) {
    greatest += weight * (weight > 0 ? range.high : range.low);
    least += weight * (weight > 0 ? range.low : range.high);
  }
  bool fit() const { return greatest < kMostOfShortSum && -least < kMostOfShortSum; }
};

}  // namespace

std::int64_t channels_of_exact_sums(const ir::Tensor& weights, std::span<const std::int64_t> zeros,
                                    const WeightAxes& axes, const FactorRange& range) {
  const auto fit = [&](std::int64_t part) {
    for (std::int64_t n = 0; n < axes.columns; ++n) {
      const std::int64_t zero =
          zeros.empty() ? 0 : zeros[zeros.size() == 1 ? 0 : static_cast<std::size_t>(n)];
      for (std::int64_t begin = 0; begin < axes.channels; begin += part) {
        Extremes sum;
        for (std::int64_t c = begin; c < std::min(axes.channels, begin + part); ++c) {
          const std::int64_t first = n * axes.column_step + c * axes.channel_step;
          for (std::int64_t t = 0; t < axes.taps; ++t) sum.add(weights.int_at(first + t) - zero, range);
        }
        if (!sum.fit()) return false;
      }
    }
    return true;
  };
  std::int64_t last = 0;
  for (std::int64_t parts = 1; parts <= kMostParts && axes.channels > 0; ++parts) {
    const std::int64_t even = (axes.channels + parts - 1) / parts;
    const std::int64_t part =
        parts == 1 ? axes.channels : (even + kPartChannels - 1) / kPartChannels * kPartChannels;
    if (part == last) continue;
    if (fit(part)) return part;
    last = part;
  }
  return 0;
}

ir::Tensor part_along(const ir::Tensor& tensor, int axis, std::int64_t begin, std::int64_t end) {
  ir::TensorType type = tensor.type();
  const auto at = static_cast<std::size_t>(axis);
  std::int64_t lines = 1, bytes = ir::bits_of(type.element) / 8;
  for (std::size_t i = 0; i < type.shape.size(); ++i)
    (i < at ? lines : bytes) *= i == at ? ir::Dim(1) : type.shape[i];
  const std::int64_t line = type.shape[at] * bytes, part = (end - begin) * bytes;
  type.shape[at] = end - begin;
  ir::Tensor out(std::move(type));
  for (std::int64_t i = 0; i < lines; ++i) {
    std::memcpy(out.mutable_bytes().data() + i * part, tensor.bytes().data() + i * line + begin * bytes,
                static_cast<std::size_t>(part));
  }
  return out;
}

}  // namespace gcompile::passes
