// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The tile unit of x86-64 (AMX): eight registers of up to 16 rows of 64 bytes, and products of two of them
// that are added to a third. Two bodies: the instructions, and, where GCRT_EMULATE_TILES is defined, loops
// that read and write the same bytes and trap where the instructions would fault, for tests on any machine.
// Source: Intel SDM volume 1, chapter 18, and volume 2, LDTILECFG to TDPBSSD and TDPBF16PS.
#pragma once

#include "gcrt/config.h"

// g++ has another name for it than clang before 17. Only of Linux it is known how a process asks for the unit
// (cpu/tile_features.h). Rows are read and written as vectors of 64 bytes.
#if !GCRT_CUDA && GCRT_VECTOR_BYTES == 64 && \
    (defined(GCRT_EMULATE_TILES) ||          \
     ((defined(__AMX_INT8__) || defined(__AMXINT8__)) && defined(__linux__) && defined(__LP64__)))
#define GCRT_HAS_TILES 1
#else
#define GCRT_HAS_TILES 0
#endif

namespace GCRT_NAMESPACE {

// Whether kernels multiply in tiles where their plan says so.
constexpr bool kInTiles = GCRT_HAS_TILES != 0;

#if GCRT_HAS_TILES

constexpr int kTileRows = 16;      // of a register, at most
constexpr int kTileRowBytes = 64;  // at most
constexpr int kTileRegisters = 8;

// The shape of every register, as LDTILECFG reads it.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};  // both are 0 where there is no register
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64, "LDTILECFG reads 64 bytes");

#ifdef GCRT_EMULATE_TILES

class TileUnit {
 public:
  TileUnit() = default;
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;

  // The unit itself takes palette 0, which leaves no register a shape, and a first row, with which an
  // interrupted load goes on; no kernel means either.
  void configure(const TileShapes& shapes) {
    check(shapes.palette == 1 && shapes.start_row == 0);
    for (const std::uint8_t byte : shapes.reserved) check(byte == 0);
    for (int i = 0; i < 16; ++i) {
      const bool is_none = shapes.rows[i] == 0 && shapes.row_bytes[i] == 0;
      check(is_none || (i < kTileRegisters && shapes.rows[i] > 0 && shapes.rows[i] <= kTileRows &&
                        shapes.row_bytes[i] > 0 && shapes.row_bytes[i] <= kTileRowBytes));
    }
    shapes_ = shapes;
    __builtin_memset(registers_, 0, sizeof(registers_));
  }
  // Row i lies at `from` + i * stride bytes.
  template <int T>
  void load(const void* from, std::ptrdiff_t stride) {
    check(shapes_.rows[T] > 0);
    __builtin_memset(registers_[T], 0, sizeof(registers_[T]));
    for (int i = 0; i < shapes_.rows[T]; ++i) {
      __builtin_memcpy(registers_[T][i], static_cast<const char*>(from) + i * stride, shapes_.row_bytes[T]);
    }
  }
  template <int T>
  void store(void* to, std::ptrdiff_t stride) const {
    check(shapes_.rows[T] > 0);
    for (int i = 0; i < shapes_.rows[T]; ++i) {
      __builtin_memcpy(static_cast<char*>(to) + i * stride, registers_[T][i], shapes_.row_bytes[T]);
    }
  }
  // S += A . B modulo 2^32: words of four bytes of A, unsigned or signed ones,
  // times those of signed bytes of B.
  template <bool Signed, int S, int A, int B>
  void multiply_add() {
    check_factors<S, A, B>();
    for (int m = 0; m < shapes_.rows[S]; ++m) {
      for (int n = 0; n < shapes_.row_bytes[S]; n += 4) {
        std::uint32_t sum;
        __builtin_memcpy(&sum, registers_[S][m] + n, 4);
        for (int k = 0; k < shapes_.row_bytes[A]; ++k) {
          const std::uint8_t a = registers_[A][m][k];
          const int factor = Signed ? static_cast<std::int8_t>(a) : a;
          sum +=
              static_cast<std::uint32_t>(factor * static_cast<std::int8_t>(registers_[B][k / 4][n + k % 4]));
        }
        __builtin_memcpy(registers_[S][m] + n, &sum, 4);
      }
    }
  }
  // S += A . B in float32, where words are two bfloat16. The products of a row and a column are summed from
  // zero on, those of even and of odd k apart, each by one fused multiply-add; then the two sums; then S.
  // Every result is rounded to nearest even. Denormal numbers are read as zeros, and become zeros.
  template <int S, int A, int B>
  void multiply_add_bfloat16() {
    check_factors<S, A, B>();
    for (int m = 0; m < shapes_.rows[S]; ++m) {
      for (int n = 0; n < shapes_.row_bytes[S]; n += 4) {
        float sums[2] = {};
        for (int k = 0; k < shapes_.row_bytes[A]; k += 2) {
          const float a = bfloat16_at(registers_[A][m] + k);
          const float b = bfloat16_at(registers_[B][k / 4] + n + k % 4);
          float& sum = sums[k / 2 % 2];
          sum = rounded(sum_to_odd(double{a} * b, sum));  // the product is exact
        }
        float sum;
        __builtin_memcpy(&sum, registers_[S][m] + n, 4);
        sum = rounded(sum_to_odd(flushed(sum), rounded(sum_to_odd(sums[0], sums[1]))));
        __builtin_memcpy(registers_[S][m] + n, &sum, 4);
      }
    }
  }

 private:
  template <int S, int A, int B>
  void check_factors() const {
    static_assert(S != A && A != B && B != S, "the instruction refuses equal registers");
    check(shapes_.rows[S] > 0 && shapes_.rows[S] == shapes_.rows[A]);
    check(shapes_.row_bytes[S] == shapes_.row_bytes[B] && shapes_.row_bytes[S] % 4 == 0);
    check(shapes_.row_bytes[A] == 4 * shapes_.rows[B]);
  }
  static float flushed(float value) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    return (bits & 0x7f800000u) == 0 ? value * 0 : value;
  }
  static float bfloat16_at(const std::uint8_t* from) {
    std::uint16_t half;
    __builtin_memcpy(&half, from, 2);
    const std::uint32_t bits = std::uint32_t{half} << 16;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return flushed(value);
  }
  // a + b, or of the two doubles around it the one whose last bit is 1, which becomes the same float as the
  // exact sum (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
  static double sum_to_odd(double a, double b) {
    const double sum = a + b, part = sum - a;
    const double error = (a - (sum - part)) + (b - part);
    std::uint64_t bits;
    __builtin_memcpy(&bits, &sum, 8);
    if ((!(error > 0) && !(error < 0)) || (bits & 1) != 0) return sum;
    bits += (error > 0) == (sum > 0) ? std::uint64_t{1} : ~std::uint64_t{0};
    double odd;
    __builtin_memcpy(&odd, &bits, 8);
    return odd;
  }
  static float rounded(double value) {
    constexpr double kNormal = 0x1p-126 - 0x1p-151;  // and what is nearer to zero becomes no normal number
    return static_cast<float>(value > -kNormal && value < kNormal ? value * 0 : value);
  }
  static void check(bool is_allowed) {
    if (!is_allowed) __builtin_trap();
  }
  TileShapes shapes_ = {0, 0, {}, {}, {}};  // no register has a shape
  std::uint8_t registers_[kTileRegisters][kTileRows][kTileRowBytes] = {};
};

#else

// Compilers do not know of the registers, so nobody else may use the unit while one of these exists; when it
// is gone the registers are as nobody had used them, and a switch of threads saves none.
class TileUnit {
 public:
  TileUnit() = default;
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;
  GCRT_INLINE ~TileUnit() { asm volatile("tilerelease" ::: "memory"); }

  static GCRT_INLINE void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
  template <int T>
  static GCRT_INLINE void load(const void* from, std::ptrdiff_t stride) {
    asm volatile("tileloadd {(%0,%1,1), %%tmm%c2|tmm%c2, [%0+%1*1]}" ::"r"(from), "r"(stride), "i"(T)
                 : "memory");
  }
  template <int T>
  static GCRT_INLINE void store(void* to, std::ptrdiff_t stride) {
    asm volatile("tilestored {%%tmm%c2, (%0,%1,1)|[%0+%1*1], tmm%c2}" ::"r"(to), "r"(stride), "i"(T)
                 : "memory");
  }
  template <bool Signed, int S, int A, int B>
  static GCRT_INLINE void multiply_add() {
    if constexpr (Signed) {
      asm volatile("tdpbssd {%%tmm%c2, %%tmm%c1, %%tmm%c0|tmm%c0, tmm%c1, tmm%c2}" ::"i"(S), "i"(A), "i"(B));
    } else {
      asm volatile("tdpbusd {%%tmm%c2, %%tmm%c1, %%tmm%c0|tmm%c0, tmm%c1, tmm%c2}" ::"i"(S), "i"(A), "i"(B));
    }
  }
  template <int S, int A, int B>
  static GCRT_INLINE void multiply_add_bfloat16() {
    asm volatile("tdpbf16ps {%%tmm%c2, %%tmm%c1, %%tmm%c0|tmm%c0, tmm%c1, tmm%c2}" ::"i"(S), "i"(A), "i"(B));
  }
};

#endif
#endif

}  // namespace GCRT_NAMESPACE
