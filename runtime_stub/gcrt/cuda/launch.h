// How the host starts work on the device: every launch and copy of an emitted schedule goes through here,
// directly or as the node of a graph. Nothing waits, nothing allocates.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "gcrt/config.h"

// Whether the runtime knows graphs with programmatic edges.
#define GCRT_HAS_OVERLAP (CUDART_VERSION >= 12030)

namespace GCRT_NAMESPACE {

using Stream = cudaStream_t;

// A node of a captured graph, and a fingerprint of what it was captured with.
struct GraphStep {
  cudaGraphNode_t node;
  std::uint64_t fingerprint;
};

// What a queue does with the work it is given.
enum class QueueMode : int {
  kRun,     // starts it
  kRecord,  // the stream captures it; the nodes are noted in `steps`
  kUpdate,  // nothing runs; nodes of `exec` whose arguments differ from the recorded ones are changed
  kOutline  // nothing runs; `outline` tells which steps there would be
};

class DeviceClock;  // of app/device_layers.h

// Where the work of one run goes, and the first error that it met. After an error nothing more is started.
struct Queue {
  Stream stream = nullptr;
  cudaError_t error = cudaSuccess;
  QueueMode mode = QueueMode::kRun;
  cudaGraphExec_t exec = nullptr;
  GraphStep* steps = nullptr;
  int capacity = 0;
  int count = 0;              // of steps recorded, or passed in an update
  std::uint64_t outline = 0;  // equal for runs of the same kernels and copies in the same order
  int* trap =
      nullptr;  // a word on the device that kernels set when an index is out of range; null: none does
  std::uint32_t* counters =
      nullptr;  // on the device, 0 between kernels: of blocks that have come so far (arrives_last)
  void* cublaslt = nullptr;      // handle of the library, of projects that call it
  DeviceClock* clock = nullptr;  // of a run whose layers are timed
  bool stands_in = false;        // recorded for device memory of a caller who is not known yet
};

inline void keep_error(Queue& queue, cudaError_t error) {
  if (queue.error == cudaSuccess) queue.error = error;
}

// FNV-1a over the bytes of `value`. Padding may differ between equal arguments: then a node is set again, no
// more.
inline std::uint64_t mix_bytes(std::uint64_t hash, const void* value, std::size_t bytes) {
  const unsigned char* p = static_cast<const unsigned char*>(value);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 1099511628211u;
  return hash;
}
constexpr std::uint64_t kEmptyFingerprint = 14695981039346656037u;

// What kind of step comes next: a kernel by its address, else one of these. Sizes may leave steps out, and
// choose others; what a graph's nodes are given may change, but not what they are.
constexpr int kCopyStep = 1, kLibraryStep = 2, kBranchStep = 3;
inline void outline_step(Queue& queue, const void* what) {
  queue.outline = mix_bytes(queue.outline, &what, sizeof(what));
}
inline void outline_step(Queue& queue, int kind, int detail) {
  queue.outline = mix_bytes(mix_bytes(queue.outline, &kind, sizeof(kind)), &detail, sizeof(detail));
}

// The node that the stream captured last joins the steps of the queue.
inline void record_step(Queue& queue, std::uint64_t fingerprint) {
  if (queue.error != cudaSuccess) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
#if GCRT_HAS_OVERLAP
  // Programmatic edges have data, and a query that does not ask for it fails.
  const cudaGraphEdgeData* edges = nullptr;
#if CUDART_VERSION >= 13000
  keep_error(queue,
             cudaStreamGetCaptureInfo(queue.stream, &status, nullptr, nullptr, &nodes, &edges, &count));
#else
  keep_error(queue,
             cudaStreamGetCaptureInfo_v3(queue.stream, &status, nullptr, nullptr, &nodes, &edges, &count));
#endif
#else
  keep_error(queue, cudaStreamGetCaptureInfo_v2(queue.stream, &status, nullptr, nullptr, &nodes, &count));
#endif
  if (queue.error != cudaSuccess) return;
  // The last node once more: nothing was captured.
  const bool is_new = count == 1 && (queue.count == 0 || queue.steps[queue.count - 1].node != nodes[0]);
  if (status != cudaStreamCaptureStatusActive || !is_new || queue.count >= queue.capacity) {
    queue.error = cudaErrorInvalidValue;
    return;
  }
  queue.steps[queue.count++] = {nodes[0], fingerprint};
}

// The next recorded step if it must be changed, else null. Passes it either way.
inline GraphStep* changed_step(Queue& queue, std::uint64_t fingerprint) {
  if (queue.count >= queue.capacity) {
    queue.error = cudaErrorInvalidValue;
    return nullptr;
  }
  GraphStep& step = queue.steps[queue.count++];
  if (step.fingerprint == fingerprint) return nullptr;
  step.fingerprint = fingerprint;
  return &step;
}

// Which branch of the schedule is taken: a value on the host. A recorded run holds that branch alone; an
// update that would take the other one fails, and the run must be recorded again.
inline bool branch(Queue& queue, bool taken) {
  const std::uint64_t fingerprint = taken ? 1 : 2;
  if (queue.mode == QueueMode::kOutline) outline_step(queue, kBranchStep, taken ? 1 : 0);
  if (queue.mode == QueueMode::kOutline) return taken;
  if (queue.error != cudaSuccess || queue.mode == QueueMode::kRun) return taken;
  if (queue.count >= queue.capacity) {
    queue.error = cudaErrorInvalidValue;
  } else if (queue.mode == QueueMode::kRecord) {
    queue.steps[queue.count++] = {nullptr, fingerprint};
  } else if (queue.steps[queue.count++].fingerprint != fingerprint) {
    queue.error = cudaErrorInvalidValue;
  }
  return taken;
}

// Without dynamic shared memory beyond this many bytes a kernel needs no permission.
constexpr std::size_t kSharedBytesWithoutAsking = 48 * 1024;

// Permission for all that a block of the device can have, whatever this launch needs: it belongs to the
// kernel, and less would be too little for launches of the same kernel that wait in a graph or start in
// another thread. Kernels have no other shared memory.
inline cudaError_t allow_shared_memory(const void* kernel) {
  int device = 0, most = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  return error;
}

// Whether the machine code of a kernel waits for the grid before it: code compiled from PTX of an older
// architecture has no such instruction, whatever device runs it.
inline bool waits_for_previous_grid(const void* kernel) {
#if GCRT_HAS_OVERLAP
  cudaFuncAttributes attributes = {};
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) return attributes.ptxVersion >= 90;
  static_cast<void>(cudaGetLastError());
#else
  static_cast<void>(kernel);
#endif
  return false;
}

// What a launch may ask for beside its grid.
struct LaunchExtras {
  bool early = false;    // blocks may start while those of the kernel before are still at work
  unsigned cluster = 1;  // so many blocks along x run together and reach each other's shared memory
};

inline cudaError_t launch_with(const LaunchExtras& extras, const void* kernel, dim3 grid, dim3 block,
                               void** arguments, std::size_t shared_bytes, Stream stream) {
#if CUDART_VERSION >= 11080
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (extras.early) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  if (extras.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = extras.cluster;
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
  }
  return cudaLaunchKernelExC(&config, kernel, arguments);
#else
  if (extras.cluster > 1) return cudaErrorNotSupported;
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
#endif
}
inline cudaError_t launch_early(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                std::size_t shared_bytes, Stream stream) {
  return launch_with({true, 1}, kernel, grid, block, arguments, shared_bytes, stream);
}

// Starts kernel(arguments...), converted to the kernel's parameter types. A grid without blocks is no work.
// `early` holds in a captured run only.
template <class... P, class... A>
void launch_kernel(Queue& queue, const LaunchExtras& extras, dim3 grid, dim3 block, std::size_t shared_bytes,
                   void (*kernel)(P...), A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  if (queue.error != cudaSuccess || grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (queue.mode == QueueMode::kOutline) {
    outline_step(queue, reinterpret_cast<const void*>(kernel));
    return;
  }
#if !defined(__CUDACC__)
  cuda_on_cpu::declare_kernel(kernel);
#endif
  const auto start = [&](P... converted) {
    void* pointers[] = {static_cast<void*>(&converted)..., nullptr};
    const void* function = reinterpret_cast<const void*>(kernel);
    std::uint64_t fingerprint = kEmptyFingerprint;
    if (queue.mode != QueueMode::kRun) {
      const void* bytes[] = {&grid, &block, &shared_bytes, &function};
      const std::size_t sizes[] = {sizeof(grid), sizeof(block), sizeof(shared_bytes), sizeof(function)};
      for (int i = 0; i < 4; ++i) fingerprint = mix_bytes(fingerprint, bytes[i], sizes[i]);
      static_cast<void>(((fingerprint = mix_bytes(fingerprint, &converted, sizeof(P))), ...));
    }
    if (queue.mode == QueueMode::kUpdate) {
      if (GraphStep* step = changed_step(queue, fingerprint)) {
        if (shared_bytes > kSharedBytesWithoutAsking) keep_error(queue, allow_shared_memory(function));
        cudaKernelNodeParams parameters = {};
        parameters.func = const_cast<void*>(function);
        parameters.gridDim = grid;
        parameters.blockDim = block;
        parameters.sharedMemBytes = static_cast<unsigned>(shared_bytes);
        parameters.kernelParams = pointers;
        keep_error(queue, cudaGraphExecKernelNodeSetParams(queue.exec, step->node, &parameters));
      }
      return;
    }
    if (shared_bytes > kSharedBytesWithoutAsking) keep_error(queue, allow_shared_memory(function));
    if (queue.error != cudaSuccess) return;
    const bool overlaps =
        extras.early && queue.mode == QueueMode::kRecord && waits_for_previous_grid(function);
    const LaunchExtras asked = {overlaps, extras.cluster};
    keep_error(queue, overlaps || asked.cluster > 1
                          ? launch_with(asked, function, grid, block, pointers, shared_bytes, queue.stream)
                          : cudaLaunchKernel(function, grid, block, pointers, shared_bytes, queue.stream));
    if (queue.mode == QueueMode::kRecord) record_step(queue, fingerprint);
  };
  start(static_cast<A&&>(arguments)...);
}

template <class... P, class... A>
void launch(Queue& queue, dim3 grid, dim3 block, std::size_t shared_bytes, void (*kernel)(P...),
            A&&... arguments) {
  launch_kernel(queue, {}, grid, block, shared_bytes, kernel, static_cast<A&&>(arguments)...);
}

// The same of a kernel that calls await_previous_grid().
template <class... P, class... A>
void launch_overlapping(Queue& queue, dim3 grid, dim3 block, std::size_t shared_bytes, void (*kernel)(P...),
                        A&&... arguments) {
  launch_kernel(queue, {true, 1}, grid, block, shared_bytes, kernel, static_cast<A&&>(arguments)...);
}

// The same in clusters of so many blocks along x, of which the grid is a multiple.
template <class... P, class... A>
void launch_clusters(Queue& queue, unsigned cluster, dim3 grid, dim3 block, std::size_t shared_bytes,
                     void (*kernel)(P...), A&&... arguments) {
  launch_kernel(queue, {true, cluster}, grid, block, shared_bytes, kernel, static_cast<A&&>(arguments)...);
}

// Work that a library starts on the stream with pointers that no run changes: an update refuses to move it.
// `start` returns an error.
template <class F>
void call_library(Queue& queue, std::uint64_t fingerprint, const F& start) {
  if (queue.error != cudaSuccess) return;
  if (queue.mode == QueueMode::kOutline) {
    outline_step(queue, kLibraryStep, 0);
    return;
  }
  if (queue.mode == QueueMode::kUpdate) {
    if (changed_step(queue, fingerprint) != nullptr) keep_error(queue, cudaErrorInvalidValue);
    return;
  }
  keep_error(queue, start());
  if (queue.mode == QueueMode::kRecord) record_step(queue, fingerprint);
}

// Copies between any two of host and device. Host memory must be page-locked to be copied while the host goes
// on.
inline void copy(Queue& queue, void* target, const void* source, std::size_t bytes,
                 cudaMemcpyKind kind = cudaMemcpyDefault) {
  if (queue.error != cudaSuccess || bytes == 0) return;
  if (queue.mode == QueueMode::kOutline) {
    outline_step(queue, kCopyStep, static_cast<int>(kind));
    return;
  }
  std::uint64_t fingerprint = mix_bytes(kEmptyFingerprint, &target, sizeof(target));
  fingerprint = mix_bytes(mix_bytes(fingerprint, &source, sizeof(source)), &bytes, sizeof(bytes));
  if (queue.mode == QueueMode::kUpdate) {
    if (GraphStep* step = changed_step(queue, fingerprint)) {
      keep_error(queue,
                 cudaGraphExecMemcpyNodeSetParams1D(queue.exec, step->node, target, source, bytes, kind));
    }
    return;
  }
  keep_error(queue, cudaMemcpyAsync(target, source, bytes, kind, queue.stream));
  if (queue.mode == QueueMode::kRecord) record_step(queue, fingerprint);
}

// Sets every byte of device memory. Not for the caller's buffers.
inline void fill_bytes(Queue& queue, void* target, int value, std::size_t bytes) {
  if (queue.error != cudaSuccess || bytes == 0) return;
  std::uint64_t fingerprint = mix_bytes(kEmptyFingerprint, &target, sizeof(target));
  fingerprint = mix_bytes(mix_bytes(fingerprint, &value, sizeof(value)), &bytes, sizeof(bytes));
  if (queue.mode == QueueMode::kUpdate) {
    if (GraphStep* step = changed_step(queue, fingerprint)) {
      cudaMemsetParams parameters = {};
      parameters.dst = target;
      parameters.elementSize = 1;
      parameters.height = 1;
      parameters.pitch = bytes;
      parameters.value = static_cast<unsigned>(value);
      parameters.width = bytes;
      keep_error(queue, cudaGraphExecMemsetNodeSetParams(queue.exec, step->node, &parameters));
    }
    return;
  }
  call_library(queue, fingerprint, [&] { return cudaMemsetAsync(target, value, bytes, queue.stream); });
}

// How many blocks of `threads` threads cover `count` things.
constexpr unsigned blocks_for(std::ptrdiff_t count, std::ptrdiff_t threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

}  // namespace GCRT_NAMESPACE
