// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The sizes of a model's runs as its programs are told them: --dim NAME=SIZE. Host code.
//
// What T, the traits of a model, must have: kName; Sizes, and `sizes`, the ones of every run; size(name),
// where one of them lies; kSizes, a line for each; output_rank(index), of a run of these sizes; input_shape,
// output_shape, status_text, the functions of its C header.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "gcrt/app/tensor.h"

namespace GCRT_NAMESPACE {

// Which fields of T::sizes the command line has told, in their order.
template <class T>
inline bool size_is_told[sizeof(typename T::Sizes) / sizeof(std::int64_t)] = {};

// What an axis of a file tells of a size: n where it is `factor` n times and `rest` more, n up to `most`;
// else `otherwise`, also where there is no file.
inline std::int64_t size_in(std::int64_t axis, std::int64_t factor, std::int64_t rest, std::int64_t most,
                            std::int64_t otherwise) {
  const std::int64_t left = axis - rest;
  return axis >= 0 && factor > 0 && left >= 0 && left % factor == 0 && left / factor <= most ? left / factor
                                                                                             : otherwise;
}

// Takes every --dim off the command line, before the program reads what is left.
template <class T>
void take_sizes(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h")
      std::printf("sizes of the runs, the largest unless told:\n%s", T::kSizes);
    if (word != "--dim") {
      argv[kept++] = argv[i];
      continue;
    }
    const std::string text = i + 1 < *argc ? argv[++i] : "";
    const std::size_t equals = text.rfind('=');
    std::int64_t* const size = equals == std::string::npos ? nullptr : T::size(text.substr(0, equals));
    char* end = nullptr;
    const std::int64_t number = size == nullptr ? 0 : std::strtoll(text.c_str() + equals + 1, &end, 10);
    if (size == nullptr || end == text.c_str() + equals + 1 || *end != 0) {
      fail("--dim '" + text + "' is not NAME=SIZE; the sizes are\n" + T::kSizes);
    }
    *size = number;
    size_is_told<T>[size - reinterpret_cast<std::int64_t*>(&T::sizes)] = true;
  }
  *argc = kept;
}

// What a model says of its tensors, with the shapes that they have in runs of T::sizes.
template <class T, class Description, class Entry>
class SizedDescription {
 public:
  explicit SizedDescription(const Description* largest)
      : description_(*largest),
        inputs_(largest->inputs, largest->inputs + largest->input_count),
        outputs_(largest->outputs, largest->outputs + largest->output_count) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) resize(T::input_shape, static_cast<int>(i), &inputs_[i]);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].rank = T::output_rank(static_cast<int>(i));
      resize(T::output_shape, static_cast<int>(i), &outputs_[i]);
    }
    description_.inputs = inputs_.data();
    description_.outputs = outputs_.data();
  }
  SizedDescription(const SizedDescription&) = delete;
  SizedDescription& operator=(const SizedDescription&) = delete;
  const Description* get() const { return &description_; }

 protected:
  template <class Shape>
  static void resize(const Shape& shape_of, int index, Entry* entry) {
    const auto status = shape_of(&T::sizes, index, entry->shape);
    if (status != decltype(status){}) {
      fail(std::string(T::kName) + ": " + T::status_text(status) + ":\n" + T::kSizes);
    }
    entry->bytes = entry->element_bytes;
    for (int i = 0; i < entry->rank; ++i) entry->bytes *= static_cast<std::size_t>(entry->shape[i]);
  }

  Description description_;

 private:
  std::vector<Entry> inputs_, outputs_;
};

}  // namespace GCRT_NAMESPACE
