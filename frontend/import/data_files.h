#pragma once
// Test data beside a model: folders with input_K.pb and output_K.pb, each one TensorProto, or of a sequence or
// an optional one SequenceProto or OptionalProto.

#include <string>
#include <vector>

#include "frontend/files/limits.h"
#include "frontend/files/model_ports.h"
#include "frontend/sizes/dims.h"
#include "ir/tensors/tensor.h"

namespace gcompile::frontend {

struct NamedTensor {
  std::string name;  // may be empty
  ir::Tensor value;
};

/// One TensorProto file. Throws CompileError:
/// kInputOutput when it cannot be read, kModel when it is no tensor.
NamedTensor read_tensor_file(const std::string& path, const Limits& limits);
/// The bytes of such a file.
std::string write_tensor(const NamedTensor& tensor);

/// The tensors are in the order of K; elements of a sequence follow one another, named as the project's inputs and outputs are.
struct TestData {
  std::vector<NamedTensor> inputs;
  std::vector<NamedTensor> outputs;
  std::vector<ElementsBinding> elements;  // how many each sequence or optional among the inputs has
};

/// The project's inputs, by their names: those of which nothing says how many there are have none.
std::vector<std::string> input_names(const ModelPorts& ports, const std::vector<ElementsBinding>& elements);

/// input_0.pb, input_1.pb, ... up to the first that is missing, and output_K.pb likewise. A gap in the
/// numbers is an error (kInputOutput), as is a folder without any. What file K holds says the model's input
/// or output of that place; beyond them it is a tensor.
TestData read_test_data(const std::string& folder, const Limits& limits, const ModelPorts& ports = {});
/// Subfolders test_data_set_* of a model's folder, by number; empty when there are none.
std::vector<std::string> test_data_folders(const std::string& model_folder);

}  // namespace gcompile::frontend
