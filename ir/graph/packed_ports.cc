#include "ir/graph/packed_ports.h"

namespace gcompile::ir {

Tensor as_stored(const Tensor& tensor, const TensorType& type) {
  if (tensor.type() == type || tensor.type().bytes() != type.bytes()) return tensor;
  const auto bytes = tensor.bytes();
  return Tensor(type, std::vector<std::byte>(bytes.begin(), bytes.end()));
}

Tensor stored_input(const Graph& graph, std::size_t position, const Tensor& tensor) {
  const TensorType& type = graph.value(graph.inputs()[position]).type;
  return graph.input_type(position) == type ? tensor : as_stored(tensor, type);
}

Tensor given_output(const Graph& graph, std::size_t position, const Tensor& value) {
  const TensorType& type = graph.output_type(position);
  return graph.value(graph.outputs()[position]).type == type ? value : as_stored(value, type);
}

}  // namespace gcompile::ir
