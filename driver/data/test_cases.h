#pragma once
// Inputs and expected outputs for verify.

#include <map>
#include <string>
#include <vector>

#include "driver/command_line/options.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

struct TestCase {
  std::string name;  // "test_data_set_0", "random 1"
  std::map<std::string, ir::Tensor> inputs;
  /// In graph order, unless named.
  std::vector<std::pair<std::string, ir::Tensor>> outputs;
  bool outputs_named = false;
  /// How many tensors the data have for each sequence and optional among the model's inputs.
  std::vector<frontend::ElementsBinding> elements;
};

/// All cases of a folder: input_K.pb and output_K.pb in it, inputs.npz and outputs.npz in it, and the same in
/// its folders test_data_set_*. Inputs are matched with the model's by name, and where the names are others,
/// by position. Throws CompileError (kInputOutput or kModel).
std::vector<TestCase> read_test_cases(const std::string& folder, const Options& options);

/// Those that one project serves: of the same numbers of tensors in sequences, and perhaps of the same shapes.
/// Groups come in the order of their first cases.
std::vector<std::vector<TestCase>> groups_of(std::vector<TestCase> cases, bool of_same_shapes);

/// Numbers of tensors in sequences and optionals are those of the command line, and those of the case where it
/// gives none.
void bind_elements(Options& options, const TestCase& test);

}  // namespace gcompile
