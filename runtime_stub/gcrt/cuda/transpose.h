// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Tiles through shared memory, for maps that read along one axis and write along another: then what a warp
// reads lies side by side in memory, and so does what it writes.
//
//     const SharedTile<64, 32> tile{worker % 4 * 64, 200, worker / 4 * 32, 300};
//     const auto tile0 = tile.stage<float, 4>(0, [&](auto lane, int i, int j) {
//       return load(lane, x + 200 * j + i);
//     });
//     barrier();
//     tile.visit<2>([&](auto lane, int i, int j) { store(lane, y + 300 * i + j, tile0(lane, i, j)); });
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/transpose_plan.h"
#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

// Elements of a tile in shared memory, (i, j) at [j][i].
template <class T, int Stride, class I>
struct StagedTile {
  const T* elements;
  I first_i, first_j;

  // The elements (i, j) to (i, j + N - 1).
  template <int N>
  GCRT_DEVICE Pack<T, N> operator()(Lanes<N> lane, I i, I j) const {
    return load_strided(lane, elements + (j - first_j) * Stride + (i - first_i), Stride);
  }
};

// The part of a tensor that a block of kTileThreads moves: of an axis i along which is read, and of an axis j
// along which is written, SideI elements from first_i and SideJ from first_j, as far as the axes reach.
template <int SideI, int SideJ, class I = int>
struct SharedTile {
  I first_i, extent_i;
  I first_j, extent_j;

  static constexpr int kStride = tile_stride(SideI);
  // Bytes of dynamic shared memory, for elements of this many bytes.
  static constexpr int bytes(int element_bytes) { return tile_bytes(SideI, SideJ, element_bytes); }

  // Puts body(lane, i, j) into shared memory, `offset` bytes from its start, in packs of L along i; L divides
  // the axis. All threads of the block call it, and meet at a barrier before one reads.
  template <class T, int L, class F>
  GCRT_DEVICE StagedTile<T, kStride, I> stage(int offset, const F& body) const {
    GCRT_DYNAMIC_SHARED(unsigned char, shared);
    T* const elements = reinterpret_cast<T*>(shared + offset);
    constexpr int packs = SideI / L * SideJ, turns = (packs + kTileThreads - 1) / kTileThreads;
    // All of a thread's reads are on their way before the first is waited for.
    Pack<T, L> read[turns] = {};
    GCRT_UNROLL
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * kTileThreads + thread_rank();
      const I i = first_i + pack % (SideI / L) * L, j = first_j + pack / (SideI / L);
      if (pack < packs && i < extent_i && j < extent_j) read[turn] = body(Lanes<L>{}, i, j);
    }
    GCRT_UNROLL
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * kTileThreads + thread_rank();
      const int place = pack / (SideI / L) * kStride + pack % (SideI / L) * L;
      if (pack < packs) store_strided(Lanes<L>{}, elements + place, 1, read[turn]);
    }
    return {elements, first_i, first_j};
  }

  // body(lane, i, j) for the elements (i, j) to (i, j + L - 1), in packs of L along j; L divides the axis.
  template <int L, class F>
  GCRT_DEVICE void visit(const F& body) const {
    constexpr int packs = SideJ / L * SideI, turns = (packs + kTileThreads - 1) / kTileThreads;
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * kTileThreads + thread_rank();
      const I i = first_i + pack / (SideJ / L), j = first_j + pack % (SideJ / L) * L;
      if (pack < packs && i < extent_i && j < extent_j) body(Lanes<L>{}, i, j);
    }
  }
};

}  // namespace GCRT_NAMESPACE
