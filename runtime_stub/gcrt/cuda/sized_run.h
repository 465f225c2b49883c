// A model of several sizes: a captured run for each of them, side by side in the instance. Host code.
//
// The instance: 64 bytes, then what each run needs. Arena, weights and state are the same for all.
#pragma once

#include "gcrt/cuda/captured_run.h"

namespace GCRT_NAMESPACE {

// What the schedule of one choice of sizes shows: the functions of its CapturedRun.
template <class Memory, class Inputs, class Outputs>
struct SizedEntry {
  std::size_t instance_bytes;
  Status (*init)(const Memory*);
  Status (*reset)(const Memory*);
  Status (*run)(const Memory*, const Inputs*, const Outputs*);
  Status (*enqueue)(const Memory*, const Inputs*, const Outputs*);
  Status (*finish)(const Memory*);
  const char* (*device_error)(const Memory*);
  void (*release)(const Memory*);
};

template <class Run>
constexpr SizedEntry<typename Run::Memory, typename Run::Inputs, typename Run::Outputs> sized_entry() {
  return {Run::kInstanceBytes, Run::init,   Run::reset,        Run::run,
          Run::enqueue,        Run::finish, Run::device_error, Run::release};
}

template <class Memory, class Inputs, class Outputs>
class SizedRun {
 public:
  using Entry = SizedEntry<Memory, Inputs, Outputs>;

  // `entries`: of all choices; the first puts the weights on the device.
  constexpr SizedRun(const Entry* const* entries, int count, const BlockSizes& blocks)
      : entries_(entries), count_(count), blocks_(blocks) {}

  Status init(const Memory* memory) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    set_last(memory, 0);
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
    const Memory own = memory_of(memory, 0);
    return entries_[0]->reset(&own);
  }
  Status run(const Memory* memory, int choice, const Inputs* inputs, const Outputs* outputs) const {
    return call(memory, choice, entries_[choice]->run, inputs, outputs);
  }
  Status enqueue(const Memory* memory, int choice, const Inputs* inputs, const Outputs* outputs) const {
    return call(memory, choice, entries_[choice]->enqueue, inputs, outputs);
  }
  Status finish(const Memory* memory) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    const int last = last_of(memory);
    if (last < 0 || last >= count_) return Status::not_initialized;
    const Memory own = memory_of(memory, last);
    return entries_[last]->finish(&own);
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
  static constexpr std::size_t kHead = 64;

  Status check(const Memory* memory) const {
    return memory == nullptr ? Status::null_pointer : check_memory(memory, memory->weights, blocks_);
  }
  // The run whose end finish() waits for.
  static int last_of(const Memory* memory) {
    int last = 0;
    std::memcpy(&last, memory->instance, sizeof(last));
    return last;
  }
  static void set_last(const Memory* memory, int choice) {
    std::memcpy(memory->instance, &choice, sizeof(choice));
  }
  template <class Function>
  Status call(const Memory* memory, int choice, Function function, const Inputs* inputs,
              const Outputs* outputs) const {
    if (const Status checked = check(memory); checked != Status::ok) return checked;
    const Memory own = memory_of(memory, choice);
    const Status status = function(&own, inputs, outputs);
    if (status == Status::ok || status == Status::device_error) set_last(memory, choice);
    return status;
  }

  const Entry* const* entries_;
  int count_;
  BlockSizes blocks_;
};

}  // namespace GCRT_NAMESPACE
