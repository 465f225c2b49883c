// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// A model's run as CUDA graphs: captured, replayed, and changed where a run has other sizes or other memory.
// Host code; what a model adds is its schedule.
//
//     struct Schedule : ScheduleDefaults {
//       using Memory = NAME_memory; using Inputs = NAME_inputs; using Outputs = NAME_outputs;
//       using Sizes = NAME_sizes;              // where the caller chooses them within bounds
//       static constexpr BlockSizes kBlocks;
//       static constexpr std::uint64_t kMark;  // of this very program
//       static constexpr CodeNeeds kNeeds;     // devices whose code it is
//       static constexpr int kSteps;           // launches and copies of one run, at most
//       static void each_port(Inputs& or const, Outputs& or const, visit);  // visit(pointer, bytes)
//       // All work of one run; with sizes:
//       static Status enqueue(Queue&, const Memory*, const Sizes*, const Inputs*, const Outputs*);
//     };
//
// An instance remembers kRememberedRuns of the runs that it has made, each by a graph of its own: one that is
// like any of them starts at once, so that buffers used in turn cost nothing. Any other run takes the graph
// of that one which ran longest ago, and changes parameters and grids of its nodes: so the lengths of a
// decoder, of which each comes once, capture nothing. (A length in device memory, with grids for the longest,
// would need no changes, but blocks that find nothing to do in every kernel, and two texts of each.) A graph
// can take only what has the same steps. Which those are is told by walking the schedule; where no graph has
// them, the run is captured.
#pragma once

#include <cstring>
#include <type_traits>

#include "gcrt/cuda/device/code_check.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/cuda/device/run_plan.h"
#include "gcrt/memory_check.h"
#include "gcrt/status.h"
#include "gcrt/weights_check.h"

namespace GCRT_NAMESPACE {

constexpr std::size_t kNoTrap = static_cast<std::size_t>(-1);
constexpr std::size_t kNoCounters = static_cast<std::size_t>(-1);

// The sizes of a model of one size.
struct NoSizes {};

// What most models are; a schedule overrides what it is not.
struct ScheduleDefaults {
  using Sizes = NoSizes;
  static constexpr CodeNeeds kNeeds = {0, false};     // any code serves
  static constexpr NoSizes kAhead{};                  // sizes at which init captures
  static constexpr WeightsPayload kPayload = {0, 0};  // of no bytes: there are no weights
  static constexpr bool kHasLinkedWeights = false;    // else the caller has put them on the device
  static constexpr bool kHasBranches = false;         // inputs choose between steps
  static constexpr bool kHasState = false;
  // The state remembers of what sizes it is. Then a schedule has goes_on(held, sizes), whether a run of these
  // sizes can begin with it; append(&held, sizes), what it is of afterwards; and each_cleared(visit), which
  // calls visit(offset, bytes) for what a reset sets to zero.
  static constexpr bool kHoldsSizes = false;
  static constexpr std::size_t kHostBytes = 0;           // what the host reads to choose branches
  static constexpr std::size_t kTrap = kNoTrap;          // arena offset of the word that tells of a bad index
  static constexpr std::size_t kCounters = kNoCounters;  // and of the words in which blocks count
  static constexpr std::size_t kZeroed = 0;              // where both lie: 0 when a run begins
  static constexpr std::size_t kZeroedBytes = 0;
  static const void* linked_weights() { return nullptr; }
  // Calls visit(at, offset, bytes) for the weights among those bytes.
  template <class Visit>
  static void each_host_weight(const Visit&) {}
  // Which architecture's kernels run here, in a project with kernels for several.
  static cudaError_t find_architecture(unsigned* found) {
    *found = 0;
    return cudaSuccess;
  }
  static cudaError_t open_library(void** handle) {
    *handle = nullptr;
    return cudaSuccess;
  }
  static void close_library(void* handle) { static_cast<void>(handle); }
};

// Captures what fill(queue) does, as a graph that can be launched, on a stream of its own, for the default
// stream cannot be captured. Nothing runs. Relaxed: a first launch may load the kernel, which other modes
// forbid. Errors of the device are kept in the queue.
template <class Fill>
Status capture_graph(Queue& queue, const Fill& fill, cudaGraph_t* graph, cudaGraphExec_t* exec) {
  Status status = Status::ok;
  queue.error = cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking);
  if (queue.error != cudaSuccess) return status;
  keep_error(queue, cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed));
  if (queue.error == cudaSuccess) {
    status = fill(queue);
    keep_error(queue, cudaStreamEndCapture(queue.stream, graph));
  }
  if (queue.error == cudaSuccess && status == Status::ok) {
    keep_error(queue, cudaGraphInstantiateWithFlags(exec, *graph, 0));
  }
  cudaStreamDestroy(queue.stream);
  return status;
}

// One run that an instance remembers.
template <class Schedule>
struct RememberedRun {
  cudaGraph_t graph;  // null: none was captured; holds the nodes that are changed in `exec`
  cudaGraphExec_t exec;
  std::uint64_t outline;  // of the steps
  std::uint64_t turn;     // of the last run, counted from 1; 0: it was captured ahead
  int count;              // of steps
  typename Schedule::Sizes sizes;
  typename Schedule::Inputs inputs;
  typename Schedule::Outputs outputs;
  GraphStep steps[Schedule::kSteps];

  bool is_of(const typename Schedule::Sizes& s, const typename Schedule::Inputs& from,
             const typename Schedule::Outputs& to) const {
    return exec != nullptr && turn > 0 && std::memcmp(&inputs, &from, sizeof(from)) == 0 &&
           std::memcmp(&outputs, &to, sizeof(to)) == 0 &&
           (std::is_same<typename Schedule::Sizes, NoSizes>::value ||
            std::memcmp(&sizes, &s, sizeof(s)) == 0);
  }
  void drop() {
    if (exec != nullptr) cudaGraphExecDestroy(exec);
    if (graph != nullptr) cudaGraphDestroy(graph);
    exec = nullptr;
    graph = nullptr;
  }
};

// What init leaves in the instance, in host memory.
template <class Schedule>
struct CapturedRun {
  using Memory = typename Schedule::Memory;
  using Inputs = typename Schedule::Inputs;
  using Outputs = typename Schedule::Outputs;
  using Sizes = typename Schedule::Sizes;
  using Remembered = RememberedRun<Schedule>;
  static constexpr std::size_t kInstanceBytes = Schedule::kBlocks.instance;

  std::uint64_t mark;
  const void* arena;
  const void* weights;
  const void* state;
  void* library;      // handle of cuBLASLt
  cudaError_t error;  // of the call that failed last
  unsigned architecture;
  std::uint64_t turns;  // runs so far
  Sizes held;           // of what the state is, where it remembers
  Remembered runs[kRememberedRuns];
  alignas(Schedule::kHostBytes > 0 ? 64
                                   : 1) std::byte host[Schedule::kHostBytes > 0 ? Schedule::kHostBytes : 1];

  static CapturedRun* of(const Memory* memory) { return static_cast<CapturedRun*>(memory->instance); }

  static Status init(const Memory* memory) {
    static_assert(sizeof(CapturedRun) <= Schedule::kBlocks.instance, "the instance is too small");
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    CapturedRun* const instance = of(memory);
    std::memset(memory->instance, 0, sizeof(CapturedRun));
    const cudaError_t has_code = check_code<Schedule>(Schedule::kNeeds);
    if (has_code != cudaSuccess) return instance->status_of(has_code);
    const Status status = instance->prepare_weights(memory);
    if (status != Status::ok) return status;
    const cudaError_t fetched = instance->fetch_host_weights(memory);
    if (fetched != cudaSuccess) return instance->status_of(fetched);
    const cudaError_t found = Schedule::find_architecture(&instance->architecture);
    if (found != cudaSuccess) return instance->status_of(found);
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
    if constexpr (!Schedule::kHasState) {
      return Status::ok;
    } else if constexpr (Schedule::kHoldsSizes) {
      of(memory)->held = {};
      cudaError_t cleared = cudaSuccess;
      Schedule::each_cleared([&](std::size_t offset, std::size_t bytes) {
        std::byte* const state = static_cast<std::byte*>(memory->state) + offset;
        if (cleared == cudaSuccess) cleared = cudaMemsetAsync(state, 0, bytes, stream_of(memory));
      });
      return of(memory)->status_of(cleared);
    } else {
      return of(memory)->status_of(
          cudaMemsetAsync(memory->state, 0, Schedule::kBlocks.state, stream_of(memory)));
    }
  }

  static Status run(const Memory* memory, const Sizes* sizes, const Inputs* inputs, const Outputs* outputs) {
    return in_state(memory, sizes, inputs, outputs, [&](CapturedRun* instance) {
      Remembered* run = nullptr;
      const Status status = instance->find({memory, sizes, inputs, outputs}, &run);
      if (status != Status::ok) return status;
      run->turn = ++instance->turns;
      return instance->status_of(cudaGraphLaunch(run->exec, stream_of(memory)));
    });
  }
  static Status run(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    return run(memory, &Schedule::kAhead, inputs, outputs);
  }

  // The same by single launches, without a graph.
  static Status enqueue(const Memory* memory, const Sizes* sizes, const Inputs* inputs,
                        const Outputs* outputs) {
    return run_by(memory, sizes, inputs, outputs, [&](CapturedRun* instance, const auto& fill) {
      Queue queue;
      queue.stream = stream_of(memory);
      const Status status = fill(queue);
      return status != Status::ok ? status : instance->status_of(queue.error);
    });
  }
  static Status enqueue(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    return enqueue(memory, &Schedule::kAhead, inputs, outputs);
  }

  // The same by start(instance, fill), where fill(queue) gives a queue all work of the run.
  template <class Start>
  static Status run_by(const Memory* memory, const Sizes* sizes, const Inputs* inputs, const Outputs* outputs,
                       const Start& start) {
    return in_state(memory, sizes, inputs, outputs, [&](CapturedRun* instance) {
      return start(instance, [&](Queue& queue) { return fill(queue, {memory, sizes, inputs, outputs}); });
    });
  }

  // Waits for the stream and tells how the last run ended.
  static Status finish(const Memory* memory) {
    if (const Status checked = check_initialized(memory); checked != Status::ok) return checked;
    CapturedRun* const instance = of(memory);
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

  // Whether init was called on the memory.
  static Status check_initialized(const Memory* memory) {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    return of(memory)->mark == Schedule::kMark ? Status::ok : Status::not_initialized;
  }

  // Whether a run may start.
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

  static const char* device_error(const Memory* memory) {
    return check(memory) == Status::ok ? cudaGetErrorString(of(memory)->error) : "";
  }

  static void release(const Memory* memory) {
    if (memory == nullptr || memory->instance == nullptr) return;
    CapturedRun* const instance = of(memory);
    if (instance->mark != Schedule::kMark) return;
    for (Remembered& run : instance->runs) run.drop();
    Schedule::close_library(instance->library);
    instance->mark = 0;
  }

  static Stream stream_of(const Memory* memory) { return static_cast<Stream>(memory->stream); }

  // The sizes of the state.
  static Sizes* held_by(const Memory* memory) { return &of(memory)->held; }

  static Status status_of(const Memory* memory, cudaError_t failure) {
    return of(memory)->status_of(failure);
  }
  Status status_of(cudaError_t failure) {
    if (failure == cudaSuccess) return Status::ok;
    error = failure;
    return Status::device_error;
  }

 private:
  // What a run is called with.
  struct Call {
    const Memory* memory;
    const Sizes* sizes;
    const Inputs* inputs;
    const Outputs* outputs;
  };

  // start(instance), if the call is good and the state goes on with its sizes.
  template <class Start>
  static Status in_state(const Memory* memory, const Sizes* sizes, const Inputs* inputs,
                         const Outputs* outputs, const Start& start) {
    const Status checked = check_call(memory, inputs, outputs);
    if (checked != Status::ok) return checked;
    CapturedRun* const instance = of(memory);
    if constexpr (Schedule::kHoldsSizes) {
      if (!Schedule::goes_on(&instance->held, sizes)) return Status::invalid_state;
      instance->held = *sizes;  // all that is left of the state should the run fail
      const Status status = start(instance);
      if (status == Status::ok) Schedule::append(&instance->held, sizes);
      return status;
    } else {
      static_cast<void>(sizes);
      return start(instance);
    }
  }

  static Status check(const Memory* memory) {
    return memory == nullptr ? Status::null_pointer
                             : check_memory(memory, memory->weights, Schedule::kBlocks);
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

  // Wherever the weights came from, they are on the device now.
  cudaError_t fetch_host_weights(const Memory* memory) {
    cudaError_t copied = cudaSuccess;
    Schedule::each_host_weight([&](std::size_t at, std::size_t offset, std::size_t bytes) {
      if (copied != cudaSuccess) return;
      const std::byte* const from =
          static_cast<const std::byte*>(memory->weights) + kWeightsHeaderBytes + offset;
      copied = copy_now(memory, host + at, from, bytes, cudaMemcpyDeviceToHost);
    });
    return copied;
  }

  static cudaError_t copy_now(const Memory* memory, void* target, const void* source, std::size_t bytes,
                              cudaMemcpyKind kind) {
    const cudaError_t started = cudaMemcpyAsync(target, source, bytes, kind, stream_of(memory));
    return started != cudaSuccess ? started : cudaStreamSynchronize(stream_of(memory));
  }

  // All work of one run, in order.
  static Status fill(Queue& queue, const Call& call) {
    queue.cublaslt = of(call.memory)->library;
    queue.architecture = of(call.memory)->architecture;
    std::byte* const arena = static_cast<std::byte*>(call.memory->arena);
    fill_bytes(queue, arena + Schedule::kZeroed, 0, Schedule::kZeroedBytes);
    if constexpr (Schedule::kTrap != kNoTrap) queue.trap = reinterpret_cast<int*>(arena + Schedule::kTrap);
    if constexpr (Schedule::kCounters != kNoCounters) {
      queue.counters = reinterpret_cast<std::uint32_t*>(arena + Schedule::kCounters);
    }
    if constexpr (std::is_same<Sizes, NoSizes>::value) {
      return Schedule::enqueue(queue, call.memory, call.inputs, call.outputs);
    } else {
      return Schedule::enqueue(queue, call.memory, call.sizes, call.inputs, call.outputs);
    }
  }

  // The arena stands in for device memory of the caller's until the first run puts that into the graph. If
  // that brings memory of the host, which only copies reach, the first run captures.
  void capture_ahead(const Memory* memory) {
    Inputs from{};
    Outputs to{};
    Schedule::each_port(from, to, [&](auto& pointer, std::size_t) {
      pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(memory->arena);
    });
    const Call call{memory, &Schedule::kAhead, &from, &to};
    std::uint64_t outline = 0;
    const bool is_known = outline_of(call, true, &outline) == Status::ok;
    if (!is_known || capture(call, true, outline, &runs[0]) != Status::ok)
      static_cast<void>(cudaGetLastError());
  }

  // The graph of a run: one that is remembered, changed, or captured. Inputs of a model with branches choose
  // steps by what they hold.
  Status find(const Call& call, Remembered** found) {
    std::uint64_t outline = 0;
    const auto is_it = [&](const Remembered& run) {
      return run.is_of(*call.sizes, *call.inputs, *call.outputs) &&
             (!Schedule::kHasBranches || run.outline == outline);
    };
    if constexpr (!Schedule::kHasBranches) {
      if (lookup(is_it, found)) return Status::ok;
    }
    const Status status = outline_of(call, false, &outline);
    if (status != Status::ok) return status;
    if constexpr (Schedule::kHasBranches) {
      if (lookup(is_it, found)) return Status::ok;
    }
    const auto is_alike = [&](const Remembered& run) {
      return run.exec != nullptr && run.outline == outline;
    };
    const auto never_ran = [](const Remembered& run) { return run.turn == 0; };
    const auto is_ahead = [&](const Remembered& run) { return is_alike(run) && never_ran(run); };
    const auto is_free = [](const Remembered& run) { return run.exec == nullptr; };
    if (lookup(is_ahead, found)) return change(call, outline, *found);
    if (lookup(is_free, found) || lookup(never_ran, found)) return capture(call, false, outline, *found);
    if (lookup(is_alike, found)) return change(call, outline, *found);
    // One graph stays of steps that no other graph has: a prompt and the rows behind it come again.
    const auto has_twin = [&](const Remembered& run) {
      int count = 0;
      for (const Remembered& other : runs) count += other.outline == run.outline;
      return count > 1;
    };
    if (!lookup(has_twin, found)) lookup([](const Remembered&) { return true; }, found);
    return capture(call, false, outline, *found);
  }

  // Finds the run that fits and ran longest ago.
  template <class Fits>
  bool lookup(const Fits& fits, Remembered** found) {
    *found = nullptr;
    for (Remembered& run : runs) {
      if (fits(run) && (*found == nullptr || run.turn < (*found)->turn)) *found = &run;
    }
    return *found != nullptr;
  }

  static Status outline_of(const Call& call, bool stands_in, std::uint64_t* outline) {
    Queue queue;
    queue.mode = QueueMode::kOutline;
    queue.outline = kEmptyFingerprint;
    queue.stands_in = stands_in;
    const Status status = fill(queue, call);
    *outline = queue.outline;
    return status;
  }

  Status capture(const Call& call, bool stands_in, std::uint64_t outline, Remembered* run) {
    run->drop();
    Queue queue;
    queue.mode = QueueMode::kRecord;
    queue.steps = run->steps;
    queue.capacity = Schedule::kSteps;
    queue.stands_in = stands_in;
    const auto fill_with = [&](Queue& captured) { return fill(captured, call); };
    const Status status = capture_graph(queue, fill_with, &run->graph, &run->exec);
    if (queue.error != cudaSuccess || status != Status::ok) run->drop();
    run->count = queue.count;
    remember(call, outline, run);
    return status != Status::ok ? status : status_of(queue.error);
  }

  // Gives the nodes of a graph of the same steps what this run has.
  Status change(const Call& call, std::uint64_t outline, Remembered* run) {
    Queue queue;
    queue.mode = QueueMode::kUpdate;
    queue.exec = run->exec;
    queue.steps = run->steps;
    queue.capacity = run->count;
    const Status status = fill(queue, call);
    if (status != Status::ok || queue.error != cudaSuccess || queue.count != run->count) {
      // A copy between other kinds of memory is another graph, and so is what a library starts otherwise.
      static_cast<void>(cudaGetLastError());
      return capture(call, false, outline, run);
    }
    remember(call, outline, run);
    return Status::ok;
  }

  static void remember(const Call& call, std::uint64_t outline, Remembered* run) {
    run->turn = 0;  // until it runs
    run->outline = outline;
    run->sizes = *call.sizes;
    run->inputs = *call.inputs;
    run->outputs = *call.outputs;
  }
};

}  // namespace GCRT_NAMESPACE
