// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Clusters of blocks, which run at the same time and read each other's shared memory: from sm_90 on. Two
// bodies each, as in cuda/device/device.h; code for older architectures never runs.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

GCRT_DEVICE int cluster_rank() {
#if !defined(__CUDACC__)
  return static_cast<int>(cuda_on_cpu::cluster_rank());
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return 0;
#endif
}

// Waits for all threads of all blocks of the cluster; what they wrote to memory before, shared memory too, is
// visible to all of them after. Nor is the arrival relaxed where blocks only wait for others to have read
// their shared memory: "there are no memory ordering and visibility guarantees provided for the memory
// accesses performed prior" to it (PTX ISA, barrier.cluster), and loads are such accesses: one could be
// performed when its block has ended.
GCRT_DEVICE void cluster_barrier() {
#if !defined(__CUDACC__)
  cuda_on_cpu::cluster_barrier();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// Four values from the place that `p` has in this block's shared memory, in that of a block of the cluster. A
// cluster barrier stands between their writes and this, another between this and the end of that block.
template <class T>
GCRT_DEVICE Pack<T, 4> load_from_block(const T* p, int block) {
  static_assert(sizeof(T) == 4, "one access of 16 bytes");
  Bytes16 words = {};
#if !defined(__CUDACC__)
  cuda_on_cpu::load_from_block(&words, p, sizeof(words), static_cast<unsigned>(block));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %4, %5;\n"
      "ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [remote];\n"
      "}"
      : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
      : "r"(shared_address(p)), "r"(block));
#else
  static_cast<void>(p);
  static_cast<void>(block);
#endif
  Pack<T, 4> values;
  memcpy(&values, &words, sizeof(values));
  return values;
}

}  // namespace GCRT_NAMESPACE
