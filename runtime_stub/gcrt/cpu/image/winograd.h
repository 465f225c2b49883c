// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolution of 3x3 windows by minimal filtering: Winograd's F(T x T, 3 x 3), T = 2 or 4, channels last, for
// stride and dilation 1 and one group. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2016).
//
//   Y = A' [ (G w G') * (B' d B) ] A      d: (T + 2) x (T + 2) inputs, Y: T x T outputs of one channel
//
// The product * is taken element by element, so that over all channels it is one matrix product for each of
// the (T + 2)^2 positions: rows are tiles of T x T output pixels. F(4 x 4) multiplies 36 times for 16 pixels,
// where the window itself has 144 products; F(2 x 2) multiplies 16 times for 4.
//
// Written over a policy Form, which tells what depends on the element types:
//
//   kOutputs            T
//   Input, Value, Sum   elements of the image, of both factors of the products, and of their sums
//   Dot                 how Values are multiplied (dot.h)
//   kInputLanes         Values of one machine vector
//   read(lane, x)       a pack of Values, of inputs
//   input(d, v)         B' on packs of Values: one row or column of a tile
//   output(m, y)        A' on packs of Sums
//   result(lane, y, n)  what the epilogue gets of outputs of the channels from n on
//
// FloatForm is that of float32; winograd_int8.h has that of integers.
//
// Beside float64 the error of floats, over the rms of the outputs, has an rms of 2e-6 and a maximum of 1.2e-5
// for T = 4, of 6e-7 and 4e-6 for T = 2, with up to 512 channels of activations and weights of mean zero. An
// infinity or NaN among the inputs reaches all outputs of its tiles.
#pragma once

#include "gcrt/cpu/image/winograd_plan.h"
#include "gcrt/cpu/product/gemm.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// B' and A' of floats. Points, and G: winograd_plan.h.
template <int T>
struct WinogradFloats;

template <>
struct WinogradFloats<2> {
  template <class V>
  static GCRT_INLINE void input(const V* d, V* v) {
    v[0] = d[0] - d[2];
    v[1] = d[2] + d[1];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  template <class V>
  static GCRT_INLINE void output(const V* m, V* y) {
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = (m[1] - m[2]) + m[3];
  }
};

template <>
struct WinogradFloats<4> {
  static constexpr float kA = static_cast<float>(kWinogradA);
  static constexpr float kB = static_cast<float>(kWinogradB);
  // x + factor * y
  template <class V>
  static GCRT_INLINE V plus(V x, float factor, V y) {
    return fma(y, splat_like<V>(factor), x);
  }
  template <class V>
  static GCRT_INLINE void input(const V* d, V* v) {
    const V even_a = plus(d[4], -2.0f, d[2]);
    const V even_b = plus(d[4], -0.5f, d[2]);
    const V odd_a = plus(d[3], -2.0f, d[1]);
    const V odd_b = plus(d[3], -0.5f, d[1]);
    v[0] = plus(d[0] + d[4], -2.5f, d[2]);
    v[1] = plus(even_a, kA, odd_a);
    v[2] = plus(even_a, -kA, odd_a);
    v[3] = plus(even_b, kB, odd_b);
    v[4] = plus(even_b, -kB, odd_b);
    v[5] = plus(d[1] + d[5], -2.5f, d[3]);
  }
  template <class V>
  static GCRT_INLINE void output(const V* m, V* y) {
    const V even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const V even_b = m[3] + m[4], odd_b = m[3] - m[4];
    const V odd = plus(odd_a, 2.0f, odd_b);
    y[0] = m[0] + (even_a + even_b);
    y[1] = odd * splat_like<V>(kA);
    y[2] = plus(even_b + even_b, 0.5f, even_a);
    y[3] = plus(m[5], 0.5f * kA, plus(odd_a, 8.0f, odd_b));
  }
};

// Weights are cold and rows few: two tiles of rows fetch all of the next columns.
using WinogradTileOfFloats =
    TileOfLevel<RegisterTile<4, 2>, RegisterTile<8, 2>, RegisterTile<6, 2, 2>, RegisterTile<8, 2, 4>>;

template <int T>
struct FloatForm : WinogradFloats<T> {
  static constexpr int kOutputs = T;
  using Input = float;
  using Value = float;
  using Sum = float;
  using Dot = FmaDot<float, WinogradTileOfFloats>;
  static constexpr int kInputLanes = kLanes;
  template <class L>
  static GCRT_INLINE Pack<float, L::value> read(L lane, const float* x) {
    return load(lane, x);
  }
  template <class L, class V>
  GCRT_INLINE V result(L, V y, std::ptrdiff_t) const {
    return y;
  }
};

// One convolution.
template <class Form>
struct Winograd {
  using Input = typename Form::Input;
  using Value = typename Form::Value;
  static constexpr int kPositions = winograd_positions(Form::kOutputs);
  static constexpr int kWord = Form::Dot::kWordDepth;
  static_assert(sizeof(Value) * kWord == 4 && sizeof(typename Form::Sum) == 4, "words of 32 bits");

  const ConvShape& shape;
  const WinogradPlan& plan;
  const Input* x;
  const Value* w;           // G w G' as winograd_plan.h lays it out
  const Input* border_row;  // in_c times what lies outside the image
  Form form;

  std::ptrdiff_t words() const { return shape.in_c / kWord; }
  // From one position to the next, and of all of them: transformed inputs of a block, sums of a work item.
  std::ptrdiff_t input_stride() const { return winograd_stride(plan.block, words()) * kWord; }
  std::ptrdiff_t input_block() const { return kPositions * input_stride(); }
  std::ptrdiff_t sums_stride() const { return winograd_stride(plan.block, kWinogradColumns); }
};

// The first pixel of a tile.
struct WinogradTile {
  int image, row, column;
};
template <int T>
GCRT_INLINE WinogradTile winograd_tile(const ConvShape& s, std::ptrdiff_t tile) {
  const std::ptrdiff_t width = ceil_div(s.out_w, T), height = ceil_div(s.out_h, T);
  const std::ptrdiff_t line = tile / width, image = line / height;
  return {static_cast<int>(image), static_cast<int>(line - image * height) * T,
          static_cast<int>(tile - line * width) * T};
}

// B' d B for all channels of a tile, L of them at a time or fewer; the last ones may be computed twice.
// `pixels`: of its inputs, row by row; `v`: its row of position 0.
template <class Form, int L = Form::kInputLanes>
GCRT_NOINLINE void winograd_input(const typename Form::Input* const* pixels, std::ptrdiff_t channels,
                                  typename Form::Value* v, std::ptrdiff_t stride) {
  constexpr int S = Form::kOutputs + 2, kNarrow = Form::kInputLanes > 1 ? Form::kInputLanes / 2 : 1;
  if (channels < L) return winograd_input<Form, (L > kNarrow ? kNarrow : 1)>(pixels, channels, v, stride);
  using V = Pack<typename Form::Value, L>;
  constexpr Lanes<L> lane{};
  for (std::ptrdiff_t begin = 0; begin < channels; begin += L) {
    const std::ptrdiff_t c = smaller(begin, channels - L);
    V columns[S][S];
    GCRT_UNROLL
    for (int j = 0; j < S; ++j) {
      V d[S], transformed[S];
      GCRT_UNROLL
      for (int i = 0; i < S; ++i) d[i] = Form::read(lane, pixels[i * S + j] + c);
      Form::input(d, transformed);
      GCRT_UNROLL
      for (int i = 0; i < S; ++i) columns[i][j] = transformed[i];
    }
    GCRT_UNROLL
    for (int i = 0; i < S; ++i) {
      V transformed[S];
      Form::input(columns[i], transformed);
      GCRT_UNROLL
      for (int j = 0; j < S; ++j) store(lane, v + (i * S + j) * stride + c, transformed[j]);
    }
  }
}

// A' m A for `columns` of a tile from channel n on: y[T][T][kWinogradColumns]. `sums`: its row of position 0.
template <class Form>
GCRT_NOINLINE void winograd_output(const Form& form, const typename Form::Sum* sums, std::ptrdiff_t stride,
                                   std::ptrdiff_t columns, std::ptrdiff_t n, typename Form::Sum* y) {
  constexpr int T = Form::kOutputs, S = T + 2;
  constexpr Lanes<kLanes> lane{};
  for (std::ptrdiff_t c = 0; c < columns; c += kLanes) {
    using V = Pack<typename Form::Sum, kLanes>;
    V half[T][S];
    GCRT_UNROLL
    for (int j = 0; j < S; ++j) {
      V m[S], transformed[T];
      GCRT_UNROLL
      for (int i = 0; i < S; ++i) m[i] = load(lane, sums + (i * S + j) * stride + c);
      Form::output(m, transformed);
      GCRT_UNROLL
      for (int i = 0; i < T; ++i) half[i][j] = transformed[i];
    }
    GCRT_UNROLL
    for (int i = 0; i < T; ++i) {
      V transformed[T];
      Form::output(half[i], transformed);
      GCRT_UNROLL
      for (int j = 0; j < T; ++j) {
        store(lane, y + (i * T + j) * kWinogradColumns + c, form.result(lane, transformed[j], n + c));
      }
    }
  }
}

// Parks the sums of one position.
template <class T>
struct WinogradSums {
  T* sums;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V values, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, sums + m * kWinogradColumns + n, values);
  }
};

// Transforms the inputs of a block: `rows` tiles from tile `first` on.
template <class Form>
GCRT_NOINLINE void winograd_inputs(const Winograd<Form>& conv, std::ptrdiff_t first, std::ptrdiff_t rows,
                                   typename Form::Value* inputs) {
  constexpr int S = Form::kOutputs + 2;
  const ConvShape& s = conv.shape;
  for (std::ptrdiff_t t = 0; t < rows; ++t) {
    const WinogradTile tile = winograd_tile<Form::kOutputs>(s, first + t);
    const typename Form::Input* pixels[S * S];
    for (int i = 0; i < S; ++i) {
      const int row = tile.row - s.pad_top + i;
      for (int j = 0; j < S; ++j) {
        const int column = tile.column - s.pad_left + j;
        const bool is_inside = row >= 0 && row < s.in_h && column >= 0 && column < s.in_w;
        pixels[i * S + j] = is_inside ? conv.x + tile.image * s.in_image_stride + row * s.in_row_stride +
                                            column * s.in_pixel_stride
                                      : conv.border_row;
      }
    }
    winograd_input<Form>(pixels, s.in_c, inputs + t * s.in_c, conv.input_stride());
  }
}

// The matrix products of one work item, one for each position: `rows` tiles by some columns.
template <class Dot>
GCRT_NOINLINE void winograd_products(int positions, std::ptrdiff_t rows, std::ptrdiff_t channels,
                                     std::ptrdiff_t columns, const typename Dot::Left* inputs,
                                     std::ptrdiff_t input_stride, const typename Dot::Right* w,
                                     typename Dot::Sum* sums, std::ptrdiff_t sums_stride) {
  const std::ptrdiff_t matrix = packed_b_size(channels / Dot::kWordDepth, columns) * Dot::kWordDepth;
  for (int p = 0; p < positions; ++p) {
    const Product<Dot> product{channels, inputs, channels, w, 0, rows, nullptr, rows * channels};
    const WinogradSums<typename Dot::Sum> park{sums};
    gemm_blocks(product, Blocking{}, Block{0, rows, 0, columns}, tile_epilogue<Dot>(park));
    inputs += input_stride;
    w += matrix;
    sums += sums_stride;
  }
}

// One block of `rows` tiles, from tile `first` on, and the columns from n on: products, and outputs.
template <class Form, class E>
GCRT_NOINLINE void winograd_item(const Winograd<Form>& conv, std::ptrdiff_t first, std::ptrdiff_t rows,
                                 std::ptrdiff_t n, const typename Form::Value* inputs,
                                 typename Form::Sum* sums, const E& epilogue) {
  constexpr int T = Form::kOutputs, kPositions = Winograd<Form>::kPositions;
  const ConvShape& s = conv.shape;
  const std::ptrdiff_t columns = smaller(kWinogradColumns, s.out_c - n);
  winograd_products<typename Form::Dot>(kPositions, rows, s.in_c, columns, inputs, conv.input_stride(),
                                        conv.w + n * kPositions * s.in_c, sums, conv.sums_stride());
  alignas(64) typename Form::Sum y[T * T * kWinogradColumns];
  for (std::ptrdiff_t t = 0; t < rows; ++t) {
    const WinogradTile tile = winograd_tile<T>(s, first + t);
    winograd_output(conv.form, sums + t * kWinogradColumns, conv.sums_stride(), columns, n, y);
    const int valid_rows = static_cast<int>(smaller(T, s.out_h - tile.row));
    const int valid_columns = static_cast<int>(smaller(T, s.out_w - tile.column));
    for (int i = 0; i < valid_rows; ++i) {
      const std::ptrdiff_t m = (std::ptrdiff_t{tile.image} * s.out_h + tile.row + i) * s.out_w + tile.column;
      finish_block(y + i * T * kWinogradColumns, kWinogradColumns, valid_columns, static_cast<int>(columns),
                   m, n, epilogue);
    }
  }
}

// How the work items of a convolution follow each other: strip by strip, in a strip by groups of columns,
// whose weights then stay in a cache, in a group by blocks.
struct WinogradItems {
  std::ptrdiff_t tiles, strip, block, groups;
  WinogradItems(int T, const ConvShape& shape, const WinogradPlan& plan)
      : tiles(winograd_tiles(T, shape)),
        strip(plan.strip),
        block(plan.block),
        groups(ceil_div(shape.out_c, kWinogradColumns)) {}

  std::ptrdiff_t strips() const { return ceil_div(tiles, strip); }
  std::ptrdiff_t of_strip() const { return groups * ceil_div(strip, block); }
  // The last strip may have fewer blocks.
  std::ptrdiff_t count() const {
    if (tiles == 0) return 0;
    const std::ptrdiff_t last = strips() - 1;
    return last * of_strip() + groups * ceil_div(tiles - last * strip, block);
  }
};

// Work items [item, end), one after the other in the scratch of a part. Nothing of an item waits for another
// part: the inputs of a block are transformed by the first item here that multiplies them.
template <class Form, class E>
GCRT_NOINLINE void winograd_part(const Winograd<Form>& conv, const WinogradItems& items, std::ptrdiff_t item,
                                 std::ptrdiff_t end, typename Form::Value* inputs, typename Form::Sum* sums,
                                 const E& epilogue) {
  while (item < end) {
    const std::ptrdiff_t strip = item / items.of_strip();
    const std::ptrdiff_t strip_begin = strip * items.of_strip();
    const std::ptrdiff_t tiles = smaller(items.strip, items.tiles - strip * items.strip);
    const std::ptrdiff_t blocks = ceil_div(tiles, items.block);
    const std::ptrdiff_t begin = item, strip_end = smaller(end, strip_begin + items.groups * blocks);
    for (; item < strip_end; ++item) {
      const std::ptrdiff_t block = (item - strip_begin) % blocks, group = (item - strip_begin) / blocks;
      const std::ptrdiff_t first = strip * items.strip + block * items.block;
      const std::ptrdiff_t rows = smaller(items.block, tiles - block * items.block);
      typename Form::Value* const transformed = inputs + block * conv.input_block();
      if (item - begin < blocks) winograd_inputs(conv, first, rows, transformed);
      winograd_item(conv, first, rows, group * kWinogradColumns, transformed, sums, epilogue);
    }
  }
}

// The whole convolution. `scratch`: winograd_scratch() words.
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel. The
// order of each sum follows from the plan, never from the threads.
template <class Form, class E>
inline void winograd_strips(const Threads* threads, const Winograd<Form>& conv, void* scratch,
                            const E& epilogue) {
  constexpr int T = Form::kOutputs;
  const WinogradItems items(T, conv.shape, conv.plan);
  const std::ptrdiff_t inputs = winograd_inputs_size(T, conv.words(), conv.plan);
  const std::ptrdiff_t size = inputs + winograd_sums_size(T, conv.plan);
  parallel_parts(threads, items.count(), items.strips(), conv.plan.parts,
                 [&](std::ptrdiff_t part, std::ptrdiff_t begin, std::ptrdiff_t end) {
                   typename Form::Sum* const words = static_cast<typename Form::Sum*>(scratch) + part * size;
                   typename Form::Value* const values = reinterpret_cast<typename Form::Value*>(words);
                   winograd_part(conv, items, begin, end, values, words + inputs, epilogue);
                 });
}

// Convolution of float32. `zero_row`: in_c zeros.
template <int T, class E>
inline void winograd(const Threads* threads, const ConvShape& shape, const WinogradPlan& plan, const float* x,
                     const float* w, const float* zero_row, void* scratch, const E& epilogue) {
  winograd_strips(threads, Winograd<FloatForm<T>>{shape, plan, x, w, zero_row, {}}, scratch, epilogue);
}

}  // namespace GCRT_NAMESPACE
