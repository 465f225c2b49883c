// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The sizes of a run, by the shapes of the files that it is given: what --dim does not say. Host code.
//
// What T must have beside what sizes.h asks for: kSizeCandidates, and told_by(shapes, is_told, candidate),
// sizes that runs may have; describe_largest, the model's description at its largest sizes.
#pragma once

#include "gcrt/app/run.h"
#include "gcrt/app/sizes.h"

namespace GCRT_NAMESPACE {

// Shapes of inputs and states, by their places; none for those without a file.
struct ShapesOfFiles {
  std::vector<std::vector<std::int64_t>> inputs, states;
  std::vector<bool> has_input, has_state;

  std::int64_t input(std::size_t index, std::size_t axis) const { return at(inputs[index], axis); }
  std::int64_t state(std::size_t index, std::size_t axis) const { return at(states[index], axis); }

 private:
  static std::int64_t at(const std::vector<std::int64_t>& shape, std::size_t axis) {
    return axis < shape.size() ? shape[axis] : -1;
  }
};

inline std::vector<std::int64_t> shape_of_file(const std::string& path) {
  NpyArray array;
  if (const char* const error = read_npy(path.c_str(), &array)) fail("'" + path + "': " + error);
  std::vector<std::int64_t> shape(array.shape, array.shape + array.rank);
  free_npy(&array);
  return shape;
}

// The place of the tensor of that name, in the model or in C; -1: there is none.
template <class Entry>
int place_of(const Entry* entries, int count, const std::string& name) {
  for (int i = 0; i < count; ++i) {
    if (name == entries[i].name || name == entries[i].c_name) return i;
  }
  return -1;
}

template <class T>
ShapesOfFiles shapes_of_files(const RunOptions& options) {
  const auto* const model = T::describe_largest();
  ShapesOfFiles shapes;
  shapes.inputs.resize(static_cast<std::size_t>(model->input_count));
  shapes.states.resize(static_cast<std::size_t>(model->state_count));
  shapes.has_input.resize(shapes.inputs.size());
  shapes.has_state.resize(shapes.states.size());
  const auto note = [](std::vector<std::vector<std::int64_t>>* of, std::vector<bool>* has, int place,
                       const std::string& path) {
    if (place < 0 || static_cast<std::size_t>(place) >= of->size()) return;  // told where it is read
    (*of)[static_cast<std::size_t>(place)] = shape_of_file(path);
    (*has)[static_cast<std::size_t>(place)] = true;
  };
  for (std::size_t i = 0; i < options.files.size(); ++i)
    note(&shapes.inputs, &shapes.has_input, static_cast<int>(i), options.files[i]);
  for (const auto& [name, path] : options.named)
    note(&shapes.inputs, &shapes.has_input, place_of(model->inputs, model->input_count, name), path);
  for (const auto& [name, path] : options.states)
    note(&shapes.states, &shapes.has_state, place_of(model->states, model->state_count, name), path);
  return shapes;
}

// Whether inputs of a run of these sizes have the shapes.
template <class T>
bool shapes_fit(const typename T::Sizes& sizes, const ShapesOfFiles& shapes) {
  for (std::size_t i = 0; i < shapes.inputs.size(); ++i) {
    std::int64_t shape[T::kMaxRank + 1] = {};
    const auto status = T::input_shape(&sizes, static_cast<int>(i), shape);
    if (status != decltype(status){}) return false;
    const std::vector<std::int64_t> expected(shape, shape + T::describe_largest()->inputs[i].rank);
    if (shapes.has_input[i] && shapes.inputs[i] != expected) return false;
  }
  return true;
}

// Sets T::sizes, unless there is no file; ends the program where no run has such shapes.
template <class T>
void tell_sizes(int argc, char** argv) {
  const auto* const model = T::describe_largest();
  const std::string usage = run_usage(T::kName, model->state_count > 0);
  const RunOptions options = parse_run_options(argc, argv, usage, model->state_count > 0, T::kWeightsPath);
  const ShapesOfFiles shapes = shapes_of_files<T>(options);
  const std::vector<bool>& has = shapes.has_input;
  if (std::find(has.begin(), has.end(), true) == has.end()) return;
  for (int candidate = 0; candidate < T::kSizeCandidates; ++candidate) {
    const typename T::Sizes sizes = T::told_by(shapes, size_is_told<T>, candidate);
    if (!shapes_fit<T>(sizes, shapes)) continue;
    T::sizes = sizes;
    return;
  }
  std::string text;
  for (std::size_t i = 0; i < has.size(); ++i) {
    if (!has[i]) continue;
    text += text.empty() ? "'" : ", '";
    text += std::string(model->inputs[i].name) + "' [";
    for (std::size_t k = 0; k < shapes.inputs[i].size(); ++k)
      text += (k > 0 ? ", " : "") + std::to_string(shapes.inputs[i][k]);
    text += "]";
  }
  fail("no run has inputs of these shapes: " + text + "; the sizes are\n" + T::kSizes, kNoSuchShapes);
}

}  // namespace GCRT_NAMESPACE
