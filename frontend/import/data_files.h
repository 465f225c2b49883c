#pragma once
// Test data beside a model: folders with input_K.pb and output_K.pb, each one TensorProto.

#include <string>
#include <vector>

#include "frontend/files/limits.h"
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

struct TestData {
  std::vector<NamedTensor> inputs;  // in the order of K
  std::vector<NamedTensor> outputs;
};

/// input_0.pb, input_1.pb, ... up to the first that is missing, and output_K.pb likewise. A gap in the
/// numbers is an error (kInputOutput), as is a folder without any.
TestData read_test_data(const std::string& folder, const Limits& limits);
/// Subfolders test_data_set_* of a model's folder, by number; empty when there are none.
std::vector<std::string> test_data_folders(const std::string& model_folder);

}  // namespace gcompile::frontend
