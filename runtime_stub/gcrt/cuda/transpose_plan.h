// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How large the tiles of cuda/transpose.h are. Needs no CUDA header.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Threads of the block that walks a tile.
constexpr int kTileThreads = 256;

// Elements between the rows of a tile in shared memory: one more than they hold, so that the elements of a
// column lie in different banks.
constexpr int tile_stride(int side_i) { return side_i + 1; }

// Bytes of shared memory.
constexpr int tile_bytes(int side_i, int side_j, int element_bytes) {
  return (tile_stride(side_i) * side_j * element_bytes + 15) / 16 * 16;
}

}  // namespace GCRT_NAMESPACE
