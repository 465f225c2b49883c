// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Integer contractions of cores without vectors, exact in int32: bytes less their zero point times rows of
// constant weights, with as many sums as such a core has registers for. Everything but the bytes' type is
// data, so that one copy of the code serves all layers; an epilogue is called for a block of sums.
//
// With DSP instructions four values of k are two pairs of halves (gcrt/isa/halves.h); else each is one.
// Weights are [columns][words of 4 k], zero padded, int8_t or, where they do not fit, int16_t.
#pragma once

#include <cstddef>

#include "gcrt/cpu/product/sum_epilogue.h"
#include "gcrt/isa/halves.h"
#include "gcrt/isa/thumb_sums.h"

namespace GCRT_NAMESPACE {

GCRT_INLINE std::int32_t word_of_bytes(const void* bytes) {
  std::int32_t word;
  __builtin_memcpy(&word, bytes, sizeof(word));
  return word;
}

// Two pairs of halves from four weights: those of even k, and of odd k.
struct WeightPairs {
  std::int32_t even, odd;
};
GCRT_INLINE WeightPairs weight_pairs(const std::int8_t* w) {
  const std::int32_t word = word_of_bytes(w);
  return {even_bytes(word), odd_bytes(word)};
}
GCRT_INLINE WeightPairs weight_pairs(const std::int16_t* w) {
  return {halves(w[0], w[2]), halves(w[1], w[3])};
}

// Two rows of values less their zero point, as int16, side by side so that one register walks along both.
// With halves each four k are [row]{k, k + 2, k + 1, k + 3}, else each k is [row].
template <bool InHalves>
struct LineWriter {
  std::int16_t* row;  // element 0 of one of the rows
  std::ptrdiff_t k = 0;

  LineWriter(std::int32_t* lines, int i)
      : row(reinterpret_cast<std::int16_t*>(lines) + (InHalves ? 4 * i : i)) {}

  GCRT_INLINE void put(std::int32_t value) {
    const std::ptrdiff_t place = InHalves ? (k & ~std::ptrdiff_t{3}) * 2 + (k & 1) * 2 + (k >> 1 & 1) : 2 * k;
    row[place] = static_cast<std::int16_t>(value);
    ++k;
  }
  GCRT_INLINE void put_zeros(std::ptrdiff_t count) {
    for (; count > 0; --count) put(0);
  }
  template <class T>
  GCRT_INLINE void put_values(const T* from, std::ptrdiff_t count, std::int32_t zero) {
    if constexpr (InHalves) {
      const std::int32_t less = halves(-zero, -zero);
      for (; count > 0 && k % 4 != 0; --count) put(*from++ - zero);
      auto* to = reinterpret_cast<std::int32_t*>(row + 2 * k);
      for (; count >= 4; count -= 4, k += 4, from += 4, to += 4) {
        const std::int32_t word = word_of_bytes(from);
        to[0] = even_bytes<T>(word, less);
        to[1] = odd_bytes<T>(word, less);
      }
    }
    for (; count > 0; --count) put(*from++ - zero);
  }
};

// sums[column][row] of both rows of `lines`, `words` times four k long, and the columns from `w` on: with
// halves two columns together, else one, whose sums and operands eight registers hold.
template <bool InHalves, class TW>
GCRT_NOINLINE inline void multiply_lines(const std::int32_t* lines, const TW* w, std::ptrdiff_t words,
                                         int columns, std::int32_t* sums) {
  const std::int32_t* const end = lines + 4 * words;
  int j = 0;
#if defined(GCRT_SUMS_IN_HIGH_REGISTERS)
  if constexpr (!InHalves && sizeof(TW) == 1) {
    for (; j + 2 <= columns; j += 2, w += 8 * words, sums += 2 * kLineRows) {
      sum_pairs(lines, w, w + 4 * words, 4 * words, sums);
    }
  }
#endif
  while (j < columns) {
    const TW* from = w;
    const std::int32_t* x = lines;
    std::int32_t s00 = 0, s01 = 0;
    if constexpr (InHalves) {
      const std::ptrdiff_t step = j + 1 < columns ? 4 * words : 0;
      std::int32_t s10 = 0, s11 = 0;
      do {
        const WeightPairs a = weight_pairs(from), b = weight_pairs(from + step);
        s00 = add_both(s00, x[0], a.even);
        s10 = add_both(s10, x[0], b.even);
        s00 = add_both(s00, x[1], a.odd);
        s10 = add_both(s10, x[1], b.odd);
        s01 = add_both(s01, x[2], a.even);
        s11 = add_both(s11, x[2], b.even);
        s01 = add_both(s01, x[3], a.odd);
        s11 = add_both(s11, x[3], b.odd);
        from += 4;
        x += 4;
      } while (x != end);
      sums[2] = s10;
      sums[3] = s11;
    } else {
      do {
        const std::int32_t pair = *x++, a = *from++;
        s00 = add_product(s00, lower_half(pair), a);
        s01 = add_product(s01, upper_half(pair), a);
      } while (x != end);
    }
    sums[0] = s00;
    sums[1] = s01;
    constexpr int kTogether = InHalves ? 2 : 1;
    j += kTogether;
    w += kTogether * 4 * words;
    sums += kTogether * kLineRows;
  }
}

// sums[column] of one row that is read as it lies, and the columns from `w` on.
template <bool InHalves, class T, class TW>
GCRT_NOINLINE inline void multiply_row(const T* row, std::int32_t zero, const TW* w, std::ptrdiff_t depth,
                                       int columns, std::int32_t* sums) {
  const std::ptrdiff_t stride = line_words(depth);
  const std::int32_t less = halves(-zero, -zero);
  const T* const end = row + depth;
  const T* const whole = row + (InHalves ? depth / 4 * 4 : 0);
  int j = 0;
#if defined(GCRT_SUMS_IN_HIGH_REGISTERS)
  if constexpr (!InHalves && sizeof(TW) == 1) {
    for (; j + 3 <= columns; j += 3, w += 3 * stride) {
      sum_three_columns(row, zero, w, stride, depth, sums + j);
    }
  }
#endif
  for (int together; j < columns; j += together, w += together * stride) {
    together = columns - j < 4 ? 1 : 4;
    const std::ptrdiff_t step = together == 4 ? stride : 0, third = 3 * step;
    const TW* from = w;
    const T* x = row;
    std::int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    if (x != whole) {  // a test behind the body, which costs one branch less at -Os
      do {
        const std::int32_t word = word_of_bytes(x);
        const std::int32_t even = even_bytes<T>(word, less), odd = odd_bytes<T>(word, less);
        const auto add = [&](std::int32_t sum, const TW* weights) GCRT_LAMBDA_INLINE {
          const WeightPairs pairs = weight_pairs(weights);
          return add_both(add_both(sum, even, pairs.even), odd, pairs.odd);
        };
        s0 = add(s0, from);
        s1 = add(s1, from + step);
        s2 = add(s2, from + 2 * step);
        s3 = add(s3, from + third);
        x += 4;
        from += 4;
      } while (x != whole);
    }
    for (; x != end; ++x, ++from) {
      const std::int32_t value = *x - zero;
      s0 = add_product(s0, value, from[0]);
      s1 = add_product(s1, value, from[step]);
      s2 = add_product(s2, value, from[2 * step]);
      s3 = add_product(s3, value, from[third]);
    }
    sums[j] = s0;
    if (together == 1) continue;
    sums[j + 1] = s1;
    sums[j + 2] = s2;
    sums[j + 3] = s3;
  }
}

// Rows of A, `lda` elements apart, times all columns.
template <bool InHalves, class T, class TW>
GCRT_NOINLINE inline void multiply_rows(std::ptrdiff_t rows, int columns, std::ptrdiff_t depth, const T* a,
                                        std::ptrdiff_t lda, std::int32_t zero, const TW* w,
                                        const SumEpilogue<std::int32_t>& epilogue) {
  for (std::ptrdiff_t m = 0; m < rows; ++m, a += lda) {
    for (int n = 0; n < columns; n += kSumColumns) {
      const int width = columns - n < kSumColumns ? columns - n : kSumColumns;
      std::int32_t sums[kSumColumns];
      multiply_row<InHalves>(a, zero, w + n * line_words(depth), depth, width, sums);
      epilogue.finish(epilogue.epilogue, sums, 1, 1, width, m, n);
    }
  }
}

// The epilogue gets the sums over k of (a[m * lda + k] - zero) * w[n][k].
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void gemm_scalar(std::ptrdiff_t rows, int columns, std::ptrdiff_t depth, const T* a,
                        std::ptrdiff_t lda, T zero, const TW* w, const E& epilogue) {
  multiply_rows<InHalves>(rows, columns, depth, a, lda, zero, w, sum_epilogue<std::int32_t>(epilogue));
}

}  // namespace GCRT_NAMESPACE
