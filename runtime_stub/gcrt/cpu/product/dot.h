// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What a register tile multiplies, and how. The tile, the matrix product and the convolution (tile.h, gemm.h,
// conv.h) are written once, over a policy `Dot` that tells them what depends on the element types:
//
//   Left, Right, Sum     elements of A, of packed B, and of the sums
//   Word                 what is read of a row of A in one step of k: kWordDepth values. A lane of a vector
//                        holds as many values of one column of B, and the sum of that column.
//   kRows, kVectors      the largest register tile: rows, and vectors of sums per row
//   kItemRows            rows that a work item has a multiple of: whole tiles
//   next_rows(n)         rows of the next tile when n rows are left: kRows, or a result of shorter()
//   shorter(rows)        rows of the next smaller tile, at last 1
//   kHasOffsets          the sums start at an int32 per column, which takes out zero points; else at zero
//   kSkipsBorder         what lies outside an image adds nothing and is skipped; else the offsets count on it
//   kEdgeChannels        with at most so many channels, edges of images are copied next to what lies outside
//   kGatheredDepth       where words are single values: of a convolution's window of a few channels, the most
//                        elements that are copied together (conv_tile.h); 0: none are
//   kStepIsWord          the words of a row follow each other without gaps; else the task says how far apart
//   kPrefetches          lines of the next columns of B that are fetched ahead every 4 words
//   kSplitsWords         some words of B may be in two parts (tile.h, SplitWords)
//   kHasPairs            a faster product exists for B whose words are split
//   kMaxTaps             kernel taps in one pass over a tile
//   kGemvVectors         vectors of a single row that are computed together where there are as many; 0: no
//                        kernel of its own for a single row
//   kReadsLanes          four words of a row are read at once, as the lanes of a vector
//   kInTiles             products are formed in the tile unit, which a work item has a Unit of, by a TaskSum
//                        (dot_tiles.h, dot_bfloat16.h); what multiplies vectors is not asked for
//   read(a), read(a, n)   a Word of kWordDepth values at `a`, or of n and then what adds nothing
//   broadcast(word)       in every lane, in the form that multiplies words of B
//   read_lanes(a, step)   words at a, a + step, a + 2 * step and a + 3 * step
//   lane<I>(words)        word I of them, in a form that multiplies words of B
//   multiply_add(s, a, b) s += a . b, of an Accumulator
//   multiply_add_pairs(s, a, b) the faster product; where kHasPairs
//   add(a, b)             the sum of two Accumulators
//   begin(v), total(s)    an Accumulator is a vector of sums, or what becomes one in the end
//
// Elements of B that fill no vector are widened to int16 as they are read (tile.h).
//
// And, for depthwise.h, whose lanes are channels, channel_values(x) and channel_weights(w): one value per
// lane, a ChannelFactor, in the forms that multiply_add takes; unless kSkipsBorder, channel_border(x) of one.
#pragma once

#include <type_traits>

#include "gcrt/config.h"
#include "gcrt/isa/isa.h"
#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

template <class T, class Tile>
struct FmaDot;

// The largest register tile: rows, and vectors of sums per row. A panel has 4 lines for every 4 words of the
// next columns; where few tiles share the fetching each takes several. A tile says which policy multiplies
// elements of one type in it.
template <int Rows, int Vectors, int Prefetches = (Vectors > 2 ? 2 : 1)>
struct RegisterTile {
  template <class T>
  using Dot = FmaDot<T, RegisterTile>;
  static constexpr int kRows = Rows;
  static constexpr int kVectors = Vectors;
  static constexpr int kPrefetches = Prefetches;
};

// The one of four tiles for what the file is compiled for: 16-byte vectors in 16 registers or in 32, 32-byte
// vectors in 16, 64-byte vectors in 32.
#if GCRT_VECTOR_BYTES == 64
template <class, class, class, class V64>
using TileOfLevel = V64;
#elif GCRT_VECTOR_BYTES == 32
template <class, class, class V32, class>
using TileOfLevel = V32;
#elif defined(__aarch64__)
template <class, class V16R32, class, class>
using TileOfLevel = V16R32;
#else
template <class V16, class, class, class>
using TileOfLevel = V16;
#endif

// The tile of kernels whose plan names none, and the one for columns that fill four vectors.
using UsualTile = TileOfLevel<RegisterTile<4, 2>, RegisterTile<8, 2>, RegisterTile<6, 2>, RegisterTile<8, 3>>;
using WideTile = TileOfLevel<RegisterTile<4, 2>, RegisterTile<8, 2>, RegisterTile<6, 2>, RegisterTile<6, 4>>;

// The unit of a work item that multiplies in vector registers.
struct NoUnit {};

// Lanes of one machine vector of T.
template <class T>
constexpr int kVectorLanes = sizeof(T) < GCRT_VECTOR_BYTES ? GCRT_VECTOR_BYTES / static_cast<int>(sizeof(T))
                                                           : 1;

// a * b + c: fused for floats, modulo 2^bits for integers.
template <class V>
GCRT_INLINE V multiply_add(V a, V b, V c) {
  using T = ElementOf<V>;
  if constexpr (std::is_floating_point<T>::value) {
    return fma(a, b, c);
  } else {
    using U = UnsignedBits<T>;
    return bit_cast<T>(bit_cast<U>(a) * bit_cast<U>(b) + bit_cast<U>(c));
  }
}

// Keeps g++ from hoisting products out of a step, for which it would spill the sums (config.h). Vectors that
// are halved, or less than a register, cannot be named.
template <class V>
GCRT_INLINE void keep_in_register(V& sum) {
  if constexpr (sizeof(V) >= 16 && sizeof(V) <= GCRT_NATIVE_BYTES) GCRT_KEEP_IN_REGISTER(sum);
}

// One lane of a vector of A.
template <int I, class V>
struct LaneFactor {
  V words;
};

// One type for all: a word is one value. T is float, double or an integer type (sums modulo 2^bits).
template <class T, class Tile = UsualTile>
struct FmaDot {
  using Left = T;
  using Right = T;
  using Sum = T;
  using Word = T;
  using Vector = Pack<T, kVectorLanes<T>>;
  using Accumulator = Vector;
  template <int L>
  using ChannelFactor = Pack<T, L>;
  using Unit = NoUnit;
  static constexpr bool kInTiles = false;
  static constexpr int kWordDepth = 1;
  static constexpr int kRows = Tile::kRows;
  static constexpr int kItemRows = kRows;
  static constexpr int kVectors = Tile::kVectors;
  static constexpr bool kHasOffsets = false;
  static constexpr bool kSkipsBorder = true;
  static constexpr std::ptrdiff_t kEdgeChannels = 16;
  static constexpr std::ptrdiff_t kGatheredDepth = sizeof(T) == 4 && kLanes >= 16 ? 96 : 0;
  static constexpr bool kStepIsWord = true;
  static constexpr int kPrefetches = Tile::kPrefetches;
  static constexpr bool kSplitsWords = false;
  static constexpr bool kHasPairs = false;
  static constexpr int kMaxTaps = 32;
  static constexpr int kGemvVectors = 4;
  static constexpr bool kReadsLanes = kMultipliesLanes && std::is_same<T, float>::value;

  // Tiles of kRows, 8, 6, 4, 2 and 1 rows; one row too many is computed and dropped where that is cheaper
  // than another tile.
  static constexpr int shorter(int rows) { return rows > 8 ? 8 : rows > 2 ? rows - 2 : 1; }
  static constexpr int next_rows(std::ptrdiff_t remaining) {
    if (remaining + 1 >= kRows) return kRows;
    if (kRows > 8 && remaining >= 7) return 8;
    if (kRows > 6 && remaining >= 5) return 6;
    if (kRows > 4 && remaining >= 3) return 4;
    return remaining >= 2 ? 2 : 1;
  }

  static GCRT_INLINE Word read(const T* a) { return *a; }
  static GCRT_INLINE Vector broadcast(Word word) { return splat(Lanes<kVectorLanes<T>>{}, word); }
  static GCRT_INLINE Vector read_lanes(const T* a, std::ptrdiff_t) {
    return load(Lanes<kVectorLanes<T>>{}, a);
  }
  template <int I>
  static GCRT_INLINE LaneFactor<I, Vector> lane(Vector words) {
    return {words};
  }
  template <int I>
  static GCRT_INLINE void multiply_add(Vector& sum, LaneFactor<I, Vector> a, Vector b) {
    sum = fma_lane<I>(b, a.words, sum);
  }
  template <class V>
  static GCRT_INLINE V channel_values(V values) {
    return values;
  }
  template <class V>
  static GCRT_INLINE V channel_weights(V weights) {
    return weights;
  }
  template <class V>
  static GCRT_INLINE void multiply_add(V& sum, V a, V b) {
    if constexpr (std::is_floating_point<T>::value) {
      fma_into(sum, a, b);
    } else {
      sum = GCRT_NAMESPACE::multiply_add(a, b, sum);
    }
    if constexpr (!GCRT_HAS_FMA) keep_in_register(sum);
  }
  static GCRT_INLINE Vector add(Vector a, Vector b) { return a + b; }
  static GCRT_INLINE Accumulator begin(Vector sums) { return sums; }
  static GCRT_INLINE Vector total(Accumulator sums) { return sums; }
};

}  // namespace GCRT_NAMESPACE
