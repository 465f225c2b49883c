// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What sm_90a adds: copies of boxes of tensors to shared memory, barriers that count bytes, and
// (cuda/product/hopper_mma.h) products of warpgroups. Two bodies each, as in cuda/device/device.h; code for
// other architectures traps.
#pragma once

#include <cuda.h>

#include "gcrt/cuda/device/cluster.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/pack.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GCRT_SM_90A 1
#endif
#if defined(__CUDACC__) && CUDART_VERSION < 12030
#error "kernels of sm_90a need CUDA 12.3 or later"
#elif defined(__clang__) && defined(__CUDA__) && __clang_major__ < 20
#error "Clang 20 or later is needed for kernels of warpgroups: older ones copy what __grid_constant__ marks"
#endif

// A parameter of a kernel that instructions take the address of.
#define GCRT_GRID_CONSTANT const __grid_constant__

// What compiles for the host, or for other architectures,
// sees functions whose parameters no instruction takes.
#if defined(__clang__) && defined(__CUDA__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#endif

namespace GCRT_NAMESPACE {

constexpr int kWarpgroupThreads = 128;

#if !defined(__CUDACC__)
GCRT_DEVICE std::uint32_t shared_address(const void* p) { return cuda_on_cpu::shared_address(p); }
#endif

// The first place at or behind `shared` that is a multiple of Alignment, which exceeds what
// GCRT_DYNAMIC_SHARED promises.
template <int Alignment>
GCRT_DEVICE unsigned char* aligned_shared(unsigned char* shared) {
  static_assert((Alignment & (Alignment - 1)) == 0, "a power of two");
  return shared + (0u - shared_address(shared)) % Alignment;
}

// ---- Barriers in shared memory that count arrivals and bytes. Phases alternate between parity 0 and 1; a
// phase is complete when all arrivals have come and all expected bytes have landed.

using SharedBarrier = std::uint64_t;

GCRT_DEVICE void barrier_init(SharedBarrier* barrier, int arrivals) {
#if !defined(__CUDACC__)
  cuda_on_cpu::barrier_init(barrier, arrivals);
#elif defined(GCRT_SM_90A)
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
#endif
}
// By the thread that has initialised barriers: copies may use them behind the next barrier of the block.
GCRT_DEVICE void fence_barrier_init() {
#if !defined(__CUDACC__)
  cuda_on_cpu::fence_barrier_init();
#elif defined(GCRT_SM_90A)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
GCRT_DEVICE void barrier_arrive(SharedBarrier* barrier) {
#if !defined(__CUDACC__)
  cuda_on_cpu::barrier_arrive(barrier);
#elif defined(GCRT_SM_90A)
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}
// Arrives; this phase is not complete before so many more bytes have landed.
GCRT_DEVICE void barrier_expect(SharedBarrier* barrier, int bytes) {
#if !defined(__CUDACC__)
  cuda_on_cpu::barrier_expect(barrier, bytes);
#elif defined(GCRT_SM_90A)
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
#endif
}
// Waits until the latest phase of that parity is complete. The one before the first counts as parity 1.
GCRT_DEVICE void barrier_wait(SharedBarrier* barrier, int parity) {
#if !defined(__CUDACC__)
  cuda_on_cpu::barrier_wait(barrier, parity);
#elif defined(GCRT_SM_90A)
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again_%=;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}

// What this thread has written to shared memory before is seen by products of warpgroups after.
GCRT_DEVICE void fence_async_proxy() {
#if !defined(__CUDACC__)
  cuda_on_cpu::fence_async_proxy();
#elif defined(GCRT_SM_90A)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// ---- Parts of a block.

// The barrier `Id`, 1 to 15, of `Threads` threads of the block.
template <int Id, int Threads>
GCRT_DEVICE void named_barrier() {
#if !defined(__CUDACC__)
  cuda_on_cpu::named_barrier(Id, Threads);
#else
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "n"(Threads) : "memory");
#endif
}

// Registers of each thread of the warpgroup from here on: multiples of 8, from 24 on.
template <int Count>
GCRT_DEVICE void give_registers_back() {
#if !defined(__CUDACC__)
  cuda_on_cpu::set_registers(Count, 240);
#elif defined(GCRT_SM_90A)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}
template <int Count>
GCRT_DEVICE void take_registers() {
#if !defined(__CUDACC__)
  cuda_on_cpu::set_registers(Count, 240);
#elif defined(GCRT_SM_90A)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}

// ---- Maps of tensors, and copies by them.

using TensorMap = CUtensorMap;

template <class T>
constexpr CUtensorMapDataType kTensorMapType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
constexpr CUtensorMapDataType kTensorMapType<Half> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
template <>
constexpr CUtensorMapDataType kTensorMapType<BFloat16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

// A tensor of four axes, the first of which is contiguous, and the box of it that one copy moves: 128 bytes
// of that axis. Strides in elements; all, and the address, are multiples of 16 bytes.
struct TensorBox {
  const void* data;
  std::ptrdiff_t sizes[4];
  std::ptrdiff_t strides[3];  // of the other axes
  int box[3];                 // along these
};

// The driver's encoder, found by the runtime: nothing is linked with the driver's library.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                             cudaEnableDefault, &result);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

// The map by which such boxes are copied, swizzled for wgmma; outside the tensor they are zeros. The map
// holds the address: where a caller's memory moves, the run encodes it anew, and the node that has it as a
// parameter is changed (changed_step), as with any other pointer.
template <class T>
inline TensorMap tensor_map(Queue& queue, const TensorBox& tensor) {
  TensorMap map = {};
  if (queue.error != cudaSuccess) return map;
  const auto encode = tensor_map_encoder();
  if (encode == nullptr) {
    queue.error = cudaErrorNotSupported;
    return map;
  }
  cuuint64_t sizes[4], strides[3];
  cuuint32_t box[4] = {128 / sizeof(T), 1, 1, 1};
  for (int axis = 0; axis < 4; ++axis) sizes[axis] = static_cast<cuuint64_t>(tensor.sizes[axis]);
  for (int axis = 0; axis < 3; ++axis) {
    box[axis + 1] = static_cast<cuuint32_t>(tensor.box[axis]);
    strides[axis] = static_cast<cuuint64_t>(tensor.strides[axis]) * sizeof(T);
    // An axis of one entry has no step; the driver wants one all the same.
    if (axis > 0 && tensor.sizes[axis + 1] == 1) strides[axis] = strides[0];
  }
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  const CUresult result = encode(&map, kTensorMapType<T>, 4, const_cast<void*>(tensor.data), sizes, strides,
                                 box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) queue.error = cudaErrorInvalidValue;
  return map;
}

// The first element of a box; of a matrix along the depth, its row, and the entry of the batch, of an image
// its channel, column, row, and which image it is.
struct BoxPosition {
  int depth;
  int row;
  int inner;
  int outer;
};

// One thread starts the copy of a box to `shared`, a multiple of 128, and counts its bytes at `barrier`.
GCRT_DEVICE void copy_box(void* shared, const TensorMap& map, const BoxPosition& at, SharedBarrier* barrier) {
#if !defined(__CUDACC__)
  cuda_on_cpu::copy_tensor(shared, &map, {at.depth, at.row, at.inner, at.outer}, barrier);
#elif defined(GCRT_SM_90A)
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(at.depth), "r"(at.row), "r"(at.inner), "r"(at.outer), "r"(shared_address(barrier))
      : "memory");
#endif
}
// Fetches the map itself.
GCRT_DEVICE void prefetch_map(const TensorMap& map) {
#if defined(GCRT_SM_90A)
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#else
  static_cast<void>(map);
#endif
}

}  // namespace GCRT_NAMESPACE

#if defined(__clang__) && defined(__CUDA__)
#pragma clang diagnostic pop
#endif

#include "gcrt/cuda/product/hopper_mma.h"
