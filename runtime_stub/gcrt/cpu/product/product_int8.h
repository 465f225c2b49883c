// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product of two 8-bit matrices that only the run knows, exact in int32:
//
//   acc(m, n) = sum over k of (a(m, k) - p) * (b(k, n) - q)        modulo 2^32
//
// where p and q are their zero points. Nothing is known of the values, so no words are split (dot_int8.h).
// Where an instruction multiplies four bytes, B is packed as bytes and A is read as it lies; elsewhere both
// are widened to int16 less their zero points, because pairs of int16 are multiplied as fast as pairs of
// bytes, and nothing is left to widen in the loop.
#pragma once

#include "gcrt/cpu/product/gemm_int8.h"
#include "gcrt/cpu/product/sides_plan.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || (GCRT_NEON && defined(__ARM_FEATURE_DOTPROD))
constexpr bool kMultipliesFourBytes = true;
#else
constexpr bool kMultipliesFourBytes = false;
#endif

// A: rows `stride` elements apart, contiguous along k.
template <class T>
struct IntegerRows {
  const T* data;
  std::ptrdiff_t stride;
  std::int32_t zero;
};

// B: its steps along k and along the columns.
template <class T>
struct IntegerMatrix {
  const T* data;
  std::ptrdiff_t stride_k, stride_n;
  std::int32_t zero;
};

struct ProductSizes {
  std::ptrdiff_t rows, columns, depth;
};

// Packing ------------------------------------------------------------------------------------------------

// Panels of B - `less` as words of uint16_t or uint8_t, modulo their range;
// zeros behind the last k and column.
template <class Stored, class T>
struct IntegerPanels {
  static constexpr int kDepth = 4 / static_cast<int>(sizeof(Stored));
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Stored));
  IntegerMatrix<T> b;
  std::uint32_t less;
  std::ptrdiff_t columns, depth;

  std::ptrdiff_t panel_words() const { return ceil_div(depth, kDepth) * kPanelColumns; }

  // The 16 columns from n on.
  void pack(std::ptrdiff_t n, std::int32_t* words) const {
    const std::ptrdiff_t width = smaller(kPanelColumns, columns - n);
    if (b.stride_n == 1 && width == kPanelColumns) return pack_rows(n, words);
    for (std::ptrdiff_t i = 0; width < kPanelColumns && i < panel_words(); ++i) words[i] = 0;
    for (std::ptrdiff_t j = 0; j < width; ++j) pack_column(n + j, words + j);
  }

 private:
  int values_at(std::ptrdiff_t k) const { return static_cast<int>(smaller(kDepth, depth - k)); }

  // Columns side by side.
  void pack_rows(std::ptrdiff_t n, std::int32_t* words) const {
    constexpr Lanes<kLanes> lane{};
    using V = Pack<std::uint32_t, kLanes>;
    const V subtracted = splat(lane, less), mask = splat(lane, static_cast<std::uint32_t>(Stored(~0u)));
    for (std::ptrdiff_t k = 0; k < depth; k += kDepth, words += kPanelColumns) {
      const T* const from = b.data + k * b.stride_k + n;
      for (int j = 0; j < kPanelColumns; j += kLanes) {
        V word{};
        for (int i = 0; i < values_at(k); ++i) {
          const V value = convert<std::uint32_t>(load(lane, from + i * b.stride_k + j)) - subtracted;
          word |= (value & mask) << (kBits * i);
        }
        store(lane, words + j, bit_cast<std::int32_t>(word));
      }
    }
  }

  void pack_column(std::ptrdiff_t n, std::int32_t* words) const {
    constexpr int kValues = kDepth * kLanes;
    const T* const from = b.data + n * b.stride_n;
    std::ptrdiff_t k = 0;
    for (; b.stride_k == 1 && k + kValues <= depth; k += kValues) {
      const auto values = convert<Stored>(load(Lanes<kValues>{}, from + k)) -
                          splat(Lanes<kValues>{}, static_cast<Stored>(less));
      store_strided(Lanes<kLanes>{}, words + k / kDepth * kPanelColumns, kPanelColumns,
                    bit_cast_whole<Pack<std::int32_t, kLanes>>(values));
    }
    for (; k < depth; k += kDepth) {
      std::uint32_t word = 0;
      for (int i = 0; i < values_at(k); ++i) {
        const auto value = static_cast<std::uint32_t>(from[(k + i) * b.stride_k]) - less;
        word |= static_cast<std::uint32_t>(static_cast<Stored>(value)) << (kBits * i);
      }
      words[k / kDepth * kPanelColumns] = static_cast<std::int32_t>(word);
    }
  }
};

// Both sides as int16 ------------------------------------------------------------------------------------

// The scratch: B, then A in rows of whole words.
template <class TX, class TW>
struct WidenedSides {
  using Dot = Int16Dot<>;
  ProductSizes sizes;
  IntegerRows<TX> a;
  IntegerMatrix<TW> b;
  std::int32_t* scratch;

  std::ptrdiff_t row_size() const { return ceil_div(sizes.depth, 2) * 2; }
  std::int16_t* rows() const {
    return reinterpret_cast<std::int16_t*>(scratch + packed_b_size(row_size() / 2, sizes.columns));
  }

  void pack(std::ptrdiff_t panel) const {
    const IntegerPanels<std::uint16_t, TW> panels{b, static_cast<std::uint32_t>(b.zero), sizes.columns,
                                                  sizes.depth};
    panels.pack(panel * kPanelColumns, scratch + panel * panels.panel_words());
  }
  void read_row(std::ptrdiff_t m) const {
    const TX* const from = a.data + m * a.stride;
    std::int16_t* const to = rows() + m * row_size();
    vectorize<2 * kLanes>(sizes.depth, [&](auto lane, std::ptrdiff_t k) GCRT_LAMBDA_INLINE {
      const auto value = convert<std::int16_t>(load(lane, from + k));
      store(lane, to + k,
            value - splat_like<Rebind<decltype(value), std::int16_t>>(static_cast<std::int16_t>(a.zero)));
    });
    if (sizes.depth % 2 != 0) to[sizes.depth] = 0;
  }

  Product<Dot> product() const {
    return {row_size(), rows(), row_size(), reinterpret_cast<const std::int16_t*>(scratch), 0, sizes.rows};
  }
  template <class E>
  const E& epilogue(const E& given) const {
    return given;
  }
};

// B as bytes ---------------------------------------------------------------------------------------------

// The epilogue of sums to which something of their rows is still to be added.
template <class E>
struct RowOffsets {
  static constexpr bool kIsHeavy = HeavyEpilogue<E>::value;
  const E given;
  const std::int32_t* offsets;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const V offset = splat(lane, offsets[m]);
    given(lane, bit_cast<std::int32_t>(bit_cast<std::uint32_t>(sums) + bit_cast<std::uint32_t>(offset)), m,
          n);
  }
};

// The sum of bytes, four at a time, modulo 2^32.
template <class T>
GCRT_INLINE std::uint32_t sum_of_bytes(const T* bytes, std::ptrdiff_t count) {
  using V = Pack<std::int32_t, kLanes>;
  V sums{};
  const V ones = splat(Lanes<kLanes>{}, 0x01010101);
  std::ptrdiff_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    V words;
    __builtin_memcpy(&words, bytes + i, sizeof(words));
    sums = std::is_signed<T>::value ? dot4_u8s8(sums, ones, words) : dot4_u8s8(sums, words, ones);
  }
  std::uint32_t sum = 0;
  for (int j = 0; j < kLanes; ++j) sum += static_cast<std::uint32_t>(lane_of(sums, j));
  for (; i < count; ++i) sum += static_cast<std::uint32_t>(bytes[i]);
  return sum;
}

// Words hold signed bytes: b' = b - s, q' = q - s with s = 128 for unsigned ones. Then
//   sum of (a - p)(b - q) = sum of a b'  - p sum of b'  - q' (sum of a - K p)
// of which the second term belongs to columns, with A read in the way of Dot, and the third one to rows.
// The scratch: B, then what belongs to columns, then what belongs to rows.
template <class TX, class TW, bool InTiles>
struct ByteSides {
  using Dot = WordDot<TX, std::int8_t, InTiles>;
  static constexpr std::int32_t kShift = std::is_signed<TW>::value ? 0 : 128;
  static constexpr std::int32_t kFlip = !Dot::kIsFlipped ? 0 : Dot::kReadsSigned ? -128 : 128;
  ProductSizes sizes;
  IntegerRows<TX> a;
  IntegerMatrix<TW> b;
  std::int32_t* scratch;

  std::int32_t* of_columns() const {
    return scratch + packed_b_size(ceil_div(sizes.depth, 4), sizes.columns);
  }
  std::int32_t* of_rows() const { return of_columns() + sizes.columns; }

  void pack(std::ptrdiff_t panel) const {
    const IntegerPanels<std::uint8_t, TW> panels{b, static_cast<std::uint32_t>(kShift), sizes.columns,
                                                 sizes.depth};
    std::int32_t* const words = scratch + panel * panels.panel_words();
    const std::ptrdiff_t n = panel * kPanelColumns;
    panels.pack(n, words);
    const auto zero = static_cast<std::uint32_t>(a.zero + kFlip);
    const Pack<std::int32_t, kLanes> ones = splat(Lanes<kLanes>{}, 0x01010101);
    for (std::ptrdiff_t j = 0; j < smaller(kPanelColumns, sizes.columns - n); j += kLanes) {
      Pack<std::int32_t, kLanes> sums{};
      for (std::ptrdiff_t i = 0; i < panels.panel_words(); i += kPanelColumns) {
        sums = dot4_u8s8(sums, ones, load(Lanes<kLanes>{}, words + i + j));
      }
      for (std::ptrdiff_t i = 0; i < smaller(kLanes, sizes.columns - n - j); ++i) {
        of_columns()[n + j + i] =
            static_cast<std::int32_t>(0u - zero * static_cast<std::uint32_t>(lane_of(sums, i)));
      }
    }
  }
  void read_row(std::ptrdiff_t m) const {
    const std::uint32_t zeros = static_cast<std::uint32_t>(sizes.depth) * static_cast<std::uint32_t>(a.zero);
    const std::uint32_t sum = sum_of_bytes(a.data + m * a.stride, sizes.depth);
    of_rows()[m] = static_cast<std::int32_t>(static_cast<std::uint32_t>(b.zero - kShift) * (zeros - sum));
  }

  Product<Dot> product() const {
    const std::ptrdiff_t size = (sizes.rows - 1) * a.stride + sizes.depth;
    const auto* const words = reinterpret_cast<const std::int8_t*>(scratch);
    return {sizes.depth, a.data, a.stride, words, 0, sizes.rows, of_columns(), size};
  }
  template <class E>
  RowOffsets<E> epilogue(const E& given) const {
    return {given, of_rows()};
  }
};

// The product --------------------------------------------------------------------------------------------

// One product, for all threads: both sides are prepared, then multiplied.
//   scratch  integer_sides_size() words
// The epilogue is called as in gemm.h, with Pack<int32_t, L>; the blocking cuts no depth. `InTiles`: where
// there is a tile unit, products are formed in it.
template <bool InTiles = false, bool InBytes = InTiles || kMultipliesFourBytes, class TX, class TW, class E>
inline void multiply_integers(const Threads* threads, const ProductSizes& sizes, const IntegerRows<TX>& a,
                              const IntegerMatrix<TW>& b, const Blocking& blocking, std::int32_t* scratch,
                              const E& given) {
  using Sides = std::conditional_t<InBytes, ByteSides<TX, TW, InTiles>, WidenedSides<TX, TW>>;
  using Dot = typename Sides::Dot;
  const Sides sides{sizes, a, b, scratch};
  const std::ptrdiff_t items = WorkItems<Dot>(sizes.rows, sizes.columns, 1, blocking).count();
  const std::ptrdiff_t panels = ceil_div(sizes.columns, kPanelColumns);
  // Work items of the preparation: each has some panels and some rows, as many as are worth a thread.
  constexpr std::ptrdiff_t kWorth = 32768;
  const std::ptrdiff_t size = (sizes.rows + sizes.columns) * sizes.depth;
  const std::ptrdiff_t pieces =
      items > 1 ? larger(1, smaller(larger(panels, sizes.rows / 16), size / kWorth)) : 1;
  parallel_for(threads, pieces, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t p = panels * begin / pieces; p < panels * end / pieces; ++p) sides.pack(p);
    for (std::ptrdiff_t m = sizes.rows * begin / pieces; m < sizes.rows * end / pieces; ++m)
      sides.read_row(m);
  });
  const auto epilogue = sides.epilogue(given);
  parallel_for(threads, items, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    typename Dot::Unit unit;
    gemm_items(sides.product(), sizes.columns, blocking, tile_epilogue<Dot>(epilogue, &unit), begin, end);
  });
}

}  // namespace GCRT_NAMESPACE
