#include "codegen/kernels/packing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "ir/diagnostics.h"

namespace gcompile {
namespace {

using ir::ElementType;

constexpr std::int64_t kPanel = 16;  // columns

/// Element i of bytes that need not be aligned.
template <class T>
T read(const std::byte* base, std::int64_t i) {
  T value;
  std::memcpy(&value, base + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
void write(std::byte* base, std::int64_t i, T value) {
  std::memcpy(base + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

struct AsFloat {
  using Stored = float;
  Stored operator()(float value) const { return without_denormals(value); }
};
struct AsHalf {
  using Stored = std::uint16_t;
  Stored operator()(float value) const { return ir::float_to_half(value); }
};
struct AsBrainFloat {
  using Stored = std::uint16_t;
  Stored operator()(float value) const { return ir::float_to_bfloat16(value); }
};

std::string text_of(const MatrixView& view) {
  return fmt::format("{} by {}, columns {} by {}, {}taps {}, inner {} by {}", view.matrices, view.matrix_step,
                     view.columns, view.column_step, view.joins_taps ? "joined " : "",
                     fmt::join(view.taps, " "), view.inner, view.inner_step);
}

std::int64_t taps_of(const ir::Shape& weights) {
  std::int64_t taps = 1;
  for (std::size_t axis = 2; axis < weights.size(); ++axis) taps *= weights[axis];
  return taps;
}

std::vector<std::int64_t> all_taps(std::int64_t count) {
  std::vector<std::int64_t> taps(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < taps.size(); ++i) taps[i] = static_cast<std::int64_t>(i);
  return taps;
}

/// One matrix whose rows lie contiguous along the columns. Sixteen rows at a time: as many streams are read
/// in order, and each panel gets a whole kilobyte.
void write_panels_of_rows(const std::byte* from, const MatrixView& view, std::byte* to) {
  constexpr std::int64_t kRows = 16;
  const std::int64_t depth = view.depth();
  for (std::int64_t begin = 0; begin < depth; begin += kRows) {
    const std::int64_t end = std::min(depth, begin + kRows);
    for (std::int64_t n = 0; n < view.columns; n += kPanel) {
      const std::int64_t width = std::min(kPanel, view.columns - n);
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t row =
            view.taps[static_cast<std::size_t>(k / view.inner)] + k % view.inner * view.inner_step;
        const std::int64_t at = (n / kPanel * depth + k) * kPanel;
        for (std::int64_t i = 0; i < width; ++i) {
          write(to, at + i, without_denormals(read<float>(from, row + n + i)));
        }
      }
    }
  }
}

/// One matrix whose columns lie apart: sixteen of them are read side by side.
void write_panels_of_columns(const std::byte* from, const MatrixView& view, std::byte* to) {
  const std::int64_t depth = view.depth();
  for (std::int64_t n = 0; n < view.columns; n += kPanel) {
    const std::int64_t width = std::min(kPanel, view.columns - n);
    const std::int64_t panel = n / kPanel * depth * kPanel;
    for (std::int64_t i = 0; i < view.inner; ++i) {
      for (std::int64_t column = 0; column < width; ++column) {
        const std::int64_t at = (n + column) * view.column_step + i * view.inner_step;
        std::int64_t place = panel + i * kPanel + column;
        for (const std::int64_t tap : view.taps) {
          write(to, place, without_denormals(read<float>(from, at + tap)));
          place += view.inner * kPanel;
        }
      }
    }
  }
}

/// One matrix whose rows lie contiguous along the columns, transposed in tiles: each line of either side is
/// touched once.
template <class Convert>
void write_transposed_rows(const std::byte* from, const MatrixView& view, std::int64_t row_length,
                           std::byte* to) {
  using Stored = typename Convert::Stored;
  constexpr std::int64_t kTile = 16;
  const std::int64_t depth = view.depth();
  Stored tile[kTile][kTile];
  for (std::int64_t n = 0; n < view.columns; n += kTile) {
    const std::int64_t width = std::min(kTile, view.columns - n);
    for (std::int64_t begin = 0; begin < depth; begin += kTile) {
      const std::int64_t height = std::min(kTile, depth - begin);
      for (std::int64_t k = 0; k < height; ++k) {
        const std::int64_t at = view.taps[static_cast<std::size_t>((begin + k) / view.inner)] +
                                (begin + k) % view.inner * view.inner_step + n;
        for (std::int64_t i = 0; i < width; ++i) tile[i][k] = Convert()(read<float>(from, at + i));
      }
      for (std::int64_t i = 0; i < width; ++i) {
        std::memcpy(to + ((n + i) * row_length + begin) * static_cast<std::int64_t>(sizeof(Stored)), tile[i],
                    static_cast<std::size_t>(height) * sizeof(Stored));
      }
    }
  }
}

template <class Convert>
void write_rows(const std::byte* from, const MatrixView& view, std::int64_t row_length, std::byte* to) {
  for (std::int64_t n = 0; n < view.columns; ++n) {
    std::int64_t place = n * row_length;
    for (const std::int64_t tap : view.taps) {
      const std::int64_t at = n * view.column_step + tap;
      for (std::int64_t i = 0; i < view.inner; ++i) {
        write(to, place++, Convert()(read<float>(from, at + i * view.inner_step)));
      }
    }
  }
}

template <class Convert>
Packing rows_of(const ir::Tensor& weights, const MatrixView& view, std::int64_t row_length,
                std::int64_t rows) {
  const std::int64_t matrix_bytes =
      rows * row_length * static_cast<std::int64_t>(sizeof(typename Convert::Stored));
  Packing packing;
  packing.source = weights;
  packing.bytes = view.matrices * matrix_bytes;
  packing.write = [view, row_length, matrix_bytes](const ir::Tensor& source, std::span<std::byte> out) {
    for (std::int64_t m = 0; m < view.matrices; ++m) {
      const std::byte* from = source.bytes().data() + m * view.matrix_step * 4;
      std::byte* to = out.data() + m * matrix_bytes;
      if (view.column_step == 1 && view.inner_step != 1) {
        write_transposed_rows<Convert>(from, view, row_length, to);
      } else {
        write_rows<Convert>(from, view, row_length, to);
      }
    }
  };
  return packing;
}

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
    std::fill(low.begin(), low.end(), 255);
    std::fill(high.begin(), high.end(), -128);
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
                          std::byte* to) {
  constexpr std::int64_t kGroup = sizeof(Stored) == 1 ? 4 : 2;
  const std::int64_t tap_depth = view.joins_taps ? view.inner : (view.inner + kGroup - 1) / kGroup * kGroup;
  for (std::int64_t n = 0; n < view.columns; n += kPanel) {
    const std::int64_t width = std::min(kPanel, view.columns - n);
    std::int64_t k = 0;
    for (const std::int64_t tap : view.taps) {
      for (std::int64_t i = 0; i < view.inner; ++i) {
        const std::int64_t at = tap + i * view.inner_step + n * view.column_step;
        const std::int64_t place = (k + i) / kGroup * kPanel * kGroup + (k + i) % kGroup;
        for (std::int64_t column = 0; column < width; ++column) {
          const std::int64_t w = read<Weight>(from, at + column * view.column_step) - zero[n + column];
          write(to, place + column * kGroup, static_cast<Stored>(w));
        }
      }
      k += tap_depth;
    }
    to += words_of(view, kGroup) * kPanel * kGroup * static_cast<std::int64_t>(sizeof(Stored));
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
  GC_CHECK(element == ElementType::kInt8 || element == ElementType::kUInt8);
  if (element == ElementType::kInt8) {
    narrow ? f(std::int8_t{}, std::int8_t{}) : f(std::int8_t{}, std::int16_t{});
  } else {
    narrow ? f(std::uint8_t{}, std::int8_t{}) : f(std::uint8_t{}, std::int16_t{});
  }
}

std::vector<std::int64_t> for_all_columns(const std::vector<std::int64_t>& zero_points,
                                          const MatrixView& view) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(view.matrices * view.columns));
  for (std::size_t n = 0; n < all.size(); ++n) all[n] = zero_of(zero_points, static_cast<std::int64_t>(n));
  return all;
}

}  // namespace

float without_denormals(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const bool is_denormal = (bits & 0x7f800000u) == 0 && (bits & 0x007fffffu) != 0;
  return is_denormal ? 0.0f : value;
}

MatrixView product_matrices(const ir::Shape& b) {
  MatrixView view;
  view.inner = b[b.size() - 2];
  view.columns = view.inner_step = b.back();
  view.matrix_step = view.inner * view.columns;
  view.matrices = ir::element_count(b) / std::max<std::int64_t>(1, view.matrix_step);
  return view;
}

MatrixView conv_matrices(const ir::Shape& weights, std::int64_t groups) {
  MatrixView view;
  const std::int64_t taps = taps_of(weights);
  view.matrices = groups;
  view.columns = weights[0] / groups;
  view.column_step = weights[1] * taps;
  view.matrix_step = view.columns * view.column_step;
  view.taps = all_taps(taps);
  view.inner = weights[1];
  view.inner_step = taps;
  return view;
}

MatrixView conv_transpose_matrices(const ir::Shape& weights, std::int64_t groups) {
  MatrixView view;
  const std::int64_t taps = taps_of(weights);
  view.matrices = groups;
  view.columns = weights[1];
  view.column_step = taps;
  view.taps = all_taps(taps);
  view.inner = weights[0] / groups;
  view.inner_step = weights[1] * taps;
  view.matrix_step = view.inner * view.inner_step;
  return view;
}

MatrixView depthwise_rows(const ir::Shape& weights) {
  MatrixView view;
  view.columns = taps_of(weights);
  view.inner = weights[0];
  view.inner_step = view.columns;
  return view;
}

Packing pack_panels(const ir::Tensor& weights, const MatrixView& view) {
  GC_CHECK(weights.element() == ElementType::kFloat32);
  const std::int64_t matrix_bytes = (view.columns + kPanel - 1) / kPanel * kPanel * view.depth() * 4;
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("panels {}", text_of(view));
  packing.bytes = view.matrices * matrix_bytes;
  packing.write = [view, matrix_bytes](const ir::Tensor& source, std::span<std::byte> out) {
    for (std::int64_t m = 0; m < view.matrices; ++m) {
      const std::byte* from = source.bytes().data() + m * view.matrix_step * 4;
      std::byte* to = out.data() + m * matrix_bytes;
      view.column_step == 1 ? write_panels_of_rows(from, view, to) : write_panels_of_columns(from, view, to);
    }
  };
  return packing;
}

Packing pack_rows(const ir::Tensor& weights, const MatrixView& view, std::int64_t row_length,
                  ElementType stored, std::int64_t rows) {
  GC_CHECK(weights.element() == ElementType::kFloat32 && row_length >= view.depth());
  GC_CHECK(stored == ElementType::kFloat32 || stored == ElementType::kFloat16 ||
           stored == ElementType::kBFloat16);
  rows = std::max(rows, view.columns);
  Packing packing = stored == ElementType::kFloat32 ? rows_of<AsFloat>(weights, view, row_length, rows)
                    : stored == ElementType::kFloat16
                        ? rows_of<AsHalf>(weights, view, row_length, rows)
                        : rows_of<AsBrainFloat>(weights, view, row_length, rows);
  packing.format = fmt::format("{} {} rows of {}, {}", rows, name_of(stored), row_length, text_of(view));
  return packing;
}

Packing pack_together(std::vector<Packing> parts) {
  GC_CHECK(!parts.empty());
  Packing together;
  together.source = parts[0].source;
  for (const Packing& part : parts) {
    together.bytes += part.bytes;
    together.format += part.format + "; ";
  }
  const auto shared = std::make_shared<const std::vector<Packing>>(std::move(parts));
  together.write = [shared](const ir::Tensor& source, std::span<std::byte> out) {
    for (const Packing& part : *shared) {
      part.write(source, out.first(static_cast<std::size_t>(part.bytes)));
      out = out.subspan(static_cast<std::size_t>(part.bytes));
    }
  };
  return together;
}

Packing pack_as_is(const ir::Tensor& tensor) {
  Packing packing;
  packing.source = tensor;
  packing.format = "as it is";
  packing.bytes = tensor.type().bytes();
  packing.write = [](const ir::Tensor& source, std::span<std::byte> out) {
    const std::byte* from = source.bytes().data();
    if (source.element() != ElementType::kFloat32) {
      std::copy(from, from + out.size(), out.begin());
      return;
    }
    for (std::int64_t i = 0; i < source.count(); ++i) {
      write(out.data(), i, without_denormals(read<float>(from, i)));
    }
  };
  return packing;
}

IntegerFacts integer_facts(const ir::Tensor& weights, const MatrixView& view,
                           const std::vector<std::int64_t>& zero_points) {
  IntegerFacts facts;
  with_types(weights.element(), true, [&](auto weight, auto) {
    facts = facts_of_weights<decltype(weight)>(weights, view, zero_points);
  });
  return facts;
}

Packing pack_integer_panels(const ir::Tensor& weights, const MatrixView& view,
                            const std::vector<std::int64_t>& zero_points, bool narrow) {
  const std::int64_t group = narrow ? 4 : 2;
  const std::int64_t matrix_bytes = (view.columns + kPanel - 1) / kPanel * kPanel * words_of(view, group) * 4;
  Packing packing;
  packing.source = weights;
  packing.format =
      fmt::format("int{} panels {}, less {}", narrow ? 8 : 16, text_of(view), fmt::join(zero_points, " "));
  packing.bytes = view.matrices * matrix_bytes;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const std::vector<std::int64_t> zero = for_all_columns(zero_points, view);
    with_types(source.element(), narrow, [&](auto weight, auto stored) {
      for (std::int64_t m = 0; m < view.matrices; ++m) {
        write_integer_panels<decltype(weight), decltype(stored)>(source.bytes().data() + m * view.matrix_step,
                                                                 view, zero.data() + m * view.columns,
                                                                 out.data() + m * matrix_bytes);
      }
    });
  };
  return packing;
}

std::vector<std::uint8_t> wide_words(const ir::Tensor& weights, const MatrixView& view,
                                     const std::vector<std::int64_t>& zero_points) {
  constexpr std::int64_t kWordBytes = 4 * kPanel;
  const std::vector<std::int64_t> zero = for_all_columns(zero_points, view);
  const auto factor = [](std::byte b) { return std::to_integer<int>(b) << 24 >> 24; };
  const auto of_one_sign = [](int a, int b) {
    return std::max(std::max(a, 0) + std::max(b, 0), std::max(-a, 0) + std::max(-b, 0));
  };
  std::vector<std::byte> panel(static_cast<std::size_t>(words_of(view, 4) * kWordBytes));
  std::vector<std::uint8_t> flags;
  MatrixView part = view;
  for (std::int64_t m = 0; m < view.matrices; ++m) {
    for (std::int64_t n = 0; n < view.columns; n += kPanel) {
      part.columns = std::min(kPanel, view.columns - n);
      std::fill(panel.begin(), panel.end(), std::byte{0});
      with_types(weights.element(), true, [&](auto weight, auto stored) {
        write_integer_panels<decltype(weight), decltype(stored)>(
            weights.bytes().data() + m * view.matrix_step + n * view.column_step, part,
            zero.data() + m * view.columns + n, panel.data());
      });
      const std::size_t first = flags.size();
      for (auto word = panel.begin(); word != panel.end(); word += kWordBytes) {
        int largest = 0;
        for (std::int64_t i = 0; i < kWordBytes; i += 2) {
          largest = std::max(largest, of_one_sign(factor(word[i]), factor(word[i + 1])));
        }
        flags.push_back(largest > 128);
      }
      for (std::size_t i = first; i < flags.size(); ++i) {
        for (std::size_t j = i + 1; j < std::min(i + 4, flags.size()); ++j) flags[i] |= flags[j];
      }
    }
  }
  return flags;
}

Packing pack_integer_rows(const ir::Tensor& weights, const MatrixView& view,
                          const std::vector<std::int64_t>& zero_points, bool narrow,
                          std::int64_t row_length) {
  GC_CHECK(row_length >= view.depth());
  const std::int64_t matrix_bytes = view.columns * row_length * (narrow ? 1 : 2);
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("int{} rows of {}, {}, less {}", narrow ? 8 : 16, row_length, text_of(view),
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
                               const std::vector<std::int64_t>& zero_points) {
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("int16 taps {}, less {}", text_of(view), fmt::join(zero_points, " "));
  packing.bytes = view.columns * view.inner * 2;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    with_types(source.element(), false, [&](auto weight, auto stored) {
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
