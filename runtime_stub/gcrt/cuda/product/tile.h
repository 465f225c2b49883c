// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What one warp does with two tiles in shared memory: fragments, products, and the hand-over of sums.
//
// A tile lies in shared memory as slabs of kDepth values of k: [slab][row][kDepth]. A slab row is 64 bytes of
// float, 32 bytes of 16-bit or 8-bit values. Two operands of 16 bits are read by ldmatrix, eight rows of 16
// bytes at a time, which must not share a bank: the halves of rows 4 to 7 of every eight are exchanged.
//
// Where one of them is float, thread (g, t) = (lane / 4, lane % 4) of a warp reads a quarter of slab row g in
// one access, so that the 32 threads read 8 whole rows: no bank conflict either. The tensor cores' own order
// of k inside a fragment is another one, but a sum does not see the order of its terms as long as both
// operands use the same: value 4t + i of a slab row takes the place of value t, t + 4 (TF32), or 2t, 2t + 1,
// 2t + 8, 2t + 9 (16 bits).
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/product/tile_model.h"
#include "gcrt/pack.h"

// A loop that must stay one: its body holds as many registers as there are.
#if defined(__CUDACC__)
#define GCRT_NO_UNROLL _Pragma("unroll 1")
#else
#define GCRT_NO_UNROLL
#endif

namespace GCRT_NAMESPACE {

// Where tensor cores do not multiply a precision the same tiles are summed by FFMA.
template <Precision P>
constexpr bool kHasTensorCores = has_tensor_cores(GCRT_SM_80 != 0 ? 80 : 75, P);

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

// Where value k of a row of a slab lies, from the slab's first row;
// a row 8 further on is as many elements on.
template <class T, int kDepth>
GCRT_INLINE int slab_offset(int row, int k) {
  if constexpr (sizeof(T) == 2 && kDepth == 16) return row * kDepth + (k ^ (row << 1 & 8));
  return row * kDepth + k;
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
  using Element = T;
  const T* data;  // of the warp's first row, a multiple of 8
  GCRT_INLINE const T* at(int r, int k) const { return data + slab_offset<T, kDepth>(r, k); }
  GCRT_DEVICE void quarter(float (&values)[4], int r, int t) const { read_quarter(values, at(r, 4 * t)); }
};
template <class T, int kColumns>
struct DepthMajorSlab {
  using Element = T;
  const T* data;  // of the slab
  int first;      // the warp's first column
  GCRT_DEVICE void quarter(float (&values)[4], int n, int t) const {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = data[depth_major_offset<kColumns>(4 * t + i, first + n)];
  }
};

// Sums of a warp: thread (g, t) holds rows g, g + 8 and columns 2t, 2t + 1 of every 16 x 8 fragment.
template <class T, int M, int N>
struct PlainSums {
  T sums[M][N][4] = {};
  GCRT_INLINE T value(int i, int j, int k) const { return sums[i][j][k]; }
};

// The same for floats by parts. Corrections that are no number stand beside a sum that is none: what is not
// finite has no rest.
template <int M, int N>
struct SplitSums {
  float sums[M][N][4] = {};
  float corrections[M][N][4] = {};
  GCRT_INLINE float value(int i, int j, int k) const {
    const float correction = corrections[i][j][k];
    return correction == correction ? sums[i][j][k] + correction : sums[i][j][k];
  }
};

// Adds the products of one slab of 16 values of k to the sums of a warp, without tensor cores.
template <int M, int N, class A, class B>
GCRT_DEVICE void multiply_floats_simt(PlainSums<float, M, N>& all, const A& a, const B& b, LanePosition at) {
  auto& sums = all.sums;
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

// The operands of a slab as floats: the fragments of 16 rows of A, and of 8 columns of B.
template <int M, int N>
struct FloatFragments {
  float rows[M][2][4];
  float columns[N][4];

  template <class A, class B>
  GCRT_DEVICE FloatFragments(const A& a, const B& b, LanePosition at) {
    GCRT_UNROLL
    for (int i = 0; i < M; ++i) {
      a.quarter(rows[i][0], i * 16 + at.group, at.thread);
      a.quarter(rows[i][1], i * 16 + at.group + 8, at.thread);
    }
    GCRT_UNROLL
    for (int j = 0; j < N; ++j) b.quarter(columns[j], j * 8 + at.group, at.thread);
  }
};

// TF32: a slab is two products of k = 8. Weights of TF32 are rounded already.
template <bool kIsRounded, int M, int N, class A, class B>
GCRT_DEVICE void multiply_tf32(PlainSums<float, M, N>& sums, const A& a, const B& b, LanePosition at) {
  const FloatFragments<M, N> from(a, b, at);
  std::uint32_t rows[M][2][4], columns[N][4];
  GCRT_UNROLL
  for (int i = 0; i < 2 * M; ++i) round_to_tf32(rows[i / 2][i % 2], from.rows[i / 2][i % 2]);
  GCRT_UNROLL
  for (int j = 0; j < N; ++j) {
    if constexpr (kIsRounded) {
      memcpy(columns[j], from.columns[j], sizeof(columns[j]));
    } else {
      round_to_tf32(columns[j], from.columns[j]);
    }
  }
  GCRT_UNROLL
  for (int step = 0; step < 2; ++step) {
    std::uint32_t a_step[M][4], b_step[N][2];
    GCRT_UNROLL
    for (int i = 0; i < 4 * M; ++i) a_step[i / 4][i % 4] = rows[i / 4][i % 2][2 * step + i % 4 / 2];
    GCRT_UNROLL
    for (int j = 0; j < 2 * N; ++j) b_step[j / 2][j % 2] = columns[j / 2][2 * step + j % 2];
    mma_tf32_tiles(sums.sums, a_step, b_step);
  }
}

// Every operand is the sum of two TF32 numbers, and the product of the two small ones is dropped.
template <int M, int N, class A, class B>
GCRT_DEVICE void multiply_tf32(SplitSums<M, N>& sums, const A& a, const B& b, LanePosition at) {
  const FloatFragments<M, N> from(a, b, at);
  GCRT_UNROLL
  for (int step = 0; step < 2; ++step) {
    std::uint32_t a_large[M][4], a_small[M][4], b_large[N][2], b_small[N][2];
    GCRT_UNROLL
    for (int i = 0; i < 4 * M; ++i) {
      const float value = from.rows[i / 4][i % 2][2 * step + i % 4 / 2];
      // Four registers in a row, as the instruction wants them, come of an addition: of a copy ptxas makes a
      // new one for every instruction. Of all values only -0 is changed.
      a_large[i / 4][i % 4] = bit_cast<std::uint32_t>(value + 0.0f);
      a_small[i / 4][i % 4] = rest_of_tf32(value);
    }
    GCRT_UNROLL
    for (int j = 0; j < 2 * N; ++j) {
      const float value = from.columns[j / 2][2 * step + j % 2];
      b_large[j / 2][j % 2] = bit_cast<std::uint32_t>(value);
      b_small[j / 2][j % 2] = rest_of_tf32(value);
    }
    mma_tf32_by_parts(sums.sums, sums.corrections, a_large, a_small, b_large, b_small);
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

// Whether a slab holds rows of values in the precision of the product, which pass through as they are.
template <Precision P, class S>
constexpr bool kIsStored = std::is_same<S, RowSlab<StoredHalf<P>, 16>>::value;

// The two registers that a quarter of a slab row gives to a product of 16-bit values.
template <Precision P, class S>
GCRT_DEVICE void read_pairs(std::uint32_t& low, std::uint32_t& high, const S& slab, int row, int t) {
  if constexpr (kIsStored<P, S>) {
    const auto words = load(Lanes<2>{}, reinterpret_cast<const std::uint32_t*>(slab.at(row, 4 * t)));
    low = words[0];
    high = words[1];
  } else {
    float values[4];
    slab.quarter(values, row, t);
    low = pack_pair<P>(values[0], values[1]);
    high = pack_pair<P>(values[2], values[3]);
  }
}

// The products of fragments in registers.
template <Precision P, int M, int N>
GCRT_DEVICE void multiply_pairs(PlainSums<float, M, N>& sums, const std::uint32_t (&rows)[M][4],
                                const std::uint32_t (&columns)[N][2]) {
  if constexpr (P == Precision::kFp16) {
    mma_f16_tiles(sums.sums, rows, columns);
  } else {
    mma_bf16_tiles(sums.sums, rows, columns);
  }
}

// The operands of a slab in registers, as the tensor cores want them.
template <int M, int N>
struct PairFragments {
  std::uint32_t rows[M][4];
  std::uint32_t columns[N][2];
};

// Both operands are stored in the precision of the product: nothing is converted, and one instruction
// reads a fragment of A or two of B.
template <Precision P, int M, int N, class S>
GCRT_DEVICE void read_stored(PairFragments<M, N>& to, const S& a, const S& b) {
  constexpr int kPairs = (N + 1) / 2;
  const int lane = lane_rank();
  const auto* const from_a = a.at(lane & 15, lane >> 4 << 3);
  const auto* const from_b = b.at((lane & 7) + (lane >> 4 << 3), lane & 8);
  const void* addresses[M + kPairs];
  GCRT_UNROLL
  for (int i = 0; i < M; ++i) addresses[i] = from_a + i * 16 * 16;
  GCRT_UNROLL
  for (int j = 0; j < kPairs; ++j) {
    // An odd last fragment has the same in both halves.
    addresses[M + j] = (2 * j + 1 < N ? from_b : b.at(lane & 7, lane & 8)) + j * 16 * 16;
  }
  std::uint32_t loaded[M + kPairs][4];
  ldmatrix_x4_several<false>(loaded, addresses);
  GCRT_UNROLL
  for (int i = 0; i < 4 * M; ++i) to.rows[i / 4][i % 4] = loaded[i / 4][i % 4];
  GCRT_UNROLL
  for (int j = 0; j < 2 * N; ++j) to.columns[j / 2][j % 2] = loaded[M + j / 4][j % 4];
}

template <Precision P, int M, int N, class A, class B>
GCRT_DEVICE void multiply_16_bits(PlainSums<float, M, N>& sums, const A& a, const B& b, LanePosition at) {
  PairFragments<M, N> of;
  if constexpr (kIsStored<P, A> && kIsStored<P, B>) {
    static_cast<void>(at);
    read_stored<P>(of, a, b);
  } else {
    GCRT_UNROLL
    for (int i = 0; i < M; ++i) {
      read_pairs<P>(of.rows[i][0], of.rows[i][2], a, i * 16 + at.group, at.thread);
      read_pairs<P>(of.rows[i][1], of.rows[i][3], a, i * 16 + at.group + 8, at.thread);
    }
    GCRT_UNROLL
    for (int j = 0; j < N; ++j) {
      read_pairs<P>(of.columns[j][0], of.columns[j][1], b, j * 8 + at.group, at.thread);
    }
  }
  multiply_pairs<P>(sums, of.rows, of.columns);
}

// Products of floats in one of the precisions.
template <Precision P>
struct FloatProduct {
  using Sum = float;
  static constexpr int kDepth = 16;  // of a slab
  static constexpr bool kIsSplit = P == Precision::kFp32 && kHasTensorCores<P>;
  template <int M, int N>
  using Sums = std::conditional_t<kIsSplit, SplitSums<M, N>, PlainSums<float, M, N>>;

  // Whether fragments are read one slab ahead of their products: those that ldmatrix reads.
  template <class TA, class TB>
  static constexpr bool kReadsAhead =
      kHasTensorCores<P>&& kIsStored<P, RowSlab<TA, 16>>&& kIsStored<P, RowSlab<TB, 16>>;
  template <int M, int N, class A, class B>
  GCRT_DEVICE static void read(PairFragments<M, N>& to, const A& a, const B& b) {
    read_stored<P>(to, a, b);
  }
  template <int M, int N>
  GCRT_DEVICE static void multiply(PlainSums<float, M, N>& sums, const PairFragments<M, N>& from) {
    multiply_pairs<P>(sums, from.rows, from.columns);
  }

  template <class S, class A, class B>
  GCRT_DEVICE static void multiply(S& sums, const A& a, const B& b, LanePosition at) {
    if constexpr (!kHasTensorCores<P>) {
      multiply_floats_simt(sums, a, b, at);
    } else if constexpr (kIsSplit) {
      multiply_tf32(sums, a, b, at);
    } else if constexpr (P == Precision::kTf32) {
      multiply_tf32<std::is_same<typename B::Element, Tf32>::value>(sums, a, b, at);
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

// The same for four sums in registers, which have no index: those that are left move up.
template <class E, class V>
GCRT_INLINE void finish_pack(const E& epilogue, V sums, int count, std::ptrdiff_t m, std::ptrdiff_t n) {
  constexpr int L = E::kMaxLanes < 4 ? E::kMaxLanes : 4;
  if constexpr (L > 1) {
    if (count == 4 && n % L == 0) {
      GCRT_UNROLL
      for (int i = 0; i < 4; i += L) {
        if constexpr (L == 4) {
          epilogue(Lanes<4>{}, sums, m, n);
        } else {
          epilogue(Lanes<2>{}, Pack<ElementOf<V>, 2>{sums[i], sums[i + 1]}, m, n + i);
        }
      }
      return;
    }
  }
  GCRT_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    epilogue(Lanes<1>{}, sums[0], m, n + i);
    sums[0] = sums[1];
    sums[1] = sums[2];
    sums[2] = sums[3];
  }
}

// A block's sums go through shared memory, so that the epilogue runs over whole rows and is compiled once.
template <class Config, class S, class T>
GCRT_DEVICE void park_sums(const S& sums, T* parked, int warp_row, int warp_column) {
  const LanePosition at = lane_position();
  GCRT_UNROLL
  for (int i = 0; i < Config::kRowFragments; ++i) {
    GCRT_UNROLL
    for (int j = 0; j < Config::kColumnFragments; ++j) {
      GCRT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int row = warp_row + i * 16 + h * 8 + at.group;
        T* const to = parked + row * Config::kSumStride + warp_column + j * 8 + 2 * at.thread;
        to[0] = sums.value(i, j, 2 * h);
        to[1] = sums.value(i, j, 2 * h + 1);
      }
    }
  }
}

// Whether an epilogue can be called in two parts: value(lane, sums, m, n), which reads, and put(lane, value,
// m, n).
template <class E, class T, class = void>
constexpr bool kHasParts = false;
template <class E, class T>
constexpr bool kHasParts<
    E, T, std::void_t<decltype(std::declval<const E&>().value(Lanes<1>{}, std::declval<T>(), 0, 0))>> = true;

// Quads of a whole tile, kTurns at a time by a thread: all operands of the epilogue are under way before the
// first result is stored, for the compiler must take each store for one of what is read behind it.
template <class Config, int kTileRows, class E, class T>
GCRT_DEVICE void finish_whole_tile(const E& epilogue, const T* parked, std::ptrdiff_t m, std::ptrdiff_t n) {
  constexpr int kQuads = Config::kColumns / 4;
  constexpr int kTurns = 4;
  constexpr int kRowStep = Config::kThreads / kQuads;
  static_assert(Config::kThreads % kQuads == 0 && kTileRows % kRowStep == 0, "whole turns");
  constexpr int kRounds = kTileRows / kRowStep;
  constexpr int kTogether = kRounds < kTurns ? kRounds : kTurns;
  static_assert(kRounds % kTogether == 0, "whole rounds");
  const int first = static_cast<int>(threadIdx.x) / kQuads;
  const int column = static_cast<int>(threadIdx.x) % kQuads * 4;
  GCRT_NO_UNROLL
  for (int row = first; row < kTileRows; row += kTogether * kRowStep) {
    const T* const sums = parked + row * Config::kSumStride + column;
    decltype(epilogue.value(Lanes<4>{}, load(Lanes<4>{}, sums), m, n)) values[kTogether];
    GCRT_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      values[i] = epilogue.value(Lanes<4>{}, load(Lanes<4>{}, sums + i * kRowStep * Config::kSumStride),
                                 m + row + i * kRowStep, n + column);
    }
    GCRT_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      epilogue.put(Lanes<4>{}, values[i], m + row + i * kRowStep, n + column);
    }
  }
}

// Rows [0, rows), of which there are at most kTileRows, and columns [0, columns) of the block's sums, whose
// first element is (m, n).
template <class Config, int kTileRows = Config::kRows, class E, class T>
GCRT_DEVICE void finish_tile(const E& epilogue, const T* parked, int rows, int columns, std::ptrdiff_t m,
                             std::ptrdiff_t n) {
  constexpr int kQuads = Config::kColumns / 4;
  if constexpr (E::kMaxLanes >= 4 && kHasParts<E, T>) {
    if (rows >= kTileRows && columns >= Config::kColumns && n % 4 == 0) {
      finish_whole_tile<Config, kTileRows>(epilogue, parked, m, n);
      return;
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kQuads; i += Config::kThreads) {
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
