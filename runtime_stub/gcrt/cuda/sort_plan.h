// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Sizes of sorts that the compiler shares with the kernels. Needs no CUDA header.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

constexpr int kSortThreads = 256;
constexpr int kSortChunk = 4096;    // pairs of one block
constexpr int kSortInBlock = 2048;  // entries that one block sorts in shared memory

// Words of counts that sort_pairs needs.
constexpr std::ptrdiff_t sort_counts(std::ptrdiff_t count) {
  return (count + kSortChunk - 1) / kSortChunk * 256;
}

// Bits of the largest key.
constexpr int key_bits(std::ptrdiff_t largest) {
  int bits = 0;
  for (; largest > 0; largest /= 2) ++bits;
  return bits;
}

}  // namespace GCRT_NAMESPACE
