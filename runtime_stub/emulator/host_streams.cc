// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Launches, streams, events and graphs. Work runs when it is given to a stream; a stream that captures keeps
// it as the nodes of a graph instead.
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda_on_cpu.h"
#include "device_memory.h"
#include "host_state.h"

using namespace cuda_on_cpu;

/// Parameters may have any alignment that the machine knows.
struct alignas(64) ArgumentBytes {
  unsigned char bytes[64];
};

struct CUgraphNode_st {
  enum class Kind { kKernel, kCopy, kFill, kEvent };
  Kind kind = Kind::kKernel;
  // Kernel.
  const void* kernel = nullptr;
  const Signature* signature = nullptr;
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  bool starts_early = false;
  unsigned cluster = 1;
  std::vector<std::unique_ptr<ArgumentBytes[]>> arguments;
  // Copy and fill.
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
  cudaMemcpyKind direction = cudaMemcpyDefault;
  int value = 0;
  // Event.
  cudaEvent_t event = nullptr;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // each after the one before
  std::shared_ptr<bool> is_alive = std::make_shared<bool>(true);
  ~CUgraph_st() { *is_alive = false; }
};
struct CUgraphExec_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<cudaGraphNode_t> originals;
  std::shared_ptr<bool> is_graph_alive;
};
struct CUstream_st {
  std::unique_ptr<CUgraph_st> capture;
  cudaGraphNode_t last = nullptr;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
  bool captured = false;  // last recorded inside a capture, where it stands for a place in the graph
};

namespace {

std::atomic<int> graphs_made{0};

struct Kernel {
  const Signature* signature;
  std::size_t shared_limit;
};
std::mutex kernels_mutex;
std::map<const void*, Kernel>& kernels() {
  static std::map<const void*, Kernel> kernels;
  return kernels;
}

void keep_arguments(CUgraphNode_st& node, void* const* arguments) {
  node.arguments.clear();
  for (std::size_t i = 0; i < node.signature->count; ++i) {
    node.arguments.emplace_back(new ArgumentBytes[node.signature->sizes[i] / sizeof(ArgumentBytes) + 1]);
    std::memcpy(node.arguments.back().get(), arguments[i], node.signature->sizes[i]);
  }
}

// Fills in what a launch needs from its kernel; refuses what a device would refuse.
cudaError_t check_launch(CUgraphNode_st& node) {
  std::size_t limit = 0;
  {
    const std::lock_guard<std::mutex> lock(kernels_mutex);
    const auto found = kernels().find(node.kernel);
    if (found == kernels().end()) return fail(cudaErrorInvalidDeviceFunction);
    node.signature = found->second.signature;
    limit = found->second.shared_limit;
  }
  const auto within = [](dim3 size, unsigned x, unsigned y, unsigned z) {
    return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= x && size.y <= y && size.z <= z;
  };
  // An H200 with driver 580 says so of each of these.
  const std::size_t threads = std::size_t{node.block.x} * node.block.y * node.block.z;
  if (!within(node.block, 1024, 1024, 64) || threads > kMostThreads ||
      !within(node.grid, 0x7fffffff, 65535, 65535)) {
    return fail(cudaErrorInvalidValue);
  }
  if (node.cluster > 1 && capability() < 90) return fail(cudaErrorNotSupported);
  if (node.grid.x % node.cluster != 0 ||
      (node.cluster > 1 && (threads % 32 != 0 || threads * node.cluster > kMostClusterThreads))) {
    return fail(cudaErrorInvalidConfiguration);
  }
  return node.shared_bytes > limit ? fail(cudaErrorInvalidValue) : cudaSuccess;
}

void record(cudaEvent_t event) {
  event->time = std::chrono::steady_clock::now();
  event->recorded = true;
  event->captured = false;
}

void execute(const CUgraphNode_st& node) {
  const DeviceAccess access;
  if (node.kind == CUgraphNode_st::Kind::kCopy) {
    std::memmove(node.target, node.source, node.bytes);
  } else if (node.kind == CUgraphNode_st::Kind::kFill) {
    std::memset(node.target, node.value, node.bytes);
  } else if (node.kind == CUgraphNode_st::Kind::kEvent) {
    record(node.event);
  } else {
    std::vector<void*> arguments;
    for (const auto& argument : node.arguments) arguments.push_back(argument.get());
    run_grid({node.kernel, node.signature, node.grid, node.block, node.shared_bytes, arguments.data(),
              node.starts_early, node.cluster});
    check_ends();
  }
}

cudaError_t submit(cudaStream_t stream, std::unique_ptr<CUgraphNode_st> node) {
  if (stream != nullptr && stream->capture != nullptr) {
    stream->last = node.get();
    stream->capture->nodes.push_back(std::move(node));
  } else {
    execute(*node);
  }
  return cudaSuccess;
}

// "node must remain in the graph which was used to instantiate hGraphExec" (cudaGraphExec...NodeSetParams).
cudaGraphNode_t find_node(cudaGraphExec_t exec, cudaGraphNode_t node, CUgraphNode_st::Kind kind) {
  if (!*exec->is_graph_alive) die("a node is changed whose graph has been destroyed");
  for (std::size_t i = 0; i < exec->nodes.size(); ++i) {
    if (exec->originals[i] == node && exec->nodes[i]->kind == kind) return exec->nodes[i].get();
  }
  return nullptr;
}

std::unique_ptr<CUgraphNode_st> copy_of(const CUgraphNode_st& node) {
  auto copy = std::make_unique<CUgraphNode_st>();
  copy->kind = node.kind;
  copy->kernel = node.kernel;
  copy->signature = node.signature;
  copy->grid = node.grid;
  copy->block = node.block;
  copy->shared_bytes = node.shared_bytes;
  copy->starts_early = node.starts_early;
  copy->cluster = node.cluster;
  copy->target = node.target;
  copy->source = node.source;
  copy->bytes = node.bytes;
  copy->direction = node.direction;
  copy->value = node.value;
  copy->event = node.event;
  if (node.kind == CUgraphNode_st::Kind::kKernel) {
    std::vector<void*> arguments;
    for (const auto& argument : node.arguments) arguments.push_back(argument.get());
    keep_arguments(*copy, arguments.data());
  }
  return copy;
}

}  // namespace

int cuda_on_cpu::instantiated_graphs() { return graphs_made; }

void cuda_on_cpu::declare_kernel(const void* kernel, const Signature* signature) {
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  kernels().insert({kernel, {signature, kSharedBytesWithoutAsking}});
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  if (kernels().count(kernel) == 0) return fail(cudaErrorInvalidDeviceFunction);
  // PTX of 90 runs on later devices, which have compiled it: on 9.0 there is sm_90a.
  const int compiled = capability();
  *attributes = {compiled, compiled == 90 && !has_warpgroups() ? 100 : compiled};
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::size_t bytes = static_cast<std::size_t>(value);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || bytes > most_shared_bytes()) {
    return fail(cudaErrorInvalidValue);
  }
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  const auto found = kernels().find(kernel);
  if (found == kernels().end()) return fail(cudaErrorInvalidDeviceFunction);
  found->second.shared_limit = bytes > kSharedBytesWithoutAsking ? bytes : kSharedBytesWithoutAsking;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  const cudaLaunchConfig_t config = {grid, block, shared_bytes, stream, nullptr, 0};
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->kernel = kernel;
  node->grid = config->gridDim;
  node->block = config->blockDim;
  node->shared_bytes = config->dynamicSmemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      node->starts_early = attribute.val.programmaticStreamSerializationAllowed != 0;
    } else if (attribute.id == cudaLaunchAttributeClusterDimension && attribute.val.clusterDim.x >= 1 &&
               attribute.val.clusterDim.y == 1 && attribute.val.clusterDim.z == 1) {
      node->cluster = attribute.val.clusterDim.x;
    } else {
      return fail(cudaErrorInvalidValue);
    }
  }
  if (const cudaError_t error = check_launch(*node); error != cudaSuccess) return error;
  keep_arguments(*node, arguments);
  return submit(config->stream, std::move(node));
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!copy_is_valid(target, source, bytes, kind)) return fail(cudaErrorInvalidValue);
  auto node = std::make_unique<CUgraphNode_st>();
  node->kind = CUgraphNode_st::Kind::kCopy;
  node->target = target;
  node->source = source;
  node->bytes = bytes;
  node->direction = kind;
  return submit(stream, std::move(node));
}
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(target, source, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!copy_is_valid(target, target, bytes, cudaMemcpyDeviceToDevice)) return fail(cudaErrorInvalidValue);
  auto node = std::make_unique<CUgraphNode_st>();
  node->kind = CUgraphNode_st::Kind::kFill;
  node->target = target;
  node->value = value;
  node->bytes = bytes;
  return submit(stream, std::move(node));
}
cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  return cudaMemsetAsync(target, value, bytes, nullptr);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream != nullptr && stream->capture != nullptr) return fail(cudaErrorStreamCaptureUnsupported);
  return cudaDeviceSynchronize();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  const bool captures = stream != nullptr && stream->capture != nullptr;
  if (flags == cudaEventRecordDefault) {
    if (!captures) {
      record(event);
    } else {
      event->captured = true;
    }
    return cudaSuccess;
  }
  auto node = std::make_unique<CUgraphNode_st>();
  node->kind = CUgraphNode_st::Kind::kEvent;
  node->event = event;
  return submit(stream, std::move(node));
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->captured || end->captured) return fail(cudaErrorInvalidValue);
  if (!start->recorded || !end->recorded) return fail(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr) return fail(cudaErrorStreamCaptureUnsupported);
  if (stream->capture != nullptr) return fail(cudaErrorIllegalState);
  stream->capture = std::make_unique<CUgraph_st>();
  stream->last = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream == nullptr || stream->capture == nullptr) return fail(cudaErrorIllegalState);
  *graph = stream->capture.release();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
  const bool active = stream != nullptr && stream->capture != nullptr;
  *status = active ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (!active) return cudaSuccess;
  if (id != nullptr) *id = 1;
  if (graph != nullptr) *graph = stream->capture.get();
  if (dependencies != nullptr) *dependencies = &stream->last;
  // The data are those of the edge to the node that comes next, whose launch says what that is. That of a
  // kernel which may start early lies behind it, at the edge from the node before.
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = stream->last == nullptr ? 0 : 1;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count && i < graph->nodes.size(); ++i) nodes[i] = graph->nodes[i].get();
  }
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  auto made = std::make_unique<CUgraphExec_st>();
  ++graphs_made;
  made->is_graph_alive = graph->is_alive;
  for (const auto& node : graph->nodes) {
    made->originals.push_back(node.get());
    made->nodes.push_back(copy_of(*node));
  }
  *exec = made.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (stream != nullptr && stream->capture != nullptr) {
    for (const auto& node : exec->nodes) submit(stream, copy_of(*node));
    return cudaSuccess;
  }
  const DeviceAccess access;  // once for all nodes
  for (const auto& node : exec->nodes) execute(*node);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  cudaGraphNode_t mine = find_node(exec, node, CUgraphNode_st::Kind::kKernel);
  if (mine == nullptr || parameters->kernelParams == nullptr) return fail(cudaErrorInvalidValue);
  CUgraphNode_st changed;
  changed.kernel = parameters->func;
  changed.grid = parameters->gridDim;
  changed.block = parameters->blockDim;
  changed.shared_bytes = parameters->sharedMemBytes;
  changed.starts_early = mine->starts_early;  // attributes of the node stay
  changed.cluster = mine->cluster;
  if (const cudaError_t error = check_launch(changed); error != cudaSuccess) return error;
  keep_arguments(changed, parameters->kernelParams);
  *mine = std::move(changed);
  return cudaSuccess;
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
  cudaGraphNode_t mine = find_node(exec, node, CUgraphNode_st::Kind::kFill);
  const bool is_line = parameters->elementSize == 1 && parameters->height == 1 && parameters->width > 0;
  if (mine == nullptr || !is_line ||
      !copy_is_valid(parameters->dst, parameters->dst, parameters->width, cudaMemcpyDeviceToDevice)) {
    return fail(cudaErrorInvalidValue);
  }
  mine->target = parameters->dst;
  mine->value = static_cast<int>(parameters->value);
  mine->bytes = parameters->width;
  return cudaSuccess;
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* target,
                                               const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  cudaGraphNode_t mine = find_node(exec, node, CUgraphNode_st::Kind::kCopy);
  if (mine == nullptr || !copy_is_valid(target, source, bytes, kind)) return fail(cudaErrorInvalidValue);
  mine->target = target;
  mine->source = source;
  mine->bytes = bytes;
  mine->direction = kind;
  return cudaSuccess;
}
