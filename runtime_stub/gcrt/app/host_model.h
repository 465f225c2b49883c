// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// A model with all memory that it needs, as its programs use it. Host code.
//
// What T, the traits of a model, must have: kName; kBlocks; Memory, Inputs, Outputs; describe, status_text,
// init, run, create_threads, destroy_threads, the functions of its C header; inputs(addresses) and
// outputs(addresses), which make Inputs and Outputs of one address for each tensor.
#pragma once

#include <string>
#include <vector>

#include "gcrt/app/block.h"
#include "gcrt/memory_check.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

template <class T>
class HostModel {
 public:
  using Traits = T;

  // `weights_path`: empty where they are linked in.
  HostModel(const std::string& weights_path, int threads)
      : arena_(T::kBlocks.arena, T::kBlocks.alignment),
        state_(T::kBlocks.state, T::kBlocks.alignment),
        instance_(T::kBlocks.instance, T::kBlocks.alignment),
        weights_(weights_path.empty() ? 0 : T::kBlocks.weights, T::kBlocks.alignment) {
    memory_.arena = arena_.data();
    memory_.state = state_.data();
    memory_.instance = instance_.data();
    if (!weights_path.empty()) {
      read_file(weights_path, weights_);
      memory_.weights = weights_.data();
    }
    if (threads > 1) {
      memory_.threads = T::create_threads(threads);
      if (memory_.threads == nullptr) fail("cannot start the threads");
    }
    require(T::init(&memory_), "init");
  }
  ~HostModel() { T::destroy_threads(memory_.threads); }
  HostModel(const HostModel&) = delete;
  HostModel& operator=(const HostModel&) = delete;

  void set_state(const Tensor& tensor) const {
    std::memcpy(place_of(tensor), tensor.bytes.data(), tensor.size);
  }
  void get_state(Tensor* tensor) const { std::memcpy(tensor->bytes.data(), place_of(*tensor), tensor->size); }

  void run(Tensors* tensors) const { run_with(tensors, T::run); }
  // `run`: a function like T::run.
  template <class Run>
  void run_with(Tensors* tensors, const Run& run) const {
    const typename T::Inputs inputs = T::inputs(addresses_of(&tensors->inputs).data());
    const typename T::Outputs outputs = T::outputs(addresses_of(&tensors->outputs).data());
    require(run(&memory_, &inputs, &outputs), "run");
  }
  void run_again(Tensors* tensors) const { run(tensors); }

  // Serial where there are none.
  Threads threads() const {
    if (memory_.threads == nullptr) return {nullptr, 1, nullptr};
    return {memory_.threads->context, memory_.threads->count, memory_.threads->parallel_for};
  }

  // Times of runs on a device, which this is not.
  std::vector<double> device_times(int) const { return {}; }

 protected:
  template <class Status>
  static void require(Status status, const char* function) {
    if (status != Status{}) fail(std::string(T::kName) + "_" + function + ": " + T::status_text(status));
  }

  typename T::Memory memory_{};

 private:
  char* place_of(const Tensor& state) const { return static_cast<char*>(memory_.state) + state.offset; }

  Block arena_, state_, instance_, weights_;
};

}  // namespace GCRT_NAMESPACE
