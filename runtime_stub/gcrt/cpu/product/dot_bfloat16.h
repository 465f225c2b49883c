// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Products of float32 by those of bfloat16 in the tile unit (isa/tiles.h), for the drivers of gemm.h and
// conv.h: a policy, and what sums a task of up to 128 rows and four panels of columns.
//
// A factor is a sum of parts, each the nearest bfloat16 to what those before it leave: three hold all of its
// 24 bits, two hold 16. Of the products of parts the largest are formed, and added in float32: the first, or
// three of them, or six, which is as exact as fused multiply-adds.
//
// Weights lie as floats, for all levels. Both sides become parts in the work item's memory, a block of k
// after the other: A of two parts of the rows, B of all panels. Runs follow each other in k without gaps, so
// that they fill registers however short they are, and the order of an element's sum follows from the depth.
//
// Infinities, NaN and numbers that would round to infinity are no sums of parts, nor, of three parts, are
// numbers whose last part would be denormal, which the unit takes for zero. A row or a panel with such a
// factor is zeros in the parts of its block, and is multiplied as floats; nothing else is, so that an
// element's bits do not depend on what is computed with it.
#pragma once

#include "gcrt/cpu/product/dot_tiles.h"

namespace GCRT_NAMESPACE {

#if GCRT_HAS_TILES

// A product of parts `a` and `b`, 0 the largest. Of two that follow each other one part is the same, and
// stays in its registers.
struct PartProduct {
  int a, b;
};
template <int Products>
struct PartProducts;
template <>
struct PartProducts<1> {
  static constexpr int kParts = 1;
  static constexpr PartProduct kTerms[] = {{0, 0}};
};
template <>
struct PartProducts<3> {
  static constexpr int kParts = 2;
  static constexpr PartProduct kTerms[] = {{0, 1}, {0, 0}, {1, 0}};
};
template <>
struct PartProducts<6> {
  static constexpr int kParts = 3;
  static constexpr PartProduct kTerms[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}, {2, 0}};
};

constexpr int kFloatPanels = 4;  // of a task

// What a work item has of the tile unit, and the parts of a block: words of two values of k.
template <int Products>
struct PartTiles : ShapedTiles {
  static constexpr int kParts = PartProducts<Products>::kParts;
  static constexpr int kSteps = kBlockSteps / kParts;
  using Rows = std::uint32_t[kTileRows][kTileWords];
  using Panel = std::uint32_t[kTileWords][kPanelColumns];
  alignas(64) Rows a[kSteps][kParts][2];
  alignas(64) Panel b[kFloatPanels][kSteps][kParts];
};

template <class Dot>
class TiledFloatSum;

template <int Products>
struct TiledFloatDot : FmaDot<float> {
  using Unit = PartTiles<Products>;
  using TaskSum = TiledFloatSum<TiledFloatDot>;
  static constexpr bool kInTiles = true;
  static constexpr int kRows = 8 * kTileRows;
  static constexpr int kItemRows = 2 * kTileRows;
  static constexpr int kVectors = kFloatPanels;
  // All taps are summed, so that every element has the same order.
  static constexpr bool kSkipsBorder = false;
  static constexpr std::ptrdiff_t kEdgeChannels = 0;
  static constexpr std::ptrdiff_t kGatheredDepth = 0;
  static constexpr int kPrefetches = 0;
  static constexpr int kMaxTaps = 16;
  static constexpr int kGemvVectors = 0;
  static constexpr int next_rows(std::ptrdiff_t remaining) {
    return static_cast<int>(ceil_div(remaining, ceil_div(remaining, kRows)));
  }
};

// The nearest bfloat16, to even, in the upper half of a float.
template <class V>
GCRT_INLINE V nearest_part(V value) {
  const auto bits = bit_cast<std::uint32_t>(value);
  return bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

// Words of the parts of values of even and of odd k, `stride` words from part to part. The upper bit of a
// result is set where a value is no sum of them.
template <int Parts, class V>
GCRT_INLINE Rebind<V, std::uint32_t> split_words(V even, V odd, std::uint32_t* to, std::ptrdiff_t stride) {
  using U = Rebind<V, std::uint32_t>;
  const auto excess = [](V value) GCRT_LAMBDA_INLINE {
    constexpr std::uint32_t kRoundsToInfinity = 0x7f7f8000u, kLeast = (127u - 103u) << 23;
    const U magnitude = bit_cast<std::uint32_t>(value) & 0x7fffffffu;
    U out = magnitude + (0x80000000u - kRoundsToInfinity);
    if constexpr (Parts == 3) out |= (magnitude - kLeast) & (0u - magnitude);  // below it, and not zero
    return out;
  };
  const U outside = excess(even) | excess(odd);
  GCRT_UNROLL
  for (int part = 0; part < Parts; ++part) {
    const V first = nearest_part(even), second = nearest_part(odd);
    const U words = (bit_cast<std::uint32_t>(first) >> 16) | bit_cast<std::uint32_t>(second);
    store(Lanes<kLanesOf<V>>{}, to + part * stride, words);
    even -= first;
    odd -= second;
  }
  return outside;
}

template <class V>
GCRT_INLINE bool any_upper_bit(V value) {
  if constexpr (kLanesOf<V> == 1) {
    return (value & 0x80000000u) != 0;
  } else {
    return any_upper_bit(low_half(value) | high_half(value));
  }
}

// Loads what changes from one product to the next.
template <int I, int Parts, int Panels, class Tiles, class Terms>
GCRT_INLINE void multiply_terms(Tiles& tiles, int panel, int step, const Terms& terms) {
  if constexpr (I < static_cast<int>(sizeof(terms.kTerms) / sizeof(PartProduct))) {
    constexpr PartProduct kTerm = Terms::kTerms[I], kBefore = Terms::kTerms[I > 0 ? I - 1 : 0];
    TileUnit& unit = tiles.unit;
    if constexpr (I == 0 || kTerm.b != kBefore.b) {
      unit.template load<6>(tiles.b[panel][step][kTerm.b], kTileRowBytes);
      if constexpr (Panels == 2) unit.template load<7>(tiles.b[panel + 1][step][kTerm.b], kTileRowBytes);
    }
    if constexpr (I == 0 || kTerm.a != kBefore.a) {
      unit.template load<4>(tiles.a[step][kTerm.a][0], kTileRowBytes);
      if constexpr (Parts == 2) unit.template load<5>(tiles.a[step][kTerm.a][1], kTileRowBytes);
    }
    unit.template multiply_add_bfloat16<0, 4, 6>();
    if constexpr (Panels == 2) unit.template multiply_add_bfloat16<1, 4, 7>();
    if constexpr (Parts == 2) unit.template multiply_add_bfloat16<2, 5, 6>();
    if constexpr (Parts * Panels == 4) unit.template multiply_add_bfloat16<3, 5, 7>();
    multiply_terms<I + 1, Parts, Panels>(tiles, panel, step, terms);
  }
}

// Steps of a block. From `from0` and `from1`, `from_stride` bytes from row to row, to the sums.
template <int Parts, int Panels, int Products>
GCRT_NOINLINE void multiply_block(PartTiles<Products>& tiles, int panel, int steps, const float* from0,
                                  const float* from1, std::ptrdiff_t from_stride, float* sums0, float* sums1,
                                  std::ptrdiff_t stride) {
  load_sums<Parts, Panels>(tiles.unit, from0, from1, from_stride);
  for (int step = 0; step < steps; ++step)
    multiply_terms<0, Parts, Panels>(tiles, panel, step, PartProducts<Products>{});
  store_sums<Parts, Panels>(tiles.unit, sums0, sums1, stride);
}

// One task, which it is handed as a register tile of `rows` by `columns`.
template <class Dot>
class TiledFloatSum : public TaskParts<Dot> {
 public:
  using Tiles = typename Dot::Unit;

  TiledFloatSum(Tiles& tiles, const TileTask<Dot>& task, int rows, int columns)
      : TaskParts<Dot>(task, rows, columns),
        tiles_(tiles),
        depth_(task.run_count * task.run_words),
        steps_(larger(1, ceil_div(depth_, kStepDepth))),
        step_words_(static_cast<int>(larger(1, ceil_div(ceil_div(depth_, 2), steps_)))) {}

  void sum() {
    tiles_.shape(height_, step_words_);
    const std::ptrdiff_t most = ceil_div(steps_, ceil_div(steps_, kSteps));
    for (std::ptrdiff_t step = 0; step < steps_; step += most) {
      begin_block(step, smaller(most, steps_ - step));
      for (int panel = 0; panel < panels_; ++panel) split_panel(panel);
      for (int part = 0; part < parts_; part += 2) sum_parts(part, step == 0 && !task_.resume);
    }
  }

 private:
  using TaskParts<Dot>::task_;
  using TaskParts<Dot>::panels_;
  using TaskParts<Dot>::parts_;
  using TaskParts<Dot>::height_;
  using TaskParts<Dot>::first_row;
  using TaskParts<Dot>::sums_of;
  using V = Pack<float, kPanelColumns>;
  using U = Pack<std::uint32_t, kPanelColumns>;
  static constexpr Lanes<kPanelColumns> kLane{};
  static constexpr int kParts = Tiles::kParts, kSteps = Tiles::kSteps, kStepDepth = 2 * kTileWords;
  static_assert(kTileWords == kPanelColumns, "a vector is a row of either side");

  // Values of k that lie together.
  struct Piece {
    std::ptrdiff_t run, from;  // and where in it they begin
    int to, count;             // where in the step, and how many
  };
  struct Step {
    Piece pieces[kStepDepth];
    int count;        // of pieces
    int depth;        // values of k
    bool is_one_row;  // of a register, as it lies
  };

  void begin_block(std::ptrdiff_t first, std::ptrdiff_t count) {
    block_steps_ = static_cast<int>(count);
    std::ptrdiff_t k = first * 2 * step_words_;
    for (int i = 0; i < block_steps_; ++i) {
      Step& step = block_[i];
      step.count = 0;
      step.depth = static_cast<int>(smaller(2 * step_words_, depth_ - k));
      std::ptrdiff_t run = step.depth > 0 ? k / task_.run_words : 0, from = k - run * task_.run_words;
      for (int to = 0; to < step.depth;) {
        const int length = static_cast<int>(smaller(step.depth - to, task_.run_words - from));
        step.pieces[step.count++] = {run++, from, to, length};
        from = 0;
        to += length;
      }
      step.is_one_row = step.count == 1 && step.depth == kStepDepth;
      k += step.depth;
    }
  }

  // The first value of a piece in a row, and in a panel.
  const float* left(int row, const Piece& piece) const {
    const float* const from = task_.rows == nullptr ? task_.base + row * task_.row_stride
                                                    : task_.rows[piece.run * task_.rows_step + row];
    return from + task_.runs[piece.run].a_offset + piece.from;
  }
  const float* right(int panel, const Piece& piece) const {
    return task_.b + panel * task_.panel_stride + task_.runs[piece.run].b_offset + piece.from * kPanelColumns;
  }

  void split_panel(int panel) {
    U outside{};
    for (int i = 0; i < block_steps_; ++i) {
      const Step& step = block_[i];
      const float* rows[kStepDepth];
      for (const Piece* piece = step.pieces; piece != step.pieces + step.count; ++piece) {
        for (int k = 0; k < piece->count; ++k) rows[piece->to + k] = right(panel, *piece) + k * kPanelColumns;
      }
      const auto values = [&](int k)
                              GCRT_LAMBDA_INLINE { return k < step.depth ? load(kLane, rows[k]) : V{}; };
      for (int word = 0; word < step_words_; ++word) {
        outside |= split_words<kParts>(values(2 * word), values(2 * word + 1), tiles_.b[panel][i][0][word],
                                       kTileWords * kPanelColumns);
      }
    }
    panel_outside_[panel] = any_upper_bit(outside);
    if (panel_outside_[panel]) __builtin_memset(tiles_.b[panel], 0, sizeof(tiles_.b[panel]));
  }

  // Row `row` of the task as row `to` of part `half` of two.
  void split_row(int row, int half, int to) {
    U outside{};
    for (int i = 0; i < block_steps_; ++i) {
      const Step& step = block_[i];
      float copied[kStepDepth] = {};
      const float* from = copied;
      if (step.is_one_row) {
        from = left(row, step.pieces[0]);
      } else {
        for (const Piece* piece = step.pieces; piece != step.pieces + step.count; ++piece)
          copy_values(left(row, *piece), piece->count, copied + piece->to);
      }
      const V low = load(kLane, from), high = load(kLane, from + kPanelColumns);
      outside |=
          split_words<kParts>(every_other<0>(low, high, std::make_integer_sequence<int, kPanelColumns>{}),
                              every_other<1>(low, high, std::make_integer_sequence<int, kPanelColumns>{}),
                              tiles_.a[i][0][half][to], 2 * kTileRows * kTileWords);
    }
    row_outside_[half][to] = any_upper_bit(outside);
    if (!row_outside_[half][to]) return;
    for (int i = 0; i < block_steps_; ++i) {
      for (int part = 0; part < kParts; ++part) store(kLane, tiles_.a[i][part][half][to], U{});
    }
  }
  template <int First, int... I>
  static GCRT_INLINE V every_other(V low, V high, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(low, high, (First + 2 * I)...);
  }
  static GCRT_INLINE void copy_values(const float* from, int count, float* to) {
    constexpr Lanes<4> lane{};
    int k = 0;
    for (; k + 4 <= count; k += 4) store(lane, to + k, load(lane, from + k));
    for (; k < count; ++k) to[k] = from[k];
  }

  // Adds a block to the sums of parts `part` and, if there is one, the next.
  void sum_parts(int part, bool begins) {
    static constexpr float kZeros[2 * kPanelColumns] = {};
    const int halves = part + 1 < parts_ ? 2 : 1;
    for (int half = 0; half < halves; ++half) {
      for (int row = 0; row < height_; ++row) split_row(first_row(part + half) + row, half, row);
    }
    const std::ptrdiff_t stride = this->columns() * static_cast<std::ptrdiff_t>(sizeof(float));
    for (int panel = 0; panel < panels_; panel += 2) {
      float* const sums0 = sums_of(part) + panel * kPanelColumns;
      float* const sums1 = sums_of(part + halves - 1) + panel * kPanelColumns;
      with_registers(halves == 2, panel + 1 < panels_, [&](auto parts, auto panels) {
        multiply_block<decltype(parts)::value, decltype(panels)::value>(
            tiles_, panel, block_steps_, begins ? kZeros : sums0, begins ? kZeros : sums1,
            begins ? 0 : stride, sums0, sums1, stride);
      });
    }
    for (int half = 0; half < halves; ++half) {
      for (int row = 0; row < height_; ++row) {
        for (int panel = 0; panel < panels_; ++panel) {
          if (row_outside_[half][row] || panel_outside_[panel]) add_as_floats(part + half, row, panel);
        }
      }
    }
  }
  void add_as_floats(int part, int row, int panel) const {
    float* const sums = sums_of(part) + row * this->columns() + panel * kPanelColumns;
    V sum = load(kLane, sums);
    for (const Step* step = block_; step != block_ + block_steps_; ++step) {
      for (const Piece* piece = step->pieces; piece != step->pieces + step->count; ++piece) {
        const float* const a = left(first_row(part) + row, *piece);
        const float* const b = right(panel, *piece);
        for (int k = 0; k < piece->count; ++k)
          sum = fma(splat(kLane, a[k]), load(kLane, b + k * kPanelColumns), sum);
      }
    }
    store(kLane, sums, sum);
  }

  Tiles& tiles_;
  std::ptrdiff_t depth_, steps_;
  int step_words_;
  Step block_[kSteps];
  int block_steps_ = 0;
  bool panel_outside_[kFloatPanels];
  bool row_outside_[2][kTileRows];
};

template <int Products>
struct Bfloat16Tile {
  template <class T>
  using Dot = std::enable_if_t<std::is_same<T, float>::value, TiledFloatDot<Products>>;
};

#endif

// What multiplies floats, each by so many products of bfloat16 where there is a tile unit, else in `Tile`.
#if GCRT_HAS_TILES
template <int Products, class Tile>
using InBfloat16 = Bfloat16Tile<Products>;
#else
template <int Products, class Tile>
using InBfloat16 = Tile;
#endif

}  // namespace GCRT_NAMESPACE
