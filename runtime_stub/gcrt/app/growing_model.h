// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// A model whose state remembers sizes, as its programs use it: states hold what runs of Traits::sizes begin
// with. Host code.
//
// What T, the traits of a model, must have beside what sizes.h asks for: held_sizes(memory, &sizes), of what
// sizes its state is; state_shape, save_state, load_state, the functions of its C header.
#pragma once

#include <string>
#include <vector>

#include "gcrt/app/sizes.h"

namespace GCRT_NAMESPACE {

// Describes its states, too.
template <class T, class Description, class Entry>
class GrowingDescription : public SizedDescription<T, Description, Entry> {
 public:
  explicit GrowingDescription(const Description* largest)
      : SizedDescription<T, Description, Entry>(largest),
        states_(largest->states, largest->states + largest->state_count) {
    for (std::size_t i = 0; i < states_.size(); ++i)
      this->resize(T::state_shape, static_cast<int>(i), &states_[i]);
    this->description_.states = states_.data();
  }

 private:
  std::vector<Entry> states_;
};

// Base: HostModel or DeviceModel. States are zero until they are set.
template <class Base>
class GrowingModel : public Base {
 public:
  using T = typename Base::Traits;

  GrowingModel(const std::string& weights_path, int threads) : Base(weights_path, threads) {
    for (const Tensor& state : Tensors(*T::describe()).states) set_state(state);
  }

  void set_state(const Tensor& tensor) const {
    this->require(T::load_state(&this->memory_, &T::sizes, index_of(tensor), tensor.bytes.data()),
                  "load_state");
  }
  // With all rows that it holds now.
  void get_state(Tensor* tensor) const {
    const int state = index_of(*tensor);
    typename T::Sizes held{};
    this->require(T::held_sizes(&this->memory_, &held), "held_sizes");
    this->require(T::state_shape(&held, state, tensor->shape.data()), "state_shape");
    tensor->size = tensor->element_bytes;
    for (const std::int64_t size : tensor->shape) tensor->size *= static_cast<std::size_t>(size);
    tensor->bytes.resize(tensor->size + 64);
    this->require(T::save_state(&this->memory_, state, tensor->bytes.data()), "save_state");
  }

 private:
  static int index_of(const Tensor& tensor) {
    int index = 0;
    while (tensor.c_name != T::describe()->states[index].c_name) ++index;
    return index;
  }
};

}  // namespace GCRT_NAMESPACE
