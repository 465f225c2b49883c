// A model's run as one CUDA graph: captured once, replayed, and changed only where the caller's inputs or
// outputs lie elsewhere than before. Host code; what a model adds is its schedule.
//
//     struct Schedule : ScheduleDefaults {
//       using Memory = NAME_memory; using Inputs = NAME_inputs; using Outputs = NAME_outputs;
//       static constexpr BlockSizes kBlocks;
//       static constexpr std::uint64_t kMark;  // of this very program
//       static constexpr int kSteps;           // launches and copies of one run, at most
//       static void each_port(Inputs& or const, Outputs& or const, visit);  // visit(pointer, bytes)
//       static Status enqueue(Queue&, const Memory*, const Inputs*, const Outputs*);  // all work of one run
//     };
#pragma once

#include <cstring>
#include <type_traits>

#include "gcrt/cuda/launch.h"
#include "gcrt/memory_check.h"
#include "gcrt/status.h"
#include "gcrt/weights_check.h"

namespace GCRT_NAMESPACE {

constexpr std::size_t kNoTrap = static_cast<std::size_t>(-1);
constexpr std::size_t kNoCounters = static_cast<std::size_t>(-1);

// What most models are; a schedule overrides what it is not.
struct ScheduleDefaults {
  static constexpr WeightsPayload kPayload = {0, 0};  // of no bytes: there are no weights
  static constexpr bool kHasLinkedWeights = false;    // else the caller has put them on the device
  static constexpr bool kHasBranches = false;         // inputs choose between steps
  static constexpr bool kHasState = false;
  static constexpr std::size_t kHostBytes = 0;           // what the host computes to choose branches
  static constexpr std::size_t kTrap = kNoTrap;          // arena offset of the word that tells of a bad index
  static constexpr std::size_t kCounters = kNoCounters;  // and of the words in which blocks count
  static constexpr std::size_t kZeroed = 0;              // where both lie: 0 when a run begins
  static constexpr std::size_t kZeroedBytes = 0;
  static const void* linked_weights() { return nullptr; }
  static cudaError_t open_library(void** handle) {
    *handle = nullptr;
    return cudaSuccess;
  }
  static void close_library(void* handle) { static_cast<void>(handle); }
};

// What init leaves in the instance, in host memory.
template <class Schedule>
struct CapturedRun {
  using Memory = typename Schedule::Memory;
  using Inputs = typename Schedule::Inputs;
  using Outputs = typename Schedule::Outputs;

  std::uint64_t mark;
  const void* arena;
  const void* weights;
  const void* state;
  cudaGraph_t graph;  // null: none was captured; holds the nodes that runs change in `exec`
  cudaGraphExec_t exec;
  void* library;      // handle of cuBLASLt
  cudaError_t error;  // of the call that failed last
  int count;          // of steps
  Inputs inputs;      // that the graph reads
  Outputs outputs;
  GraphStep steps[Schedule::kSteps];
  alignas(Schedule::kHostBytes > 0 ? 64
                                   : 1) std::byte host[Schedule::kHostBytes > 0 ? Schedule::kHostBytes : 1];

  static CapturedRun* of(const Memory* memory) { return static_cast<CapturedRun*>(memory->instance); }

  static Status init(const Memory* memory) {
    static_assert(sizeof(CapturedRun) <= Schedule::kBlocks.instance, "the instance is too small");
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    CapturedRun* const instance = of(memory);
    std::memset(memory->instance, 0, sizeof(CapturedRun));
    const Status status = instance->prepare_weights(memory);
    if (status != Status::ok) return status;
    const cudaError_t opened = Schedule::open_library(&instance->library);
    if (opened != cudaSuccess) return instance->status_of(opened);
    instance->arena = memory->arena;
    instance->weights = memory->weights;
    instance->state = memory->state;
    instance->mark = Schedule::kMark;
    if constexpr (!Schedule::kHasBranches) instance->capture_ahead(memory);
    return reset(memory);
  }

  static Status reset(const Memory* memory) {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    if constexpr (Schedule::kHasState) {
      return of(memory)->status_of(
          cudaMemsetAsync(memory->state, 0, Schedule::kBlocks.state, stream_of(memory)));
    } else {
      return Status::ok;
    }
  }

  static Status run(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    Status status = check_call(memory, inputs, outputs);
    if (status != Status::ok) return status;
    CapturedRun* const instance = of(memory);
    status = instance->graph == nullptr ? instance->capture(memory, inputs, outputs, false)
                                        : instance->redirect(memory, inputs, outputs);
    if (status != Status::ok) return status;
    return instance->status_of(cudaGraphLaunch(instance->exec, stream_of(memory)));
  }

  // The same by single launches, without a graph.
  static Status enqueue(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    Status status = check_call(memory, inputs, outputs);
    if (status != Status::ok) return status;
    Queue queue;
    queue.stream = stream_of(memory);
    status = fill(queue, memory, inputs, outputs);
    return status != Status::ok ? status : of(memory)->status_of(queue.error);
  }

  // Waits for the stream and tells how the last run ended.
  static Status finish(const Memory* memory) {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    CapturedRun* const instance = of(memory);
    if (instance->mark != Schedule::kMark) return Status::not_initialized;
    if constexpr (Schedule::kTrap != kNoTrap) {
      int trap = 0;
      cudaError_t copied =
          cudaMemcpyAsync(&trap, static_cast<const std::byte*>(memory->arena) + Schedule::kTrap, sizeof(trap),
                          cudaMemcpyDeviceToHost, stream_of(memory));
      if (copied == cudaSuccess) copied = cudaStreamSynchronize(stream_of(memory));
      if (copied == cudaSuccess && trap != 0) return Status::index_out_of_range;
      return instance->status_of(copied);
    } else {
      return instance->status_of(cudaStreamSynchronize(stream_of(memory)));
    }
  }

  static const char* device_error(const Memory* memory) {
    return check(memory) == Status::ok ? cudaGetErrorString(of(memory)->error) : "";
  }

  static void release(const Memory* memory) {
    if (memory == nullptr || memory->instance == nullptr) return;
    CapturedRun* const instance = of(memory);
    if (instance->mark != Schedule::kMark) return;
    instance->drop_graph();
    Schedule::close_library(instance->library);
    instance->mark = 0;
  }

 private:
  static Stream stream_of(const Memory* memory) { return static_cast<Stream>(memory->stream); }

  static Status check(const Memory* memory) {
    return memory == nullptr ? Status::null_pointer
                             : check_memory(memory, memory->weights, Schedule::kBlocks);
  }

  static Status check_call(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    Status status = check(memory);
    if (status != Status::ok) return status;
    if (inputs == nullptr || outputs == nullptr) return Status::null_pointer;
    Schedule::each_port(*inputs, *outputs, [&](const auto* pointer, std::size_t bytes) {
      if (status == Status::ok && bytes > 0) status = check_tensor(pointer);
    });
    if (status != Status::ok) return status;
    const CapturedRun* const instance = of(memory);
    const bool same = instance->mark == Schedule::kMark && instance->arena == memory->arena &&
                      instance->weights == memory->weights && instance->state == memory->state;
    return same ? Status::ok : Status::not_initialized;
  }

  Status status_of(cudaError_t failure) {
    if (failure == cudaSuccess) return Status::ok;
    error = failure;
    return Status::device_error;
  }

  // Linked weights go to the device. Of others, which the caller has put there, the header is looked at.
  Status prepare_weights(const Memory* memory) {
    if constexpr (Schedule::kHasLinkedWeights) {
      const void* const linked = Schedule::linked_weights();
      if (!weights_are_good(static_cast<const std::byte*>(linked), Schedule::kPayload))
        return Status::bad_weights;
      return status_of(copy_now(memory, const_cast<void*>(memory->weights), linked, Schedule::kBlocks.weights,
                                cudaMemcpyHostToDevice));
    } else if constexpr (Schedule::kPayload.bytes > 0) {
      std::byte header[kWeightsHeaderBytes];
      const cudaError_t copied =
          copy_now(memory, header, memory->weights, sizeof(header), cudaMemcpyDeviceToHost);
      if (copied != cudaSuccess) return status_of(copied);
      return header_is_good(header, Schedule::kPayload) ? Status::ok : Status::bad_weights;
    } else {
      return Status::ok;
    }
  }

  static cudaError_t copy_now(const Memory* memory, void* target, const void* source, std::size_t bytes,
                              cudaMemcpyKind kind) {
    const cudaError_t started = cudaMemcpyAsync(target, source, bytes, kind, stream_of(memory));
    return started != cudaSuccess ? started : cudaStreamSynchronize(stream_of(memory));
  }

  // All work of one run, in order.
  static Status fill(Queue& queue, const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    queue.cublaslt = of(memory)->library;
    std::byte* const arena = static_cast<std::byte*>(memory->arena);
    fill_bytes(queue, arena + Schedule::kZeroed, 0, Schedule::kZeroedBytes);
    if constexpr (Schedule::kTrap != kNoTrap) queue.trap = reinterpret_cast<int*>(arena + Schedule::kTrap);
    if constexpr (Schedule::kCounters != kNoCounters) {
      queue.counters = reinterpret_cast<std::uint32_t*>(arena + Schedule::kCounters);
    }
    return Schedule::enqueue(queue, memory, inputs, outputs);
  }

  void drop_graph() {
    if (exec != nullptr) cudaGraphExecDestroy(exec);
    if (graph != nullptr) cudaGraphDestroy(graph);
    exec = nullptr;
    graph = nullptr;
  }

  // The arena stands in for device memory of the caller's until the first run puts that into the graph. If
  // that brings memory of the host, which only copies reach, the first run captures.
  void capture_ahead(const Memory* memory) {
    Inputs from{};
    Outputs to{};
    Schedule::each_port(from, to, [&](auto& pointer, std::size_t) {
      pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(memory->arena);
    });
    if (capture(memory, &from, &to, true) != Status::ok) static_cast<void>(cudaGetLastError());
  }

  // Captures the run on a stream of its own, for the default stream cannot be captured. Nothing runs.
  // Relaxed: a first launch may load the kernel, which other modes forbid.
  Status capture(const Memory* memory, const Inputs* from, const Outputs* to, bool stands_in) {
    drop_graph();
    Queue queue;
    queue.mode = QueueMode::kRecord;
    queue.steps = steps;
    queue.capacity = Schedule::kSteps;
    queue.stands_in = stands_in;
    queue.error = cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking);
    if (queue.error != cudaSuccess) return status_of(queue.error);
    Status status = Status::ok;
    keep_error(queue, cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed));
    if (queue.error == cudaSuccess) {
      status = fill(queue, memory, from, to);
      keep_error(queue, cudaStreamEndCapture(queue.stream, &graph));
    }
    if (queue.error == cudaSuccess && status == Status::ok) {
      keep_error(queue, cudaGraphInstantiateWithFlags(&exec, graph, 0));
    }
    cudaStreamDestroy(queue.stream);
    if (queue.error != cudaSuccess || status != Status::ok) drop_graph();
    count = queue.count;
    inputs = *from;
    outputs = *to;
    return status != Status::ok ? status : status_of(queue.error);
  }

  // Lets the captured kernels and copies that read inputs or write outputs do so elsewhere. Where inputs
  // choose branches, the schedule is walked each time.
  Status redirect(const Memory* memory, const Inputs* from, const Outputs* to) {
    if constexpr (!Schedule::kHasBranches) {
      if (std::memcmp(&inputs, from, sizeof(*from)) == 0 && std::memcmp(&outputs, to, sizeof(*to)) == 0) {
        return Status::ok;
      }
    }
    Queue queue;
    queue.mode = QueueMode::kUpdate;
    queue.exec = exec;
    queue.steps = steps;
    queue.capacity = count;
    const Status status = fill(queue, memory, from, to);
    if (status != Status::ok || queue.error != cudaSuccess || queue.count != count) {
      // Another branch, or a copy between other kinds of memory, is another graph: the run is captured again.
      static_cast<void>(cudaGetLastError());
      return capture(memory, from, to, false);
    }
    inputs = *from;
    outputs = *to;
    return Status::ok;
  }
};

}  // namespace GCRT_NAMESPACE
