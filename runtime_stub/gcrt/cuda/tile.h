// What one warp does with two tiles in shared memory: fragments, products, and the hand-over of sums.
//
// A tile lies in shared memory as slabs of kDepth values of k: [slab][row][kDepth]. A slab row is 64 bytes of
// float, 32 bytes of 16-bit or 8-bit values. Thread (g, t) = (lane / 4, lane % 4) of a warp reads a quarter
// of slab row g in one access, so that the 32 threads read 8 whole rows: no bank conflict, and no ldmatrix.
// The tensor cores' own order of k inside a fragment is another one, but a sum does not see the order of its
// terms as long as both operands use the same: value 4t + i of a slab row takes the place of value t, t + 4
// (TF32), or 2t, 2t + 1, 2t + 8, 2t + 9 (16 bits).
#pragma once

#include "gcrt/cuda/device.h"
#include "gcrt/cuda/tile_model.h"
#include "gcrt/pack.h"

// A loop that must stay one: its body holds as many registers as there are.
#if defined(__CUDACC__)
#define GCRT_NO_UNROLL _Pragma("unroll 1")
#else
#define GCRT_NO_UNROLL
#endif

namespace GCRT_NAMESPACE {

// Where tensor cores do not multiply a precision the same tiles are summed by FFMA. With -DGCRT_CUDA_SIMT all
// floats are.
#if defined(GCRT_CUDA_SIMT)
template <Precision P>
constexpr bool kHasTensorCores = false;
#else
template <Precision P>
constexpr bool kHasTensorCores = has_tensor_cores(GCRT_SM_80 != 0 ? 80 : 75, P);
#endif

// a * b + c in one rounding on the device, where it is one instruction. Integers wrap.
template <class V>
GCRT_INLINE V multiply_add(V a, V b, V c) {
  if constexpr (kLanesOf < V >> 1) {
    GCRT_UNROLL
    for (int i = 0; i < kLanesOf<V>; ++i) c[i] = multiply_add(a[i], b[i], c[i]);
    return c;
  } else if constexpr (std::is_integral<V>::value) {
    return static_cast<V>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b) +
                          static_cast<std::uint32_t>(c));
  } else {
#if defined(__CUDA_ARCH__)
    return ::fmaf(a, b, c);
#else
    return a * b + c;
#endif
  }
}

template <Tile kTile>
struct TileConfig {
  static constexpr TileSize kSize = size_of(kTile);
  static constexpr int kRows = kSize.rows;
  static constexpr int kColumns = kSize.columns;
  static constexpr int kStages = kSize.stages;
  static constexpr int kThreads = kSize.threads();
  static constexpr int kWarpRows = kRows / kSize.warps_along_rows;           // of one warp
  static constexpr int kWarpColumns = kColumns / kSize.warps_along_columns;  // of one warp
  static constexpr int kRowFragments = kWarpRows / 16;
  static constexpr int kColumnFragments = kWarpColumns / 8;
  static constexpr int kSumStride = kColumns + 8;  // of the sums in shared memory; avoids bank conflicts
};

// Position of a thread in the fragments of its warp.
struct LanePosition {
  int group;   // row of a slab, 0 to 7
  int thread;  // quarter of a slab row, 0 to 3
};
GCRT_DEVICE LanePosition lane_position() {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  return {lane >> 2, lane & 3};
}

// Where B lies as [k][columns] instead, as it comes from a matrix whose columns are contiguous, column n of
// row k is stored at n ^ 8 * (k / 4 % 4): again no bank conflict.
template <int kColumns>
GCRT_INLINE int depth_major_offset(int k, int n) {
  static_assert(kColumns % 32 == 0, "the exchange stays inside 32 columns");
  return k * kColumns + (n ^ (((k >> 2) & 3) << 3));
}

// Four consecutive k of a slab row as float.
template <class T>
GCRT_INLINE void read_quarter(float (&values)[4], const T* quarter) {
  const Pack<float, 4> pack = load_as_float(Lanes<4>{}, quarter);
  GCRT_UNROLL
  for (int i = 0; i < 4; ++i) values[i] = pack[i];
}

// Views of the two slabs that a warp multiplies. `kColumns` is the row length of a depth-major slab of B, 0
// where B lies as rows of k.
template <class T, int kDepth>
struct RowSlab {
  const T* data;  // of the warp's first row
  GCRT_INLINE const T* row(int r) const { return data + r * kDepth; }
  GCRT_DEVICE void quarter(float (&values)[4], int r, int t) const { read_quarter(values, row(r) + 4 * t); }
};
template <class T, int kColumns>
struct DepthMajorSlab {
  const T* data;  // of the slab
  int first;      // the warp's first column
  GCRT_DEVICE void quarter(float (&values)[4], int n, int t) const {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = data[depth_major_offset<kColumns>(4 * t + i, first + n)];
  }
};

// Sums of fragments: thread (g, t) holds rows g, g + 8 and columns 2t, 2t + 1 of every 16 x 8 fragment.
template <class T, int kRowFragments, int kColumnFragments>
using Sums = T[kRowFragments][kColumnFragments][4];

// Adds the products of one slab of 16 values of k to the sums of a warp, without tensor cores.
template <int M, int N, class A, class B>
GCRT_DEVICE void multiply_floats_simt(float (&sums)[M][N][4], const A& a, const B& b, LanePosition at) {
  GCRT_NO_UNROLL
  for (int step = 0; step < 4; ++step) {
    const int t = (step + (at.group >> 1)) & 3;  // the groups read different banks
    float rows[M][2][4];
    GCRT_UNROLL
    for (int i = 0; i < M; ++i) {
      a.quarter(rows[i][0], i * 16 + at.group, t);
      a.quarter(rows[i][1], i * 16 + at.group + 8, t);
    }
    GCRT_UNROLL
    for (int j = 0; j < N; ++j) {
      GCRT_UNROLL
      for (int column = 0; column < 2; ++column) {
        float values[4];
        b.quarter(values, j * 8 + 2 * at.thread + column, t);
        GCRT_UNROLL
        for (int i = 0; i < M; ++i) {
          GCRT_UNROLL
          for (int k = 0; k < 4; ++k) {
            sums[i][j][column] = multiply_add(rows[i][0][k], values[k], sums[i][j][column]);
            sums[i][j][2 + column] = multiply_add(rows[i][1][k], values[k], sums[i][j][2 + column]);
          }
        }
      }
    }
  }
}

// TF32: a slab is two products of k = 8. With kIsSplit every operand is the sum of two TF32 numbers, and the
// product of the two small ones is dropped.
template <bool kIsSplit, int M, int N, class A, class B>
GCRT_DEVICE void multiply_tf32(float (&sums)[M][N][4], const A& a, const B& b, LanePosition at) {
  float rows[M][2][4];
  float columns[N][4];
  GCRT_UNROLL
  for (int i = 0; i < M; ++i) {
    a.quarter(rows[i][0], i * 16 + at.group, at.thread);
    a.quarter(rows[i][1], i * 16 + at.group + 8, at.thread);
  }
  GCRT_UNROLL
  for (int j = 0; j < N; ++j) b.quarter(columns[j], j * 8 + at.group, at.thread);
  GCRT_UNROLL
  for (int step = 0; step < 2; ++step) {
    std::uint32_t a_big[M][4], b_big[N][2];
    GCRT_UNROLL
    for (int i = 0; i < M; ++i) {
      GCRT_UNROLL
      for (int r = 0; r < 4; ++r) a_big[i][r] = float_to_tf32(rows[i][r & 1][2 * step + (r >> 1)]);
    }
    GCRT_UNROLL
    for (int j = 0; j < N; ++j) {
      GCRT_UNROLL
      for (int r = 0; r < 2; ++r) b_big[j][r] = float_to_tf32(columns[j][2 * step + r]);
    }
    if constexpr (kIsSplit) {
      std::uint32_t a_small[M][4], b_small[N][2];
      GCRT_UNROLL
      for (int i = 0; i < M; ++i) {
        GCRT_UNROLL
        for (int r = 0; r < 4; ++r) {
          a_small[i][r] = float_to_tf32(rows[i][r & 1][2 * step + (r >> 1)] - bit_cast<float>(a_big[i][r]));
        }
      }
      GCRT_UNROLL
      for (int j = 0; j < N; ++j) {
        GCRT_UNROLL
        for (int r = 0; r < 2; ++r) {
          b_small[j][r] = float_to_tf32(columns[j][2 * step + r] - bit_cast<float>(b_big[j][r]));
        }
      }
      mma_tf32_by_parts(sums, a_big, a_small, b_big, b_small);
    } else {
      mma_tf32_tiles(sums, a_big, b_big);
    }
  }
}

// The 16-bit type in which a precision stores its operands.
template <Precision P>
using StoredHalf = std::conditional_t<P == Precision::kFp16, Half, BFloat16>;

// Two values rounded into one register.
template <Precision P>
GCRT_INLINE std::uint32_t pack_pair(float low, float high) {
  alignas(4) StoredHalf<P> pair[2];
  const Pack<float, 2> values = {low, high};
  store_from_float(Lanes<2>{}, pair, values);
  std::uint32_t word;
  memcpy(&word, pair, sizeof(word));
  return word;
}

// The two registers that a quarter of a slab row gives to a product of 16-bit values.
template <Precision P, class S>
GCRT_DEVICE void read_pairs(std::uint32_t& low, std::uint32_t& high, const S& slab, int row, int t) {
  float values[4];
  slab.quarter(values, row, t);
  low = pack_pair<P>(values[0], values[1]);
  high = pack_pair<P>(values[2], values[3]);
}
// Values that are stored in the precision of the product pass through as they are.
template <class T, int kDepth>
GCRT_INLINE void read_stored_pairs(std::uint32_t& low, std::uint32_t& high, const RowSlab<T, kDepth>& slab,
                                   int row, int t) {
  static_assert(sizeof(T) == 2, "16-bit values");
  const auto words = load(Lanes<2>{}, reinterpret_cast<const std::uint32_t*>(slab.row(row) + 4 * t));
  low = words[0];
  high = words[1];
}
template <Precision P>
GCRT_DEVICE void read_pairs(std::uint32_t& low, std::uint32_t& high, const RowSlab<Half, 16>& slab, int row,
                            int t) {
  static_assert(P == Precision::kFp16, "weights are stored in the precision of the product");
  read_stored_pairs(low, high, slab, row, t);
}
template <Precision P>
GCRT_DEVICE void read_pairs(std::uint32_t& low, std::uint32_t& high, const RowSlab<BFloat16, 16>& slab,
                            int row, int t) {
  static_assert(P == Precision::kBf16, "weights are stored in the precision of the product");
  read_stored_pairs(low, high, slab, row, t);
}

template <Precision P, int M, int N, class A, class B>
GCRT_DEVICE void multiply_16_bits(float (&sums)[M][N][4], const A& a, const B& b, LanePosition at) {
  std::uint32_t rows[M][4], columns[N][2];
  GCRT_UNROLL
  for (int i = 0; i < M; ++i) {
    read_pairs<P>(rows[i][0], rows[i][2], a, i * 16 + at.group, at.thread);
    read_pairs<P>(rows[i][1], rows[i][3], a, i * 16 + at.group + 8, at.thread);
  }
  GCRT_UNROLL
  for (int j = 0; j < N; ++j) {
    read_pairs<P>(columns[j][0], columns[j][1], b, j * 8 + at.group, at.thread);
  }
  if constexpr (P == Precision::kFp16) {
    mma_f16_tiles(sums, rows, columns);
  } else {
    mma_bf16_tiles(sums, rows, columns);
  }
}

// Products of floats in one of the precisions.
template <Precision P>
struct FloatProduct {
  using Sum = float;
  static constexpr int kDepth = 16;  // of a slab

  template <int M, int N, class A, class B>
  GCRT_DEVICE static void multiply(float (&sums)[M][N][4], const A& a, const B& b, LanePosition at) {
    if constexpr (!kHasTensorCores<P>) {
      multiply_floats_simt(sums, a, b, at);
    } else if constexpr (P == Precision::kFp32 || P == Precision::kTf32) {
      multiply_tf32<P == Precision::kFp32>(sums, a, b, at);
    } else {
      multiply_16_bits<P>(sums, a, b, at);
    }
  }
};

// Calls the epilogue for columns n to n + count - 1 (at most 4) of row m, in fours or pairs where it takes
// them. values(lanes, i) is the pack of sums from column n + i on.
template <class E, class F>
GCRT_INLINE void finish_columns(const E& epilogue, const F& values, int count, std::ptrdiff_t m,
                                std::ptrdiff_t n) {
  constexpr int L = E::kMaxLanes < 4 ? E::kMaxLanes : 4;
  if constexpr (L > 1) {
    if (count == 4 && n % L == 0) {
      GCRT_UNROLL
      for (int i = 0; i < 4; i += L) epilogue(Lanes<L>{}, values(Lanes<L>{}, i), m, n + i);
      return;
    }
  }
  GCRT_NO_UNROLL
  for (int i = 0; i < count; ++i) epilogue(Lanes<1>{}, values(Lanes<1>{}, i), m, n + i);
}

// The same for four sums in registers.
template <class E, class V>
GCRT_INLINE void finish_pack(const E& epilogue, V sums, int count, std::ptrdiff_t m, std::ptrdiff_t n) {
  if constexpr (E::kMaxLanes >= 4) {
    if (count == 4 && n % 4 == 0) {
      epilogue(Lanes<4>{}, sums, m, n);
      return;
    }
  }
  alignas(16) ElementOf<V> stored[4];
  store(Lanes<4>{}, stored, sums);
  finish_columns(
      epilogue, [&](auto lanes, int i) GCRT_LAMBDA_INLINE { return load(lanes, stored + i); }, count, m, n);
}

// A block's sums go through shared memory, so that the epilogue runs over whole rows and is compiled once.
template <class Config, class T>
GCRT_DEVICE void park_sums(const T (&sums)[Config::kRowFragments][Config::kColumnFragments][4], T* parked,
                           int warp_row, int warp_column) {
  const LanePosition at = lane_position();
  GCRT_UNROLL
  for (int i = 0; i < Config::kRowFragments; ++i) {
    GCRT_UNROLL
    for (int j = 0; j < Config::kColumnFragments; ++j) {
      GCRT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int row = warp_row + i * 16 + h * 8 + at.group;
        T* const to = parked + row * Config::kSumStride + warp_column + j * 8 + 2 * at.thread;
        to[0] = sums[i][j][2 * h];
        to[1] = sums[i][j][2 * h + 1];
      }
    }
  }
}

// Rows [0, rows) and columns [0, columns) of the block's sums, whose first element is (m, n).
template <class Config, class E, class T>
GCRT_DEVICE void finish_tile(const E& epilogue, const T* parked, int rows, int columns, std::ptrdiff_t m,
                             std::ptrdiff_t n) {
  constexpr int kQuads = Config::kColumns / 4;
  for (int i = static_cast<int>(threadIdx.x); i < Config::kRows * kQuads; i += Config::kThreads) {
    const int row = i / kQuads;
    const int column = i % kQuads * 4;
    if (row >= rows || column >= columns) continue;
    const int count = columns - column < 4 ? columns - column : 4;
    const T* const sums = parked + row * Config::kSumStride + column;
    finish_columns(
        epilogue, [sums](auto lanes, int j) GCRT_LAMBDA_INLINE { return load(lanes, sums + j); }, count,
        m + row, n + column);
  }
}

}  // namespace GCRT_NAMESPACE
