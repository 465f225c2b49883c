// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// A model of several sizes: a captured run for each choice, side by side in the instance. Host code.
//
// The instance: which run was the last, and of what sizes the state is; then what each run needs. Arena,
// weights and state are the same for all.
#pragma once

#include "gcrt/cuda/device/captured_run.h"

namespace GCRT_NAMESPACE {

// What the schedule of one choice of sizes shows: the functions of its CapturedRun.
template <class Memory, class Sizes, class Inputs, class Outputs>
struct SizedEntry {
  std::size_t instance_bytes;
  Status (*init)(const Memory*);
  Status (*reset)(const Memory*);
  Status (*check_call)(const Memory*, const Inputs*, const Outputs*);
  Status (*run)(const Memory*, const Sizes*, const Inputs*, const Outputs*);
  Status (*enqueue)(const Memory*, const Sizes*, const Inputs*, const Outputs*);
  Status (*finish)(const Memory*);
  Status (*check_initialized)(const Memory*);
  Status (*status_of)(const Memory*, cudaError_t);
  const char* (*device_error)(const Memory*);
  void (*release)(const Memory*);
};

template <class R>
using EntryOf = SizedEntry<typename R::Memory, typename R::Sizes, typename R::Inputs, typename R::Outputs>;

template <class Run>
constexpr EntryOf<Run> sized_entry() {
  return {Run::kInstanceBytes,
          Run::init,
          Run::reset,
          Run::check_call,
          Run::run,
          Run::enqueue,
          Run::finish,
          Run::check_initialized,
          Run::status_of,
          Run::device_error,
          Run::release};
}

// For a model whose state does not remember sizes. Else goes_on(held, sizes) and append(&held, sizes, choice)
// are as in ScheduleDefaults.
struct HoldsNothing {
  static constexpr bool kHoldsSizes = false;
};

template <class Memory, class Sizes, class Inputs, class Outputs, class Held>
class SizedRun {
 public:
  using Entry = SizedEntry<Memory, Sizes, Inputs, Outputs>;

  // `entries`: of all choices; the first puts the weights on the device.
  constexpr SizedRun(const Entry* const* entries, int count, const BlockSizes& blocks)
      : entries_(entries), count_(count), blocks_(blocks) {}

  Status init(const Memory* memory) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    *head_of(memory) = {};
    for (int i = 0; i < count_; ++i) {
      const Memory own = memory_of(memory, i);
      const Status status = entries_[i]->init(&own);
      if (status == Status::ok) continue;
      set_last(memory, i);
      return status;
    }
    return Status::ok;
  }
  Status reset(const Memory* memory) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    *held_by(memory) = {};
    const Memory own = memory_of(memory, 0);
    return entries_[0]->reset(&own);
  }
  Status run(const Memory* memory, int choice, const Sizes* sizes, const Inputs* inputs,
             const Outputs* outputs) const {
    return call(memory, choice, entries_[choice]->run, sizes, inputs, outputs);
  }
  Status enqueue(const Memory* memory, int choice, const Sizes* sizes, const Inputs* inputs,
                 const Outputs* outputs) const {
    return call(memory, choice, entries_[choice]->enqueue, sizes, inputs, outputs);
  }
  Status finish(const Memory* memory) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    const int last = last_of(memory);
    if (last < 0 || last >= count_) return Status::not_initialized;
    const Memory own = memory_of(memory, last);
    return entries_[last]->finish(&own);
  }
  Status check_initialized(const Memory* memory) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    const Memory own = memory_of(memory, 0);
    return entries_[0]->check_initialized(&own);
  }
  static Stream stream_of(const Memory* memory) { return static_cast<Stream>(memory->stream); }
  // The sizes of the state.
  static Sizes* held_by(const Memory* memory) { return &head_of(memory)->held; }
  Status status_of(const Memory* memory, cudaError_t failure) const {
    const int last = last_of(memory);
    const Memory own = memory_of(memory, last);
    return entries_[last]->status_of(&own, failure);
  }
  const char* device_error(const Memory* memory) const {
    if (check(memory) != Status::ok) return "";
    const int last = last_of(memory);
    if (last < 0 || last >= count_) return "";
    const Memory own = memory_of(memory, last);
    return entries_[last]->device_error(&own);
  }
  void release(const Memory* memory) const {
    if (memory == nullptr || memory->instance == nullptr) return;
    for (int i = 0; i < count_; ++i) {
      const Memory own = memory_of(memory, i);
      entries_[i]->release(&own);
    }
  }
  // With the instance of this choice alone.
  Memory memory_of(const Memory* memory, int choice) const {
    std::size_t offset = kHead;
    for (int i = 0; i < choice; ++i) offset += entries_[i]->instance_bytes;
    Memory own = *memory;
    own.instance = static_cast<std::byte*>(memory->instance) + offset;
    return own;
  }

 private:
  struct Head {
    int last;  // the run whose end finish() waits for
    Sizes held;
  };
  static constexpr std::size_t kHead = (sizeof(Head) + 63) / 64 * 64;
  static Head* head_of(const Memory* memory) { return static_cast<Head*>(memory->instance); }

  Status check(const Memory* memory) const {
    return memory == nullptr ? Status::null_pointer : check_memory(memory, memory->weights, blocks_);
  }
  static int last_of(const Memory* memory) { return head_of(memory)->last; }
  static void set_last(const Memory* memory, int choice) { head_of(memory)->last = choice; }
  template <class Function>
  Status call(const Memory* memory, int choice, Function function, const Sizes* sizes, const Inputs* inputs,
              const Outputs* outputs) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    const Memory own = memory_of(memory, choice);
    if constexpr (Held::kHoldsSizes) {
      const Status checked = entries_[choice]->check_call(&own, inputs, outputs);
      if (checked != Status::ok) return checked;
      if (!Held::goes_on(held_by(memory), sizes)) return Status::invalid_state;
      *held_by(memory) = *sizes;  // all that is left of the state should the run fail
    }
    const Status status = function(&own, sizes, inputs, outputs);
    if constexpr (Held::kHoldsSizes) {
      if (status == Status::ok) Held::append(held_by(memory), sizes, choice);
    }
    if (status == Status::ok || status == Status::device_error) set_last(memory, choice);
    return status;
  }

  const Entry* const* entries_;
  int count_;
  BlockSizes blocks_;
};

}  // namespace GCRT_NAMESPACE
