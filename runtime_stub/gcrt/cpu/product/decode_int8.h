// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product C = A * B by the packed integers of decode.h, in integers: a row of A is rounded once, to
// int8 with a scale for each block of rows of B, as models with an accuracy_level of 4 allow (MatMulNBits of
// ONNX Runtime):
//   scale = max|a| / 127,  A[k] ~ scale * r[k],  r[k] = a[k] / scale to the nearest, ties to even
//   C = sum over blocks of (sum of r * q - (middle + zero) * sum of r) * (scale of A * scale of B)
// with sums of products that are exact in int32. A block with an infinity or a NaN makes NaN of its row.
//
// B stays as decode.h packs it. A byte of a word of 4-bit integers holds two neighbours in k, so the lower
// and the upper halves of bytes are words of bytes for even and for odd k, and a row of A lies in that order:
//   k = 0 2 4 6, 1 3 5 7, 8 10 12 14, ...
// Sums of an element are taken in an order that its place alone decides, as in decode.h.
#pragma once

#include "gcrt/cpu/product/decode.h"
#include "gcrt/cpu/product/dot_int8.h"

namespace GCRT_NAMESPACE {

// Bytes of a row of rounded A: as many as it has elements, up to whole groups of 8; then of each block the
// scale, then of each the sum. Several blocks have whole groups.
constexpr std::ptrdiff_t rounded_values_size(std::ptrdiff_t depth) { return ceil_div(depth, 8) * 8; }
constexpr std::ptrdiff_t rounded_row_size(std::ptrdiff_t depth, std::ptrdiff_t block) {
  return rounded_values_size(depth) + 2 * ceil_div(depth, block) * static_cast<std::ptrdiff_t>(sizeof(float));
}

// The largest magnitude of `count` elements as bits, which order floats: NaN comes last.
GCRT_INLINE std::int32_t largest_magnitude_bits(const float* a, std::ptrdiff_t count) {
  constexpr Lanes<kLanes> lane{};
  const auto larger_bits = [](auto x, auto y) GCRT_LAMBDA_INLINE { return x > y ? x : y; };
  const auto magnitude = [](auto x) GCRT_LAMBDA_INLINE { return bit_cast<std::int32_t>(x) & 0x7fffffff; };
  Pack<std::int32_t, kLanes> largest{};
  std::ptrdiff_t k = 0;
  for (; k + kLanes <= count; k += kLanes) largest = larger_bits(magnitude(load(lane, a + k)), largest);
  std::int32_t result = 0;
  GCRT_UNROLL
  for (int i = 0; i < kLanes; ++i) result = larger_bits(lane_of(largest, i), result);
  for (; k < count; ++k) result = larger_bits(magnitude(a[k]), result);
  return result;
}

// Eight bytes, lowest first, with those at even places in front.
GCRT_INLINE std::uint64_t even_bytes_first(std::uint64_t x) {
  std::uint64_t moved = (x ^ (x >> 8)) & 0x0000ff000000ff00u;
  x ^= moved ^ (moved << 8);
  moved = (x ^ (x >> 16)) & 0x00000000ffff0000u;
  return x ^ moved ^ (moved << 16);
}

// Rounds a block. Writes whole groups of 8 bytes.
template <int Bits>
GCRT_INLINE void round_block(const float* a, std::ptrdiff_t count, std::int8_t* rounded, float* scale,
                             float* sum) {
  constexpr Lanes<8> lane{};
  // Below, the inverse would not be finite, and what is 2^-119 of anything may be counted as zero.
  constexpr std::int32_t kSmallest = (127 - 119) << 23, kInfinite = 0x7f800000;
  const std::int32_t largest = largest_magnitude_bits(a, count);
  float inverse = 0;
  *scale = 0;
  if (largest >= kInfinite) {
    *scale = kNan<float>;
  } else if (largest >= kSmallest) {
    *scale = bit_cast<float>(largest) / 127.0f;
    inverse = 1.0f / *scale;
  }
  Pack<std::int32_t, 8> sums{};
  for (std::ptrdiff_t k = 0; k < count; k += 8) {
    Pack<float, 8> values{};
    if (k + 8 <= count) {
      values = load(lane, a + k);
    } else {
      for (int i = 0; i < 8 && k + i < count; ++i) values[i] = a[k + i];
    }
    // Not by what is infinite or NaN.
    const auto whole = inverse == 0 ? Pack<std::int32_t, 8>{}
                                    : convert<std::int32_t>(round_half_even(values * splat(lane, inverse)));
    sums += whole;
    const auto bytes = convert<std::int8_t>(whole);
    std::uint64_t group;
    __builtin_memcpy(&group, &bytes, sizeof(group));
    if constexpr (Bits == 4) group = even_bytes_first(group);
    __builtin_memcpy(rounded + k, &group, sizeof(group));
  }
  std::int32_t total = 0;
  GCRT_UNROLL
  for (int i = 0; i < 8; ++i) total += sums[i];
  *sum = static_cast<float>(total);
}

// Rows [row_begin, row_end) of A, rounded to rows of rounded_row_size() bytes.
template <int Bits, class Zero>
GCRT_NOINLINE void round_rows(std::ptrdiff_t depth, const float* a, std::ptrdiff_t lda,
                              const BlockWeights<Bits, Zero>& b, std::int8_t* rounded,
                              std::ptrdiff_t row_begin, std::ptrdiff_t row_end) {
  const std::ptrdiff_t blocks = ceil_div(depth, b.block);
  for (std::ptrdiff_t m = row_begin; m < row_end; ++m) {
    std::int8_t* row = rounded + m * rounded_row_size(depth, b.block);
    float* scales = reinterpret_cast<float*>(row + rounded_values_size(depth));
    for (std::ptrdiff_t i = 0; i < blocks; ++i) {
      const std::ptrdiff_t k = i * b.block;
      round_block<Bits>(a + m * lda + k, smaller(b.block, depth - k), row + k, scales + i,
                        scales + blocks + i);
    }
  }
}

// Integers of 8 bits are multiplied as signed bytes, which they are less 128, or as unsigned ones.
constexpr bool kMultipliesSignedBytes = GCRT_MULTIPLIES_SIGNED || kHasPairDot;
using RoundedSums = IntegerSums<std::int8_t>;

// Words of B times bytes of A, summed in int32.
template <int Bits>
struct RoundedDot {
  using Vector = Pack<std::int32_t, kLanes>;
  static constexpr int kDepth = PackedBits<Bits>::kDepth;
  static constexpr int kParts = kDepth / 4;  // words of bytes in a word

  // What is taken out of the integers as they are multiplied; see BlockWeights.
  template <class Zero>
  static GCRT_INLINE Pack<float, kLanes> zero(const BlockWeights<Bits, Zero>& b, Lanes<kLanes> lane,
                                              std::ptrdiff_t at) {
    const Pack<float, kLanes> sum = b.zero(lane, at);
    return Bits == 8 && kMultipliesSignedBytes ? sum - splat(lane, PackedBits<Bits>::kMiddle) : sum;
  }
  // The bytes of a word that meet four bytes of A.
  static GCRT_INLINE Vector part(Pack<std::uint32_t, kLanes> words, int part) {
    if constexpr (Bits == 4) {
      using Bytes = Pack<std::uint8_t, kLanes * 4>;
      if (part > 0) return (Vector)((Bytes)words >> 4);
      words &= 0x0f0f0f0fu;
    } else if constexpr (kMultipliesSignedBytes) {
      words ^= 0x80808080u;
    }
    return bit_cast<std::int32_t>(words);
  }
  static GCRT_INLINE Vector left(const std::int8_t* bytes) {
    std::int32_t word;
    __builtin_memcpy(&word, bytes, sizeof(word));
    return splat(Lanes<kLanes>{}, word);
  }

  // Products of 4 bits, at most 2 * 15 * 127 in an int16 for each part of a word, are added in int16 first.
  static constexpr bool kAddsPairs = kHasPairDot && Bits == 4;
  using Partial = std::conditional_t<kAddsPairs, Vector, RoundedSums>;
  static constexpr int kMostWords = 4;
  static_assert(!kAddsPairs || kMostWords * kParts * 2 * 15 * 127 <= 32767, "sums of pairs fit int16");

  static GCRT_INLINE void multiply_add(Partial& sums, Vector part, Vector a) {
#if GCRT_MULTIPLIES_SIGNED
    sums = dot4_s8(sums, part, a);
#else
    if constexpr (kAddsPairs) {
      sums = add_pairs_u8s8(sums, part, a);
    } else if constexpr (kMultipliesSignedBytes) {
      sums = dot4_s8(sums, part, a);
    } else {
      sums = dot4_u8s8(sums, part, a);
    }
    keep_in_register(sums);
#endif
  }
  static GCRT_INLINE void add(RoundedSums& sums, Partial part) {
    if constexpr (kAddsPairs) {
      sums = madd_s16(sums, part, splat(Lanes<kLanes>{}, 0x00010001));
    } else {
      sums = part;
    }
  }

  static GCRT_INLINE Vector total(Vector sums) { return sums; }
#if GCRT_MULTIPLIES_SIGNED
  static GCRT_INLINE Vector total(PairedSums sums) { return total_of_pairs(sums); }
#endif
};

// Sums of Rows by Vectors of columns.
template <int Rows, int Vectors, class T>
struct RoundedTile {
  T at[Rows][Vectors] = {};
};

// sums += Count words of Vectors of columns times the rows of A, `row_size` bytes apart.
template <int Bits, int Count, int Rows, int Vectors>
GCRT_INLINE void multiply_words(const std::uint32_t* word, const std::int8_t* a, std::ptrdiff_t row_size,
                                RoundedTile<Rows, Vectors, RoundedSums>& sums) {
  using Dot = RoundedDot<Bits>;
  RoundedTile<Rows, Vectors, typename Dot::Partial> partial;
  if constexpr (!Dot::kAddsPairs) partial = sums;
  GCRT_UNROLL
  for (int j = 0; j < Count; ++j) {
    Pack<std::uint32_t, kLanes> packed[Vectors];
    GCRT_UNROLL
    for (int v = 0; v < Vectors; ++v) packed[v] = load(Lanes<kLanes>{}, word + j * kWordColumns + v * kLanes);
    GCRT_UNROLL
    for (int p = 0; p < Dot::kParts; ++p) {
      typename Dot::Vector part[Vectors];
      GCRT_UNROLL
      for (int v = 0; v < Vectors; ++v) part[v] = Dot::part(packed[v], p);
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) {
        const auto left = Dot::left(a + i * row_size + j * Dot::kDepth + p * 4);
        GCRT_UNROLL
        for (int v = 0; v < Vectors; ++v) Dot::multiply_add(partial.at[i][v], part[v], left);
      }
    }
  }
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    GCRT_UNROLL
    for (int v = 0; v < Vectors; ++v) Dot::add(sums.at[i][v], partial.at[i][v]);
  }
}

// Rows of rounded A times one panel of B.
//   sums  [Rows][32]
template <int Rows, int Bits, class Zero>
GCRT_NOINLINE void multiply_rounded_panel(std::ptrdiff_t depth, const std::int8_t* a,
                                          const BlockWeights<Bits, Zero>& b, std::ptrdiff_t panel,
                                          float* sums) {
  using Dot = RoundedDot<Bits>;
  using Vector = Pack<float, kLanes>;
  constexpr Lanes<kLanes> lane{};
  // Columns that share what is read of A, as many as leave registers for what they multiply.
  constexpr int kPanel = kWordColumns / kLanes, kMost = Rows == 1 ? 4 : 2;
  constexpr int kVectors = kPanel < kMost ? kPanel : kMost;
  constexpr std::ptrdiff_t kAhead = 32 * kWordColumns;  // words that are fetched ahead
  const std::ptrdiff_t words = b.word_count(depth), blocks = ceil_div(depth, b.block);
  const std::ptrdiff_t block_words = ceil_div(b.block, Dot::kDepth);
  const std::ptrdiff_t row_size = rounded_row_size(depth, b.block);
  const float* a_scales = reinterpret_cast<const float*>(a + rounded_values_size(depth));
  const std::uint32_t* word = b.words + panel * words * kWordColumns;
  std::ptrdiff_t at = panel * blocks * kWordColumns;  // of the block's scales
  GCRT_UNROLL
  for (int i = 0; i < Rows * kWordColumns; i += kLanes) store(lane, sums + i, Vector{});
  for (std::ptrdiff_t begin = 0; begin < words; begin += block_words) {
    const std::ptrdiff_t count = smaller(block_words, words - begin);
    const std::int8_t* left = a + begin * Dot::kDepth;
    for (int column = 0; column < kWordColumns; column += kVectors * kLanes) {
      RoundedTile<Rows, kVectors, RoundedSums> products;
      const std::uint32_t* next = word + column;
      std::ptrdiff_t w = 0;
      for (; w + 4 <= count; w += 4) {
        multiply_words<Bits, 4>(next + w * kWordColumns, left + w * Dot::kDepth, row_size, products);
      }
      for (; w < count; ++w) {
        multiply_words<Bits, 1>(next + w * kWordColumns, left + w * Dot::kDepth, row_size, products);
      }
      GCRT_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const int n = column + v * kLanes;
        const Vector scale = load(lane, b.scales + at + n), zero = Dot::zero(b, lane, at + n);
        GCRT_UNROLL
        for (int i = 0; i < Rows; ++i) {
          const float* of_row = a_scales + i * (row_size / 4);
          const Vector sum =
              convert<float>(Dot::total(products.at[i][v])) - splat(lane, of_row[blocks]) * zero;
          float* to = sums + i * kWordColumns + n;
          store(lane, to, fma(sum, scale * splat(lane, *of_row), load(lane, to)));
        }
      }
    }
    for (std::ptrdiff_t n = 0; n < count * kWordColumns; n += 16) __builtin_prefetch(word + kAhead + n, 0, 2);
    word += count * kWordColumns;
    at += kWordColumns;
    ++a_scales;
  }
}

// Columns of a block from a multiple of 16 on: each panel by all rows, which are less than B.
template <int Bits, class Zero, class Dot>
GCRT_NOINLINE void multiply_rounded_block(std::ptrdiff_t depth, const BlockWeights<Bits, Zero>& b,
                                          const std::int8_t* rounded, const Block& block,
                                          const TileEpilogue<Dot>& epilogue) {
  const std::ptrdiff_t row_size = rounded_row_size(depth, b.block);
  alignas(64) float sums[4 * kWordColumns];
  for (std::ptrdiff_t panel = block.column_begin / kWordColumns; panel * kWordColumns < block.column_end;
       ++panel) {
    const std::ptrdiff_t n = larger(block.column_begin, panel * kWordColumns);
    const std::ptrdiff_t skipped = n - panel * kWordColumns;
    const int columns = static_cast<int>(smaller(block.column_end - n, kWordColumns - skipped));
    for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
      const std::ptrdiff_t left = block.row_end - m;
      const int rows = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      const std::int8_t* a = rounded + m * row_size;
      if (rows == 4) {
        multiply_rounded_panel<4>(depth, a, b, panel, sums);
      } else if (rows == 2) {
        multiply_rounded_panel<2>(depth, a, b, panel, sums);
      } else {
        multiply_rounded_panel<1>(depth, a, b, panel, sums);
      }
      epilogue.block(sums + skipped, kWordColumns, rows, columns, m, n, epilogue.epilogue);
      m += rows;
    }
  }
}

// Work items [work_begin, work_end) of gemm_work_items<Tile>(rows, columns, blocking), of all rows that
// round_rows() has written.
template <class Tile = UsualTile, int Bits, class Zero, class E>
inline void gemm_rounded(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth,
                         const BlockWeights<Bits, Zero>& b, const std::int8_t* rounded,
                         const Blocking& blocking, const E& epilogue, std::ptrdiff_t work_begin,
                         std::ptrdiff_t work_end) {
  using Dot = FmaDot<float, Tile>;
  const TileEpilogue<Dot> finish = tile_epilogue<Dot>(epilogue);
  WorkItems<Dot>(rows, columns, 1, blocking)
      .for_each_block(work_begin, work_end, [&](int, const Block& block) {
        multiply_rounded_block(depth, b, rounded, block, finish);
      });
}

}  // namespace GCRT_NAMESPACE
