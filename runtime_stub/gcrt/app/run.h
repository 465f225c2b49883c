// NAME_run: runs a model on .npy files. Host code.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "gcrt/app/measure.h"

namespace GCRT_NAMESPACE {

struct RunOptions {
  std::vector<std::string> files;                                  // positional
  std::vector<std::pair<std::string, std::string>> named, states;  // --input, --state: name and file
  bool random = false;
  std::uint64_t seed = 0;
  std::string output_dir, weights;
  int repeat = 0, threads = 1;
  bool json = false;
};

inline std::string run_usage(const std::string& name, bool has_states) {
  std::string text =
      "usage: " + name + "_run [options] [FILE.npy]...   files in the order of the model's inputs\n";
  text +=
      "  --input NAME=FILE.npy   an input by name\n"
      "  --random SEED           fills the inputs that no file is given for\n";
  if (has_states) text += "  --state NAME=FILE.npy   a state by name, zero otherwise\n";
  text += "  --output-dir DIR        writes DIR/<index>_<name>.npy; the folder must exist\n";
  if (has_states)
    text += "                          and the states after the run as DIR/state_<index>_<name>.npy\n";
  return text +
         "  --repeat N              runs N more times and prints the times\n"
         "  --threads T             threads, 1 by default\n"
         "  --weights FILE          weights other than the model's own\n"
         "  --json                  prints the times as JSON\n";
}

inline RunOptions parse_run_options(int argc, char** argv, const std::string& usage, bool has_states,
                                    const std::string& weights) {
  RunOptions options;
  options.weights = weights;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) fail(word + " needs a value\n" + usage);
      return argv[++i];
    };
    const auto named_file = [&]() -> std::pair<std::string, std::string> {
      const std::string text = value();
      // A name may contain '=', a path rarely does: the last one divides.
      const std::size_t equals = text.rfind('=');
      if (equals == std::string::npos) fail(word + " needs NAME=FILE.npy, not '" + text + "'");
      return {text.substr(0, equals), text.substr(equals + 1)};
    };
    if (word == "--help" || word == "-h") {
      std::printf("%s\n", usage.c_str());
      std::exit(0);
    } else if (word == "--input") {
      options.named.push_back(named_file());
    } else if (word == "--state" && has_states) {
      options.states.push_back(named_file());
    } else if (word == "--random") {
      options.random = true;
      options.seed = seed_number(value());
    } else if (word == "--output-dir") {
      options.output_dir = value();
    } else if (word == "--repeat") {
      options.repeat = positive_number(word, value());
    } else if (word == "--threads") {
      options.threads = positive_number(word, value());
    } else if (word == "--weights") {
      options.weights = value();
    } else if (word == "--json") {
      options.json = true;
    } else if (word.size() > 1 && word[0] == '-') {
      fail("unknown option " + word + "\n" + usage);
    } else {
      options.files.push_back(word);
    }
  }
  return options;
}

inline void load_inputs(const RunOptions& options, const std::string& usage, Tensors* tensors) {
  std::vector<bool> given(tensors->inputs.size());
  if (options.files.size() > given.size()) fail("more files than the model has inputs");
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    tensors->inputs[i].read(options.files[i]);
    given[i] = true;
  }
  for (const auto& [name, path] : options.named) {
    Tensor* const tensor = Tensors::find(&tensors->inputs, name);
    if (tensor == nullptr) fail("the model has no input '" + name + "'");
    tensor->read(path);
    given[static_cast<std::size_t>(tensor - tensors->inputs.data())] = true;
  }
  std::uint64_t random = options.seed;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    Tensor& tensor = tensors->inputs[i];
    if (!options.random) {
      fail("input '" + tensor.name + "' (" + tensor.text() +
           ") is missing; give a .npy file or --random SEED\n" + usage);
    }
    tensor.fill(&random);
  }
}

inline void print_element(const Tensor& tensor, const unsigned char* at) {
  if (tensor.element == "float32") {
    float value = 0;
    std::memcpy(&value, at, 4);
    std::printf(" %.6g", static_cast<double>(value));
  } else if (tensor.element == "float64") {
    double value = 0;
    std::memcpy(&value, at, 8);
    std::printf(" %.6g", value);
  } else if (tensor.is_float()) {
    std::uint16_t value = 0;
    std::memcpy(&value, at, 2);
    std::printf(" 0x%04x", static_cast<unsigned>(value));
  } else {
    // Little-endian integers of any width, sign extended.
    std::uint64_t value = 0;
    std::memcpy(&value, at, tensor.element_bytes);
    const unsigned bits = static_cast<unsigned>(8 * tensor.element_bytes);
    const bool is_negative = tensor.element[0] == 'i' && bits < 64 && ((value >> (bits - 1)) & 1u) != 0;
    if (is_negative) value |= ~std::uint64_t{0} << bits;
    std::printf(" %" PRId64, static_cast<std::int64_t>(value));
  }
}

inline void print_first_values(const Tensor& tensor) {
  std::printf("%s %s", tensor.c_name.c_str(), tensor.text().c_str());
  const std::size_t count = std::min<std::size_t>(tensor.elements(), 8);
  for (std::size_t i = 0; i < count; ++i)
    print_element(tensor, tensor.bytes.data() + i * tensor.element_bytes);
  std::printf("%s\n", tensor.elements() > count ? " ..." : "");
}

template <class Model>
int run_program(int argc, char** argv) {
  using T = typename Model::Traits;
  Tensors tensors(*T::describe());
  const bool has_states = !tensors.states.empty();
  const std::string usage = run_usage(T::kName, has_states);
  const RunOptions options = parse_run_options(argc, argv, usage, has_states, T::kWeightsPath);
  load_inputs(options, usage, &tensors);
  const Model model(options.weights, options.threads);
  for (const auto& [name, path] : options.states) {
    Tensor* const tensor = Tensors::find(&tensors.states, name);
    if (tensor == nullptr) fail("the model has no state '" + name + "'");
    tensor->read(path);
    model.set_state(*tensor);
  }
  model.run(&tensors);
  for (std::size_t i = 0; i < tensors.states.size() && !options.output_dir.empty(); ++i) {
    Tensor* const tensor = &tensors.states[i];
    model.get_state(tensor);
    tensor->write(options.output_dir + "/state_" + std::to_string(i) + "_" + tensor->c_name + ".npy");
  }
  for (std::size_t i = 0; i < tensors.outputs.size(); ++i) {
    const Tensor& tensor = tensors.outputs[i];
    if (!options.output_dir.empty()) {
      tensor.write(options.output_dir + "/" + std::to_string(i) + "_" + tensor.c_name + ".npy");
    } else if (options.repeat == 0) {
      print_first_values(tensor);
    }
  }
  if (options.repeat > 0) measure(model, &tensors, options.repeat, options.threads, options.json);
  return 0;
}

}  // namespace GCRT_NAMESPACE
