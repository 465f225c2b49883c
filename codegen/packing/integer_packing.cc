#include "codegen/packing/integer_packing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/diagnostics.h"
#include "codegen/packing/packing_bytes.h"

namespace gcompile {

using ir::ElementType;

namespace {

/// The zero point of one column; `zero_points` has one for all, or one for each.
std::int64_t zero_of(const std::vector<std::int64_t>& zero_points, std::int64_t column) {
  return zero_points[zero_points.size() == 1 ? 0 : static_cast<std::size_t>(column)];
}

template <class Weight>
IntegerFacts facts_of_weights(const ir::Tensor& weights, const MatrixView& view,
                              const std::vector<std::int64_t>& zero_points) {
  IntegerFacts facts;
  const auto columns = static_cast<std::size_t>(view.columns);
  facts.sums.resize(static_cast<std::size_t>(view.matrices) * columns);
  std::vector<std::int32_t> low(columns), high(columns);
  for (std::int64_t m = 0; m < view.matrices; ++m) {
    const std::byte* from = weights.bytes().data() + m * view.matrix_step;
    std::int64_t* sums = facts.sums.data() + m * view.columns;
    std::fill(low.begin(), low.end(), std::numeric_limits<std::int32_t>::max());
    std::fill(high.begin(), high.end(), std::numeric_limits<std::int32_t>::lowest());
    const auto take = [&](std::int64_t at, std::int64_t n) {
      const std::int32_t w = read<Weight>(from, at);
      const auto column = static_cast<std::size_t>(n);
      sums[n] += w;
      low[column] = std::min(low[column], w);
      high[column] = std::max(high[column], w);
    };
    for (const std::int64_t tap : view.taps) {
      if (view.column_step == 1) {
        for (std::int64_t i = 0; i < view.inner; ++i) {
          for (std::int64_t n = 0; n < view.columns; ++n) take(tap + i * view.inner_step + n, n);
        }
      } else {
        for (std::int64_t n = 0; n < view.columns; ++n) {
          for (std::int64_t i = 0; i < view.inner; ++i) {
            take(tap + i * view.inner_step + n * view.column_step, n);
          }
        }
      }
    }
    for (std::int64_t n = 0; n < view.columns && view.depth() > 0; ++n) {
      const std::int64_t zero = zero_of(zero_points, m * view.columns + n);
      const auto column = static_cast<std::size_t>(n);
      sums[n] -= zero * view.depth();
      facts.narrow = facts.narrow && low[column] - zero >= -128 && high[column] - zero <= 127;
    }
  }
  return facts;
}

/// Words of a column, of `group` values each.
std::int64_t words_of(const MatrixView& view, std::int64_t group) {
  const auto taps = static_cast<std::int64_t>(view.taps.size());
  const auto words = [=](std::int64_t values) { return (values + group - 1) / group; };
  return view.joins_taps ? words(taps * view.inner) : taps * words(view.inner);
}

template <class Weight, class Stored>
void write_integer_panels(const std::byte* from, const MatrixView& view, const std::int64_t* zero,
                          std::int64_t group, std::byte* to) {
  const std::int64_t tap_depth = view.joins_taps ? view.inner : (view.inner + group - 1) / group * group;
  for (std::int64_t n = 0; n < view.columns; n += kPanelColumns) {
    const std::int64_t width = std::min(kPanelColumns, view.columns - n);
    std::int64_t k = 0;
    for (const std::int64_t tap : view.taps) {
      for (std::int64_t i = 0; i < view.inner; ++i) {
        const std::int64_t at = tap + i * view.inner_step + n * view.column_step;
        const std::int64_t place = (k + i) / group * kPanelColumns * group + (k + i) % group;
        for (std::int64_t column = 0; column < width; ++column) {
          const std::int64_t w = read<Weight>(from, at + column * view.column_step) - zero[n + column];
          write(to, place + column * group, static_cast<Stored>(w));
        }
      }
      k += tap_depth;
    }
    to += words_of(view, group) * kPanelColumns * group * static_cast<std::int64_t>(sizeof(Stored));
  }
}

template <class Weight, class Stored>
void write_integer_rows(const std::byte* from, const MatrixView& view, const std::int64_t* zero,
                        std::int64_t row_length, std::byte* to) {
  constexpr std::int64_t kBlock = 16;  // columns written side by side, so that rows are read in order
  for (std::int64_t begin = 0; begin < view.columns; begin += kBlock) {
    const std::int64_t end = std::min(view.columns, begin + kBlock);
    std::int64_t k = 0;
    for (const std::int64_t tap : view.taps) {
      for (std::int64_t i = 0; i < view.inner; ++i, ++k) {
        const std::int64_t at = tap + i * view.inner_step;
        for (std::int64_t n = begin; n < end; ++n) {
          const std::int64_t w = read<Weight>(from, at + n * view.column_step) - zero[n];
          write(to, n * row_length + k, static_cast<Stored>(w));
        }
      }
    }
  }
}

/// Calls `f` with values of the types in which the weights lie and in which they are stored.
template <class F>
void with_types(ElementType element, bool narrow, F f) {
  const auto with_weight = [&](auto weight) {
    narrow ? f(weight, std::int8_t{}) : f(weight, std::int16_t{});
  };
  switch (element) {
    case ElementType::kInt8:
      return with_weight(std::int8_t{});
    case ElementType::kUInt8:
      return with_weight(std::uint8_t{});
    case ElementType::kInt16:
      return with_weight(std::int16_t{});
    default:
      GC_CHECK(element == ElementType::kUInt16);
      return with_weight(std::uint16_t{});
  }
}

std::vector<std::int64_t> for_all_columns(const std::vector<std::int64_t>& zero_points,
                                          const MatrixView& view) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(view.matrices * view.columns));
  for (std::size_t n = 0; n < all.size(); ++n) all[n] = zero_of(zero_points, static_cast<std::int64_t>(n));
  return all;
}

constexpr std::int64_t kWordBytes = 4 * kPanelColumns;  // of a word of all columns

int factor_at(const std::byte* word, std::int64_t i) { return std::to_integer<int>(word[i]) << 24 >> 24; }

/// Whether a pair of products with its factors may leave int16. Without branches: which weights lie together
/// nothing can predict.
bool is_too_wide(const std::byte* word) {
  int widest = 0;
  for (std::int64_t i = 0; i < kWordBytes; i += 2) {
    const int a = factor_at(word, i), b = factor_at(word, i + 1);
    const int up = std::max(a, 0) + std::max(b, 0), down = std::min(a, 0) + std::min(b, 0);
    widest = std::max(widest, std::max(up, -down));
  }
  return widest > 128;
}

}  // namespace

IntegerFacts integer_facts(const ir::Tensor& weights, const MatrixView& view,
                           const std::vector<std::int64_t>& zero_points) {
  IntegerFacts facts;
  with_types(weights.element(), true, [&](auto weight, auto) {
    facts = facts_of_weights<decltype(weight)>(weights, view, zero_points);
  });
  return facts;
}

Packing pack_integer_panels(const ir::Tensor& weights, const MatrixView& view,
                            const std::vector<std::int64_t>& zero_points, bool narrow, bool splits,
                            bool widened) {
  GC_CHECK(!splits || (narrow && !widened));
  const std::int64_t group = narrow && !widened ? 4 : 2;
  const std::int64_t columns = (view.columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  const std::int64_t matrix_bytes = columns * words_of(view, group) * group * (narrow ? 1 : 2);
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("int{} panels {}{}, less {}", narrow ? 8 : 16,
                               splits              ? "split "
                               : narrow && widened ? "in pairs "
                                                   : "",
                               to_string(view), fmt::join(zero_points, " "));
  packing.bytes = view.matrices * matrix_bytes;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const std::vector<std::int64_t> zero = for_all_columns(zero_points, view);
    with_types(source.element(), narrow, [&](auto weight, auto stored) {
      for (std::int64_t m = 0; m < view.matrices; ++m) {
        write_integer_panels<decltype(weight), decltype(stored)>(source.bytes().data() + m * view.matrix_step,
                                                                 view, zero.data() + m * view.columns, group,
                                                                 out.data() + m * matrix_bytes);
      }
    });
    if (!splits) return;
    for (std::byte* word = out.data(); word != out.data() + out.size(); word += kWordBytes) {
      if (!is_too_wide(word)) continue;
      for (std::int64_t i = 0; i < kWordBytes; ++i) word[i] = static_cast<std::byte>(factor_at(word, i) / 2);
    }
  };
  return packing;
}

SplitTable split_words(const ir::Tensor& weights, const MatrixView& view,
                       const std::vector<std::int64_t>& zero_points) {
  const std::vector<std::int64_t> zero = for_all_columns(zero_points, view);
  std::vector<std::byte> panel(static_cast<std::size_t>(words_of(view, 4) * kWordBytes));
  SplitTable table;
  table.starts.push_back(0);
  MatrixView part = view;
  for (std::int64_t m = 0; m < view.matrices; ++m) {
    for (std::int64_t n = 0; n < view.columns; n += kPanelColumns) {
      part.columns = std::min(kPanelColumns, view.columns - n);
      std::fill(panel.begin(), panel.end(), std::byte{0});
      with_types(weights.element(), true, [&](auto weight, auto stored) {
        write_integer_panels<decltype(weight), decltype(stored)>(
            weights.bytes().data() + m * view.matrix_step + n * view.column_step, part,
            zero.data() + m * view.columns + n, 4, panel.data());
      });
      for (std::int64_t word = 0; word < words_of(view, 4); ++word) {
        const std::byte* const bytes = panel.data() + word * kWordBytes;
        if (!is_too_wide(bytes)) {
          ++table.whole;
          continue;
        }
        table.words.push_back(static_cast<std::int32_t>(word));
        for (std::int64_t i = 0; i < kWordBytes; ++i) {
          table.rests.push_back(static_cast<std::int8_t>(factor_at(bytes, i) - factor_at(bytes, i) / 2));
        }
      }
      table.starts.push_back(static_cast<std::int32_t>(table.words.size()));
    }
  }
  return table;
}

Packing pack_integer_rows(const ir::Tensor& weights, const MatrixView& view,
                          const std::vector<std::int64_t>& zero_points, bool narrow,
                          std::int64_t row_length) {
  GC_CHECK(row_length >= view.depth());
  const std::int64_t matrix_bytes = view.columns * row_length * (narrow ? 1 : 2);
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("int{} rows of {}, {}, less {}", narrow ? 8 : 16, row_length, to_string(view),
                               fmt::join(zero_points, " "));
  packing.bytes = view.matrices * matrix_bytes;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const std::vector<std::int64_t> zero = for_all_columns(zero_points, view);
    with_types(source.element(), narrow, [&](auto weight, auto stored) {
      for (std::int64_t m = 0; m < view.matrices; ++m) {
        write_integer_rows<decltype(weight), decltype(stored)>(source.bytes().data() + m * view.matrix_step,
                                                               view, zero.data() + m * view.columns,
                                                               row_length, out.data() + m * matrix_bytes);
      }
    });
  };
  return packing;
}

Packing pack_integer_depthwise(const ir::Tensor& weights, const MatrixView& view,
                               const std::vector<std::int64_t>& zero_points, bool narrow) {
  Packing packing;
  packing.source = weights;
  packing.format =
      fmt::format("int{} taps {}, less {}", narrow ? 8 : 16, to_string(view), fmt::join(zero_points, " "));
  packing.bytes = view.columns * view.inner * (narrow ? 1 : 2);
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    with_types(source.element(), narrow, [&](auto weight, auto stored) {
      std::int64_t place = 0;
      for (std::int64_t tap = 0; tap < view.columns; ++tap) {
        for (std::int64_t channel = 0; channel < view.inner; ++channel) {
          const std::int64_t w =
              read<decltype(weight)>(source.bytes().data(), channel * view.inner_step + tap);
          write(out.data(), place++, static_cast<decltype(stored)>(w - zero_of(zero_points, channel)));
        }
      }
    });
  };
  return packing;
}

}  // namespace gcompile
