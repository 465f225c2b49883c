#include "codegen/packing/packing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/diagnostics.h"
#include "codegen/packing/packing_bytes.h"

namespace gcompile {
namespace {

using ir::ElementType;

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

/// An element of panels: floats without denormals, all others as they are.
template <class T>
T panel_element(const std::byte* from, std::int64_t at) {
  if constexpr (std::is_same_v<T, float>) return without_denormals(read<float>(from, at));
  return read<T>(from, at);
}

/// One matrix whose rows lie contiguous along the columns. Sixteen rows at a time: as many streams are read
/// in order, and each panel gets a whole kilobyte.
template <class T>
void write_panels_of_rows(const std::byte* from, const MatrixView& view, std::byte* to) {
  constexpr std::int64_t kRows = 16;
  const std::int64_t depth = view.depth();
  for (std::int64_t begin = 0; begin < depth; begin += kRows) {
    const std::int64_t end = std::min(depth, begin + kRows);
    for (std::int64_t n = 0; n < view.columns; n += kPanelColumns) {
      const std::int64_t width = std::min(kPanelColumns, view.columns - n);
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t row =
            view.taps[static_cast<std::size_t>(k / view.inner)] + k % view.inner * view.inner_step;
        const std::int64_t at = (n / kPanelColumns * depth + k) * kPanelColumns;
        for (std::int64_t i = 0; i < width; ++i) {
          write(to, at + i, panel_element<T>(from, row + n + i));
        }
      }
    }
  }
}

/// One matrix whose columns lie apart: sixteen of them are read side by side.
template <class T>
void write_panels_of_columns(const std::byte* from, const MatrixView& view, std::byte* to) {
  const std::int64_t depth = view.depth();
  for (std::int64_t n = 0; n < view.columns; n += kPanelColumns) {
    const std::int64_t width = std::min(kPanelColumns, view.columns - n);
    const std::int64_t panel = n / kPanelColumns * depth * kPanelColumns;
    for (std::int64_t i = 0; i < view.inner; ++i) {
      for (std::int64_t column = 0; column < width; ++column) {
        const std::int64_t at = (n + column) * view.column_step + i * view.inner_step;
        std::int64_t place = panel + i * kPanelColumns + column;
        for (const std::int64_t tap : view.taps) {
          write(to, place, panel_element<T>(from, at + tap));
          place += view.inner * kPanelColumns;
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

template <class T>
Packing panels_of(const ir::Tensor& weights, const MatrixView& view) {
  constexpr std::int64_t kBytes = sizeof(T);
  const std::int64_t matrix_bytes =
      (view.columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns * view.depth() * kBytes;
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("panels {}", to_string(view));
  packing.bytes = view.matrices * matrix_bytes;
  packing.write = [view, matrix_bytes](const ir::Tensor& source, std::span<std::byte> out) {
    for (std::int64_t m = 0; m < view.matrices; ++m) {
      const std::byte* from = source.bytes().data() + m * view.matrix_step * kBytes;
      std::byte* to = out.data() + m * matrix_bytes;
      view.column_step == 1 ? write_panels_of_rows<T>(from, view, to)
                            : write_panels_of_columns<T>(from, view, to);
    }
  };
  return packing;
}

}  // namespace

std::string to_string(const MatrixView& view) {
  return fmt::format("{} by {}, columns {} by {}, {}taps {}, inner {} by {}", view.matrices, view.matrix_step,
                     view.columns, view.column_step, view.joins_taps ? "joined " : "",
                     fmt::join(view.taps, " "), view.inner, view.inner_step);
}

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
  switch (weights.element()) {
    case ElementType::kFloat32:
      return panels_of<float>(weights, view);
    case ElementType::kInt32:
    case ElementType::kUInt32:
      return panels_of<std::uint32_t>(weights, view);
    default:
      GC_CHECK(ir::bits_of(weights.element()) == 64);
      return panels_of<std::uint64_t>(weights, view);
  }
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
  packing.format = fmt::format("{} {} rows of {}, {}", rows, name_of(stored), row_length, to_string(view));
  return packing;
}

Packing round_to_tf32(Packing packing) {
  packing.format += ", rounded to TF32";
  packing.write = [write = std::move(packing.write)](const ir::Tensor& source, std::span<std::byte> out) {
    write(source, out);
    for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &out[at], sizeof(bits));
      const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
      bits = is_nan ? bits | 0x00400000u : (bits + 0x1000u) & 0xffffe000u;
      std::memcpy(&out[at], &bits, sizeof(bits));
    }
  };
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

}  // namespace gcompile
