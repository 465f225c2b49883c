// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What only the device has: barriers, shared memory, warps, asynchronous copies. Every kernel header includes
// this one first. Each function has two bodies: instructions of the machine for nvcc, and calls of the CPU
// emulator for everything else, so that every kernel also runs where there is no GPU.
//
// Rules for kernels: no inline assembly and no intrinsics outside cuda/device/device.h,
// cuda/device/cluster.h, cuda/device/tensor_core.h and cuda/hopper*.h; shared memory only through
// GCRT_DYNAMIC_SHARED; no allocation and no launch on the device.
#pragma once

#ifndef GCRT_CUDA
#define GCRT_CUDA 1
#endif

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gcrt/config.h"

#define GCRT_CUDA_DEVICE 1

#define GCRT_DEVICE __device__ __forceinline__
#define GCRT_HOST_DEVICE __host__ __device__ __forceinline__

// A kernel of at most `threads` threads per block: template <...> GCRT_GLOBAL(256) void name(...). The second
// form also asks that `blocks` of them fit one multiprocessor, which bounds the registers.
#define GCRT_GLOBAL(threads) __global__ __launch_bounds__(threads)
#define GCRT_GLOBAL_BLOCKS(threads, blocks) __global__ __launch_bounds__(threads, blocks)

// The block's dynamic shared memory as `type* name`, aligned to 128 bytes.
// All uses in a kernel name the same bytes.
#if defined(__CUDACC__)
#define GCRT_DYNAMIC_SHARED(type, name)                                 \
  extern __shared__ __align__(128) unsigned char gcrt_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(gcrt_dynamic_shared)
#else
#define GCRT_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(cuda_on_cpu::shared_memory())
#endif

// Whether the code under compilation may use instructions of sm_80 and later. -DGCRT_EMULATE_SM_75: of the
// emulator, not.
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800) || defined(GCRT_EMULATE_SM_75)
#define GCRT_SM_80 0
#else
#define GCRT_SM_80 1
#endif

namespace GCRT_NAMESPACE {

constexpr int kWarpThreads = 32;

// ---- Threads of a block, lanes of a warp. In a collective every live lane of the warp takes part.

// Waits for all threads of the block; what they wrote to memory before is visible after.
GCRT_DEVICE void barrier() {
#if defined(__CUDACC__)
  __syncthreads();
#else
  cuda_on_cpu::block_barrier();
#endif
}

// The same; returns how many threads hold `condition`.
GCRT_DEVICE int barrier_count(bool condition) {
#if defined(__CUDACC__)
  return __syncthreads_count(condition ? 1 : 0);
#else
  return cuda_on_cpu::block_barrier_count(condition);
#endif
}

GCRT_DEVICE void warp_sync() {
#if defined(__CUDACC__)
  __syncwarp();
#else
  cuda_on_cpu::warp_barrier();
#endif
}

// Waits until the grid before this one in the stream has ended and what it wrote is seen. The first thing
// that every thread of a kernel for launch_overlapping() does, but for reads and fetches of constants; then
// the grid behind may start to do the same. Does nothing below sm_90 and after any other launch.
GCRT_DEVICE void await_previous_grid() {
#if !defined(__CUDACC__)
  cuda_on_cpu::await_previous_grid();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The place of the thread in its block, x fastest; of the lane in its warp; of the warp in its block.
GCRT_DEVICE int thread_rank() {
#if defined(__CUDACC__)
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
#else
  return static_cast<int>(cuda_on_cpu::linear_thread);
#endif
}
GCRT_DEVICE int lane_rank() { return thread_rank() % kWarpThreads; }
GCRT_DEVICE int warp_rank() { return thread_rank() / kWarpThreads; }

// The place of the thread in a grid of one dimension, as an int where all places fit one.
template <class I>
GCRT_DEVICE I global_thread() {
  return static_cast<I>(blockIdx.x) * static_cast<I>(blockDim.x) + static_cast<I>(threadIdx.x);
}

// Which lanes hold `condition`, one bit each.
GCRT_DEVICE std::uint32_t ballot(bool condition) {
#if defined(__CUDACC__)
  return __ballot_sync(0xffffffffu, condition ? 1 : 0);
#else
  return cuda_on_cpu::ballot(condition);
#endif
}

// `value` of lane `source` (modulo 32). T is any type of 1,
// 2 or a multiple of 4 bytes that is copied as bytes.
template <class T>
GCRT_DEVICE T shuffle(T value, int source) {
  static_assert(std::is_trivially_copyable<T>::value, "shuffled as bytes");
#if defined(__CUDACC__)
  if constexpr (sizeof(T) < 4) {
    unsigned word = 0;
    memcpy(&word, &value, sizeof(T));
    word = __shfl_sync(0xffffffffu, word, source);
    memcpy(&value, &word, sizeof(T));
  } else {
    static_assert(sizeof(T) < 4 || sizeof(T) % 4 == 0, "whole registers");
    unsigned words[(sizeof(T) + 3) / 4];
    memcpy(words, &value, sizeof(T));
    GCRT_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i)
      words[i] = __shfl_sync(0xffffffffu, words[i], source);
    memcpy(&value, words, sizeof(T));
  }
#else
  cuda_on_cpu::shuffle(&value, sizeof(T), static_cast<unsigned>(source));
#endif
  return value;
}
template <class T>
GCRT_DEVICE T shuffle_xor(T value, int mask) {
  return shuffle(value, lane_rank() ^ mask);
}
// The value of the lane `distance` below or above; the lane's own value where there is none.
template <class T>
GCRT_DEVICE T shuffle_up(T value, int distance) {
  return shuffle(value, lane_rank() < distance ? lane_rank() : lane_rank() - distance);
}
template <class T>
GCRT_DEVICE T shuffle_down(T value, int distance) {
  return shuffle(value, lane_rank() + distance >= kWarpThreads ? lane_rank() : lane_rank() + distance);
}

#if !defined(__CUDACC__)
template <class T, class Combine>
struct CombineOperands {
  T value;
  const Combine* combine;
  int width;
};
template <class T, class Combine>
void combine_published(void* const (&lanes)[32]) {
  using Operands = CombineOperands<T, Combine>;
  T values[32];
  std::memset(static_cast<void*>(values), 0xff,
              sizeof(values));  // what a shuffle gets from a lane that is gone
  const Operands* any = nullptr;
  for (int i = 0; i < 32; ++i) {
    if (lanes[i] == nullptr) continue;
    any = static_cast<const Operands*>(lanes[i]);
    values[i] = any->value;
  }
  for (int distance = 1; distance < any->width; distance *= 2) {
    for (int i = 0; i < 32; i += 2 * distance) {
      for (int j = i; j < i + distance; ++j) {
        values[j] = values[j + distance] = (*any->combine)(values[j], values[j + distance]);
      }
    }
  }
  for (int i = 0; i < 32; ++i) {
    if (lanes[i] != nullptr) static_cast<Operands*>(lanes[i])->value = values[i];
  }
}
#endif

// combine(earlier, later) over aligned runs of Width lanes, neighbours first; every lane gets its run's
// result. The lower lane is always the earlier operand, so all lanes compute the same.
template <int Width, class T, class Combine>
GCRT_DEVICE T combine_lanes(T value, const Combine& combine) {
#if defined(__CUDACC__)
  GCRT_UNROLL
  for (int distance = 1; distance < Width; distance *= 2) {
    const T other = shuffle_xor(value, distance);
    // Copies, not a choice of operands by reference, which would put both into local memory.
    T earlier = value, later = other;
    if ((lane_rank() & distance) != 0) earlier = other, later = value;
    value = combine(earlier, later);
  }
  return value;
#else
  CombineOperands<T, Combine> operands = {value, &combine, Width};
  if (Width > 1) cuda_on_cpu::warp_collective("combine_lanes", &operands, &combine_published<T, Combine>);
  return operands.value;
#endif
}

// ---- Memory.

// Registers of an access of several bytes at once.
struct alignas(8) Bytes8 {
  std::uint32_t word[2];
};
struct alignas(16) Bytes16 {
  std::uint32_t word[4];
};

// One access of 4, 8 or 16 bytes; the address is a multiple of its size.
GCRT_HOST_DEVICE void check_access(const void* p, std::size_t bytes) {
#if defined(__CUDACC__)
  static_cast<void>(p);
  static_cast<void>(bytes);
#else
  cuda_on_cpu::check_alignment(p, bytes);
#endif
}

// The same for whole words.
template <int Count>
GCRT_DEVICE void load_words(std::uint32_t (&words)[Count], const void* p) {
#if defined(__CUDACC__)
  struct alignas(4 * Count) Words {
    std::uint32_t word[Count];
  };
  const Words all = *static_cast<const Words*>(p);
  GCRT_UNROLL
  for (int i = 0; i < Count; ++i) words[i] = all.word[i];
#else
  check_access(p, sizeof(words));
  std::memcpy(words, p, sizeof(words));
#endif
}
template <int Count>
GCRT_DEVICE void store_words(void* p, const std::uint32_t (&words)[Count]) {
#if defined(__CUDACC__)
  struct alignas(4 * Count) Words {
    std::uint32_t word[Count];
  };
  Words all;
  GCRT_UNROLL
  for (int i = 0; i < Count; ++i) all.word[i] = words[i];
  *static_cast<Words*>(p) = all;
#else
  check_access(p, sizeof(words));
  std::memcpy(p, words, sizeof(words));
#endif
}

// Reads global memory that the whole kernel leaves as it is, past the first cache: for what is read once.
GCRT_DEVICE std::uint32_t load_streaming_4(const void* p) {
#if defined(__CUDA_ARCH__)
  std::uint32_t word;
  asm("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(word) : "l"(p));
  return word;
#else
  check_access(p, 4);
  std::uint32_t word;
  std::memcpy(&word, p, 4);
  return word;
#endif
}
GCRT_DEVICE Bytes8 load_streaming_8(const void* p) {
  Bytes8 result;
#if defined(__CUDA_ARCH__)
  asm("ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2];"
      : "=r"(result.word[0]), "=r"(result.word[1])
      : "l"(p));
#else
  check_access(p, 8);
  std::memcpy(&result, p, 8);
#endif
  return result;
}
GCRT_DEVICE Bytes16 load_streaming_16(const void* p) {
  Bytes16 result;
#if defined(__CUDA_ARCH__)
  asm("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(result.word[0]), "=r"(result.word[1]), "=r"(result.word[2]), "=r"(result.word[3])
      : "l"(p));
#else
  check_access(p, 16);
  std::memcpy(&result, p, 16);
#endif
  return result;
}

// Brings the line of memory at p into the second-level cache. The address lies in the operand.
GCRT_DEVICE void prefetch(const void* p) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#else
  static_cast<void>(p);
#endif
}

// Adds to memory that other threads add to, and returns what was there. float: the order of the sum is not
// stated, so nothing that must be the same in every run may use it.
template <class T>
GCRT_DEVICE T atomic_add(T* p, T value) {
  static_assert(std::is_same<T, float>::value || std::is_same<T, std::int32_t>::value ||
                    std::is_same<T, std::uint32_t>::value || std::is_same<T, std::uint64_t>::value ||
                    std::is_same<T, std::int64_t>::value,
                "the types that the machine adds");
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(
        atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(value)));
  } else {
    return atomicAdd(p, value);
  }
#else
  if constexpr (std::is_same<T, float>::value) {
    auto* bits = reinterpret_cast<std::uint32_t*>(p);
    std::uint32_t old = __atomic_load_n(bits, __ATOMIC_RELAXED);
    for (;;) {
      float was;
      std::memcpy(&was, &old, sizeof(was));
      const float sum = was + value;
      std::uint32_t wanted;
      std::memcpy(&wanted, &sum, sizeof(wanted));
      if (__atomic_compare_exchange_n(bits, &old, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return was;
    }
  } else {
    return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
  }
#endif
}

// The same for the larger and the smaller of what is there and `value`; int32 and uint32.
template <class T>
GCRT_DEVICE T atomic_max(T* p, T value) {
  static_assert(std::is_integral<T>::value && sizeof(T) == 4, "int32 or uint32");
#if defined(__CUDACC__)
  return atomicMax(p, value);
#else
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
#endif
}
template <class T>
GCRT_DEVICE T atomic_min(T* p, T value) {
  static_assert(std::is_integral<T>::value && sizeof(T) == 4, "int32 or uint32");
#if defined(__CUDACC__)
  return atomicMin(p, value);
#else
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (value < old &&
         !__atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
#endif
}

// Adds to a counter in global memory and returns what it was. Whoever reads a later number there sees
// what this thread wrote before, and what threads of its block wrote that it has met at a barrier (PTX
// ISA, causality order). One fence where two of __threadfence() stood: on an H200 that join took 1.7 us
// of a kernel.
GCRT_DEVICE std::uint32_t count_in_order(std::uint32_t* counter) {
#if defined(__CUDACC__)
  std::uint32_t was;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(was) : "l"(counter) : "memory");
  return was;
#else
  return __atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL);
#endif
}

// Whether the block is the last of `count` that come here with the same counter, which is 0 before and after.
// What the threads of all of them wrote before is then seen by its threads. Nobody waits: blocks need not run
// at the same time.
GCRT_DEVICE bool arrives_last(std::uint32_t* counter, std::uint32_t count) {
  barrier();
  bool is_last = false;
  if (thread_rank() == 0) {
    is_last = count_in_order(counter) + 1 == count;
    if (is_last) *counter = 0;
  }
  return barrier_count(is_last) != 0;
}

// ---- Asynchronous copies from global to shared memory.

#if defined(__CUDACC__)
GCRT_DEVICE std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
#endif

// Copies `valid` of Bytes (16, 8 or 4) bytes and zeros the rest. Both addresses are multiples of Bytes; where
// valid is 0, `global` is not read but must still be an address inside the operand. The bytes are there after
// cp_async_wait in this thread, and after a barrier in the others. Below sm_80 the copy happens at once.
template <int Bytes>
GCRT_DEVICE void cp_async(void* shared, const void* global, int valid = Bytes) {
  static_assert(Bytes == 16 || Bytes == 8 || Bytes == 4, "sizes of the instruction");
#if !GCRT_SM_80
  std::uint32_t words[Bytes / 4] = {};
  if (valid == Bytes) {
    load_words(words, global);
  } else {
    for (int i = 0; i < valid; ++i) {
      words[i / 4] |= static_cast<std::uint32_t>(static_cast<const unsigned char*>(global)[i]) << (i % 4 * 8);
    }
  }
  store_words(shared, words);
#elif !defined(__CUDACC__)
  cuda_on_cpu::copy_async(shared, global, Bytes, valid);
#else
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                 "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global),
                 "n"(Bytes), "r"(valid)
                 : "memory");
  }
#endif
}

// Closes a group of this thread's copies, which may be empty.
GCRT_DEVICE void cp_async_commit() {
#if !GCRT_SM_80
#elif !defined(__CUDACC__)
  cuda_on_cpu::commit_copies();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `Pending` of this thread's groups, the latest, are still on their way.
template <int Pending>
GCRT_DEVICE void cp_async_wait() {
#if !GCRT_SM_80
#elif !defined(__CUDACC__)
  cuda_on_cpu::wait_copies(Pending);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

}  // namespace GCRT_NAMESPACE

#include "gcrt/cuda/device/pack.h"
#include "gcrt/cuda/device/tensor_core.h"
