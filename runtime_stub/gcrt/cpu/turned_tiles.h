// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#pragma once
// Loops over two axes, of which memory is read along one and written along the other: tiles are read as packs
// along the first and turned in registers, so that every line of memory is read and written as a whole.

#include <cstddef>
#include <type_traits>
#include <utility>

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

/// What threads share of an axis: blocks of so many elements, which are whole lines of memory of any type.
constexpr std::ptrdiff_t kTurnedBlock = 32;
constexpr std::ptrdiff_t turned_blocks(std::ptrdiff_t count) { return ceil_div(count, kTurnedBlock); }
constexpr AxisPart turned_part(std::ptrdiff_t block_begin, std::ptrdiff_t block_end, std::ptrdiff_t count) {
  return {block_begin * kTurnedBlock, block_end * kTurnedBlock < count ? block_end * kTurnedBlock : count};
}

/// Packs that are turned side by side, where an expression reads several tensors so.
template <class P, class Rest>
struct Packs {
  P first;
  Rest rest;
};
template <class P, class... More>
GCRT_INLINE auto packs(P first, More... more) {
  if constexpr (sizeof...(More) == 0) {
    return first;
  } else {
    const auto rest = packs(more...);
    return Packs<P, std::remove_const_t<decltype(rest)>>{first, rest};
  }
}

/// Lanes [Block, 2 Block) of a, and of every second such group, change places with the group before of b.
template <int Block, class P, int... I>
GCRT_INLINE void exchange_lanes(P& a, P& b, std::integer_sequence<int, I...>) {
  constexpr int n = static_cast<int>(sizeof...(I));
  const P low = __builtin_shufflevector(a, b, ((I & Block) == 0 ? I : n + I - Block)...);
  b = __builtin_shufflevector(a, b, ((I & Block) == 0 ? I + Block : n + I)...);
  a = low;
}
template <int Block, int N, class P>
GCRT_INLINE void exchange(P& a, P& b) {
  exchange_lanes<Block>(a, b, std::make_integer_sequence<int, N>{});
}
template <int Block, int N, class P, class Rest>
GCRT_INLINE void exchange(Packs<P, Rest>& a, Packs<P, Rest>& b) {
  exchange<Block, N>(a.first, b.first);
  exchange<Block, N>(a.rest, b.rest);
}

template <class P>
GCRT_INLINE auto side_by_side(const P& low, const P& high) {
  return concatenate(low, high);
}
template <class P, class Rest>
GCRT_INLINE auto side_by_side(const Packs<P, Rest>& low, const Packs<P, Rest>& high) {
  return packs(concatenate(low.first, high.first), side_by_side(low.rest, high.rest));
}

/// Element j of rows[i] and element i of rows[j] change places, in log2(N) steps that exchange blocks
/// across the diagonal (Eklundh, "A fast computer method for matrix transposing", IEEE Transactions on
/// Computers, 1972).
template <int Block, int N, class P>
GCRT_INLINE void turn(P (&rows)[N]) {
  if constexpr (Block > 0) {
    GCRT_UNROLL
    for (int i = 0; i < N; ++i) {
      if ((i & Block) == 0) exchange<Block, N>(rows[i], rows[i + Block]);
    }
    turn<Block / 2>(rows);
  }
}

/// One tile of M by W: W packs of M lanes along i become M rows of packs of L lanes along j.
template <int M, int W, int L, class Read, class Body>
GCRT_INLINE void turned_tile(std::ptrdiff_t i, std::ptrdiff_t j, const Read& read, const Body& body) {
  if constexpr (M == 1) {
    for (int k = 0; k < W; ++k) body(Lanes<1>{}, i, j + k, read(Lanes<1>{}, i, j + k));
  } else {
    decltype(read(Lanes<M>{}, i, j)) squares[W / M][M];
    GCRT_UNROLL
    for (int s = 0; s < W / M; ++s) {
      GCRT_UNROLL
      for (int k = 0; k < M; ++k) squares[s][k] = read(Lanes<M>{}, i, j + s * M + k);
      turn<M / 2>(squares[s]);
    }
    // A line of a row is written at once: rows that are pages apart share few lines of the cache.
    GCRT_UNROLL
    for (int k = 0; k < M; ++k) {
      GCRT_UNROLL
      for (int s = 0; s < W / M; s += L / M) {
        if constexpr (L == M) {
          body(Lanes<L>{}, i + k, j + s * M, squares[s][k]);
        } else {
          body(Lanes<L>{}, i + k, j + s * M, side_by_side(squares[s][k], squares[s + 1][k]));
        }
      }
    }
  }
}

/// The part of an axis that tiles of so many elements fill.
template <int N>
GCRT_INLINE AxisPart filled(AxisPart part) {
  return {part.begin, part.end - (part.end - part.begin) % N};
}

/// read(lane, i, j) gives a pack along i, at each j; body(lane, i, j, pack) takes one along j, at each i, and
/// every element once. Edges are tiles of four by four, and single elements. Of j so much is walked for one
/// block of i that the lines which it shares with the next are still near.
template <int L = kLanes,
          int M = (L < 1   ? 1
                   : L < 8 ? L
                           : 8),
          class Read, class Body>
GCRT_INLINE void turn_tiles(AxisPart along, AxisPart across, const Read& read, const Body& body) {
  constexpr int W = M < 8 ? M : 16;
  constexpr std::ptrdiff_t kNear = 1024;
  const AxisPart i = filled<M>(along), j = filled<W>(across);
  for (std::ptrdiff_t near = j.begin; near < j.end; near += kNear) {
    const std::ptrdiff_t near_end = near + kNear < j.end ? near + kNear : j.end;
    for (std::ptrdiff_t i0 = i.begin; i0 < i.end; i0 += M) {
      for (std::ptrdiff_t j0 = near; j0 < near_end; j0 += W) turned_tile<M, W, L>(i0, j0, read, body);
    }
  }
  if constexpr (M > 1) {
    // The last rows, and the last columns above them.
    constexpr int kEdge = M > 4 ? 4 : 1;
    const AxisPart rests[2][2] = {{{i.end, along.end}, across}, {i, {j.end, across.end}}};
    for (const auto& rest : rests) turn_tiles<kEdge, kEdge>(rest[0], rest[1], read, body);
  }
}

}  // namespace GCRT_NAMESPACE
