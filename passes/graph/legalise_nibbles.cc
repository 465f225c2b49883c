// Constants of 4 bits become bytes, which kernels read, where an operator only computes from them:
//   DequantizeLinear(w: int4) -> DequantizeLinear(w: int8), of the same integers

#include <map>

#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

bool is_nibble(ir::ElementType type) {
  return type == ir::ElementType::kInt4 || type == ir::ElementType::kUInt4;
}

ir::Tensor widened(const ir::Tensor& tensor) {
  const bool is_signed = tensor.element() == ir::ElementType::kInt4;
  const ir::ElementType byte = is_signed ? ir::ElementType::kInt8 : ir::ElementType::kUInt8;
  ir::Tensor out(ir::TensorType{byte, tensor.shape()});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    out.set(i, ir::Scalar::of_integer(byte, tensor.int_at(i)));
  }
  return out;
}

}  // namespace

bool legalise_nibbles(ir::Graph& graph, PassContext&) {
  std::map<std::uint32_t, ir::ValueId> bytes;  // by index of the constant
  bool changed = false;
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    bool makes_nibbles = false;
    for (const ir::ValueId result : node.results) {
      makes_nibbles = makes_nibbles || (result.valid() && is_nibble(graph.value(result).type.element));
    }
    if (makes_nibbles) continue;
    for (std::size_t slot = 0; slot < node.operands.size(); ++slot) {
      const ir::ValueId operand = node.operands[slot];
      if (!operand.valid() || !is_nibble(graph.value(operand).type.element)) continue;
      const ir::Tensor* constant = graph.constant(operand);
      if (constant == nullptr) continue;
      ir::ValueId& byte = bytes[operand.index];
      if (!byte.valid()) byte = graph.add_constant(widened(*constant), graph.value(operand).name);
      graph.set_operand(id, static_cast<int>(slot), byte);
      changed = true;
    }
  }
  return changed;
}

}  // namespace gcompile::passes
