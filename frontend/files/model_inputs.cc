#include "frontend/files/model_inputs.h"

#include <set>

#include "frontend/files/file_bytes.h"
#include "frontend/files/model_file.h"

namespace gcompile::frontend {

std::vector<std::string> model_input_names(const std::string& path, const Limits& limits) {
  const std::string bytes = read_file(path, limits.file_bytes);
  const onnx::ModelProto model =
      is_text_name(path) ? parse_model_text(bytes, limits) : parse_model_bytes(bytes, limits);
  std::set<std::string> constants;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) constants.insert(tensor.name());
  for (const onnx::SparseTensorProto& tensor : model.graph().sparse_initializer()) {
    constants.insert(tensor.values().name());
  }
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (constants.count(input.name()) == 0) names.push_back(input.name());
  }
  return names;
}

}  // namespace gcompile::frontend
