// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The dot product of integer contractions: A of 8 or 16 bits times packed B of int8 or int16, with int32 sums
// that are exact modulo 2^32.
//
// Both are multiplied as bytes, or as int16 where one of them is of 16 bits; the other is widened as it is
// read. B is packed in words of 4 values of k, or of 2 that are multiplied as int16; a panel is [words][16
// columns][values of a word], padded with zeros in k and n. Values of A that meet the padding of the last
// word may be anything, so whole words are read wherever they lie inside the operand.
//
// As bytes, int8 weights are multiplied as unsigned times signed bytes (vpdpbusd), and by processors of ARM
// as signed bytes; A of the other kind is read as A + 128 or as A - 128, which `offsets` make up for. The
// tile unit multiplies either kind as it is (dot_tiles.h). So they are [2][columns]: those for bytes read as
// unsigned ones, -128 * sum over k of B[k][n] where A is signed, then those for bytes read as signed ones,
// 128 times that sum where A is unsigned. As int16 there is one set: A of uint16_t is read as A - 32768, and
// its offsets hold 32768 times that sum.
//
// Without an instruction for four products, vpmaddubsw does half the work where it is exact: where in a word
// what b0 and b1 have of one sign is at most 128 together, and so have b2 and b3. Where few words are not so,
// those are split: B holds the half of each value, rounded to zero, and SplitWords the rest (tile.h). Where
// they are many, there are no SplitWords, and all bytes are widened.
#pragma once

#include "gcrt/cpu/product/dot.h"

namespace GCRT_NAMESPACE {

// What elements of A and B are multiplied as.
template <class TX, class TW>
using IntegerFactor = std::conditional_t<sizeof(TX) == 1 && sizeof(TW) == 1, std::int8_t, std::int16_t>;

// The sums of a vector of columns, products of F, while a tile is summed.
#if GCRT_MULTIPLIES_SIGNED && defined(__ARM_FEATURE_DOTPROD)
template <class F>
using IntegerSums = std::conditional_t<sizeof(F) == 1, Int32x4, PairedSums>;
#elif GCRT_MULTIPLIES_SIGNED
template <class F>
using IntegerSums = PairedSums;
#else
template <class F>
using IntegerSums = Pack<std::int32_t, kLanes>;
#endif

// A wide tile reuses the words of A, which cost more to prepare than those of B. Without an instruction for
// four products, the widened halves of the bytes take registers as well, or sums are pairs.
// Int16Tile is for words that both lie as int16.
#if GCRT_MULTIPLIES_SIGNED
template <class F>
using IntegerTile = RegisterTile<sizeof(IntegerSums<F>) == sizeof(Pack<std::int32_t, kLanes>) ? 8
                                 : GCRT_NEON64                                                ? 4
                                                                                              : 2,
                                 2, 0>;
using Int16Tile = IntegerTile<std::int16_t>;
#elif defined(__AVX512VNNI__) || defined(__AVXVNNI__)
template <class>
using IntegerTile = RegisterTile<6, GCRT_VECTOR_BYTES == 64 ? 4 : 2, GCRT_VECTOR_BYTES == 64 ? 2 : 1>;
using Int16Tile = IntegerTile<std::int16_t>;
#else
template <class>
using IntegerTile = RegisterTile<4, GCRT_VECTOR_BYTES == 64 ? 4 : 2, GCRT_VECTOR_BYTES == 64 ? 2 : 1>;
using Int16Tile = RegisterTile<6, GCRT_VECTOR_BYTES == 64 ? 4 : 2, GCRT_VECTOR_BYTES == 64 ? 2 : 1>;
#endif

template <class TX, class TW, class Tile = IntegerTile<IntegerFactor<TX, TW>>>
struct IntegerDot {
  using Factor = IntegerFactor<TX, TW>;
  using Left = TX;
  using Right = TW;
  using Sum = std::int32_t;
  using Word = std::int32_t;
  using Vector = Pack<std::int32_t, kLanes>;
  using Accumulator = IntegerSums<Factor>;
  using Unit = NoUnit;
  static constexpr bool kInTiles = false;
  static constexpr int kWordDepth = 4 / static_cast<int>(sizeof(Factor));
  static constexpr int kRows = Tile::kRows;
  // The same for all elements.
  static constexpr int kItemRows = GCRT_MULTIPLIES_SIGNED ? 8 : kRows;
  static constexpr int kVectors = Tile::kVectors;
  static constexpr bool kHasOffsets = true;
  static constexpr bool kSkipsBorder = false;
  static constexpr std::ptrdiff_t kEdgeChannels = 0;
  static constexpr bool kStepIsWord = false;
  static constexpr int kPrefetches = Tile::kPrefetches;
  static constexpr bool kSplitsWords = sizeof(Factor) == 1;
  static constexpr bool kHasPairs = kHasPairDot && kSplitsWords;
  static constexpr int kMaxTaps = 64;
  static constexpr int kGemvVectors = 0;
  static constexpr bool kReadsLanes = kMultipliesLanes;
  static constexpr bool kReadsSigned = GCRT_MULTIPLIES_SIGNED && sizeof(Factor) == 1;
  // Whether A has its upper bit flipped: bytes become A + 128 or A - 128, uint16_t A - 32768.
  static constexpr bool kIsFlipped = sizeof(Factor) == 1 ? std::is_signed<TX>::value != kReadsSigned
                                                         : std::is_same<TX, std::uint16_t>::value;
  static constexpr std::uint32_t kFlip = sizeof(Factor) == 1 ? 0x80808080u : 0x80008000u;
  // The number of sets of offsets.
  static constexpr int kOffsetSets = sizeof(Factor) == 1 ? 2 : 1;

  // Tiles of kRows, half of them, and 1. Rows too many are computed and dropped where that is cheaper than
  // another tile.
  static constexpr int shorter(int rows) { return rows == kRows ? rows / 2 : 1; }
  static constexpr int next_rows(std::ptrdiff_t remaining) {
    return remaining > kRows / 2 ? kRows : remaining > 1 ? kRows / 2 : 1;
  }

  static GCRT_INLINE Word read(const TX* a, int count) {
    std::uint32_t word = 0;
    for (int i = 0; i < count; ++i) {
      if constexpr (sizeof(Factor) == 1) {
        word |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(a[i])) << (8 * i);
      } else {
        word |= static_cast<std::uint32_t>(static_cast<std::uint16_t>(a[i])) << (16 * i);
      }
    }
    return static_cast<std::int32_t>(word);
  }
  static GCRT_INLINE Word read(const TX* a) {
    if constexpr (sizeof(TX) == sizeof(Factor)) {
      std::int32_t word;
      __builtin_memcpy(&word, a, sizeof(word));
      return word;
    } else {
      return read(a, kWordDepth);
    }
  }
  static GCRT_INLINE Vector flipped(Vector words) {
    if constexpr (kIsFlipped) words ^= splat(Lanes<kLanes>{}, static_cast<std::int32_t>(kFlip));
    return words;
  }
  static GCRT_INLINE Vector broadcast(Word word) {
    Vector words = splat(Lanes<kLanes>{}, word);
    // g++ would flip the word before it is spread, so that no load spreads it.
    if constexpr (kIsFlipped && sizeof(Factor) == 2) keep_in_register(words);
    return flipped(words);
  }
  // Single values of A, as signed ones.
  template <class V>
  static GCRT_INLINE auto signed_values(V values) {
    if constexpr (kIsFlipped && sizeof(TX) == 2) {
      return bit_cast<std::int16_t>(static_cast<V>(values ^ splat_like<V>(std::uint16_t{0x8000})));
    } else {
      return values;
    }
  }
  static GCRT_INLINE int channel_border(TX border) { return border - (kIsFlipped ? 32768 : 0); }
#if GCRT_MULTIPLIES_SIGNED
  static GCRT_INLINE Vector read_lanes(const TX* a, std::ptrdiff_t step) {
    if (step != kWordDepth)
      return flipped(Vector{read(a), read(a + step), read(a + 2 * step), read(a + 3 * step)});
    if constexpr (sizeof(TX) == sizeof(Factor)) {
      Vector words;
      __builtin_memcpy(&words, a, sizeof(words));
      return flipped(words);
    } else {
      return (Vector)convert<std::int16_t>(load(Lanes<8>{}, a));
    }
  }
  template <int I>
  static GCRT_INLINE auto lane(Vector words) {
    if constexpr (sizeof(Accumulator) == sizeof(Vector)) {
      return LaneFactor<I, Vector>{words};
    } else {
      return (Vector)__builtin_shufflevector(words, words, I, I, I, I);
    }
  }
  static GCRT_INLINE void multiply_add(Accumulator& sum, Vector a, Vector b) {
    if constexpr (sizeof(Factor) == 1) {
      sum = dot4_s8(sum, a, b);
    } else {
      sum = madd_s16(sum, a, b);
    }
    keep(sum);
  }
#if GCRT_NEON64 && defined(__ARM_FEATURE_DOTPROD)
  template <int I>
  static GCRT_INLINE void multiply_add(Vector& sum, LaneFactor<I, Vector> a, Vector b) {
    sum = dot4_s8_lane<I>(sum, a.words, b);
    keep(sum);
  }
#endif
  static GCRT_INLINE void keep(Vector& sum) { keep_in_register(sum); }
  static GCRT_INLINE void keep(PairedSums& sum) {
    keep_in_register(sum.low);
    keep_in_register(sum.high);
  }
  static GCRT_INLINE Accumulator begin(Vector sums) {
    Accumulator out;
    begin(sums, out);
    return out;
  }
  static GCRT_INLINE void begin(Vector sums, Vector& out) { out = sums; }
  static GCRT_INLINE void begin(Vector sums, PairedSums& out) { out = pair_sums(sums); }
  static GCRT_INLINE Vector total(Vector sums) { return sums; }
  static GCRT_INLINE Vector total(PairedSums sums) { return total_of_pairs(sums); }
  static GCRT_INLINE PairedSums add(PairedSums a, PairedSums b) {
    return {add(a.low, b.low), add(a.high, b.high)};
  }
  template <int L>
  using ChannelFactor = Pack<std::int16_t, L>;
  template <class V>
  static GCRT_INLINE Rebind<V, std::int16_t> channel_values(V values) {
    return convert<std::int16_t>(signed_values(values));
  }
  template <class V>
  static GCRT_INLINE V channel_weights(V weights) {
    static_assert(sizeof(TW) == 2, "lanes of one int16");
    return weights;
  }
  // Lanes that are channels.
  template <class V>
  static GCRT_INLINE std::enable_if_t<!std::is_class<V>::value> multiply_add(V& sum,
                                                                             Rebind<V, std::int16_t> a,
                                                                             Rebind<V, std::int16_t> b) {
    if constexpr (kLanesOf<V> == 4) {
      sum = madd_lanes_s16(sum, a, b);
      keep_in_register(sum);
    } else {
      sum += convert<std::int32_t>(a) * convert<std::int32_t>(b);
    }
  }
#else
  static GCRT_INLINE Vector begin(Vector sums) { return sums; }
  static GCRT_INLINE Vector total(Vector sums) { return sums; }
  template <int L>
  using ChannelFactor = Pack<std::int32_t, L>;
  template <class V>
  static GCRT_INLINE Rebind<V, std::int32_t> channel_values(V values) {
    return convert<std::int32_t>(signed_values(values));
  }
  // Extended by zeros: since the upper half is zero, a multiply-add of int16 pairs is one product.
  template <class V>
  static GCRT_INLINE Rebind<V, std::int32_t> channel_weights(V weights) {
    static_assert(sizeof(TW) == 2, "lanes of one int16");
    return convert<std::int32_t>(bit_cast<std::uint16_t>(weights));
  }
  template <class V>
  static GCRT_INLINE void multiply_add(V& sum, V a, V b) {
    if constexpr (sizeof(Factor) == 1) {
      sum = dot4_u8s8(sum, a, b);
    } else {
      sum = madd_s16(sum, a, b);
    }
    keep_in_register(sum);
  }
  template <class V>
  static GCRT_INLINE void multiply_add_pairs(V& sum, V a, V b) {
    sum = dot4_u8s8_of_pairs(sum, a, b);
    keep_in_register(sum);
  }
#endif
  static GCRT_INLINE Vector add(Vector a, Vector b) {
    return bit_cast<std::int32_t>(bit_cast<std::uint32_t>(a) + bit_cast<std::uint32_t>(b));
  }
};

// Both factors are words of int16 as they lie, and the sums start at zero.
template <class Tile = Int16Tile>
struct Int16Dot : IntegerDot<std::int16_t, std::int16_t, Tile> {
  static constexpr bool kHasOffsets = false;
};

// The part of the offsets of all columns that is for how A is read.
template <class Dot>
GCRT_INLINE const std::int32_t* offsets_as_read(const std::int32_t* offsets, std::ptrdiff_t columns) {
  return Dot::kReadsSigned ? offsets + columns : offsets;
}

}  // namespace GCRT_NAMESPACE
