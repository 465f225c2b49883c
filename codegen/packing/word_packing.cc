#include "codegen/packing/word_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/diagnostics.h"

namespace gcompile {
namespace {

constexpr std::int64_t kPanel = 32;  // columns

std::int64_t padded(std::int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

/// One row of words, of `Bits` bits each, made of the rows [begin, end) of the weights.
template <int Bits>
void write_words(const std::int8_t* rows, std::int64_t count, std::int64_t columns, std::int64_t panel_words,
                 std::uint32_t* to) {
  constexpr std::uint32_t kLowest = 1u << (Bits - 1), kMask = (1u << Bits) - 1;
  for (std::int64_t n = 0; n < columns; n += kPanel) {
    std::uint32_t words[kPanel] = {};
    const std::int64_t width = std::min(kPanel, columns - n);
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int8_t* row = rows + k * columns + n;
      for (std::int64_t i = 0; i < width; ++i) {
        words[i] |= ((static_cast<std::uint32_t>(row[i]) + kLowest) & kMask) << (k * Bits);
      }
    }
    std::memcpy(to + n / kPanel * panel_words, words, static_cast<std::size_t>(width) * sizeof words[0]);
  }
}

}  // namespace

Packing pack_words(const ir::Tensor& weights, int bits) {
  GC_CHECK(weights.element() == ir::ElementType::kInt8 && weights.type().rank() == 2);
  GC_CHECK(bits == 4 || bits == 8);
  const std::int64_t depth = weights.shape()[0], columns = weights.shape()[1], in_word = 32 / bits;
  const std::int64_t words = (depth + in_word - 1) / in_word;
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("words of {} bits, {} by {}", bits, depth, columns);
  packing.bytes = padded(columns) * words * 4;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const auto* from = reinterpret_cast<const std::int8_t*>(source.bytes().data());
    auto* to = reinterpret_cast<std::uint32_t*>(out.data());
    for (std::int64_t w = 0; w < words; ++w) {
      const std::int64_t begin = w * in_word, count = std::min(in_word, depth - begin);
      const auto write = bits == 4 ? write_words<4> : write_words<8>;
      write(from + begin * columns, count, columns, words * kPanel, to + w * kPanel);
    }
  };
  return packing;
}

Packing pack_wide_panels(const ir::Tensor& weights) {
  const bool is_byte = weights.element() == ir::ElementType::kInt8;
  GC_CHECK((is_byte || weights.element() == ir::ElementType::kFloat32) && weights.type().rank() == 2);
  const std::int64_t depth = weights.shape()[0], columns = weights.shape()[1], size = is_byte ? 1 : 4;
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("panels of {} columns, {} by {}", kPanel, depth, columns);
  packing.bytes = padded(columns) * depth * size;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const std::byte* from = source.bytes().data();
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t n = 0; n < columns; ++n, from += size) {
        std::byte* to = out.data() + ((n / kPanel * depth + k) * kPanel + n % kPanel) * size;
        if (is_byte) {
          *to = *from;
        } else {
          float value;
          std::memcpy(&value, from, sizeof value);
          value = without_denormals(value);
          std::memcpy(to, &value, sizeof value);
        }
      }
    }
  };
  return packing;
}

}  // namespace gcompile
