// Elements of 2 and 4 bits become bytes, which kernels read and write; inputs and outputs stay packed as the caller
// has them:
//   input w: int4[3, 5]    -> input w: uint8[8], UnpackBits: int8[3, 5]
//   output y: int4[3, 5]   -> Reshape, Pad, PackBits: uint8[8]
//   Cast(x): int4          -> NarrowCast(x): int8, of the same integers
// Everything between moves bytes. Values of float4e2m1 are values of float8e4m3fn.

#include <map>
#include <variant>

#include "ir/graph/operator.h"
#include "ir/ops/narrow.h"
#include "ir/ops/support.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Tensor;
using ir::TensorType;
using ir::ValueId;

bool is_small(ElementType type) { return ir::bits_of(type) < 8; }

Tensor widened(const Tensor& tensor) {
  const ElementType byte = ir::byte_type(tensor.element());
  Tensor out(TensorType{byte, tensor.shape()});
  for (std::int64_t i = 0; i < tensor.count(); ++i) out.set(i, ir::cast(tensor.at(i), byte));
  return out;
}

ir::Attributes to_type(ElementType type) {
  ir::Attributes attributes;
  attributes.set("to", ir::onnx_number_of(type));
  return attributes;
}

class Legaliser {
 public:
  explicit Legaliser(ir::Graph& graph) : graph_(graph) {}

  /// Takes the whole model; the branches of its Ifs have no ports of their own.
  bool run() {
    std::vector<TensorType> outputs;
    for (const ValueId id : graph_.outputs()) outputs.push_back(graph_.value(id).type);
    bool changed = false;
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) changed |= unpack(i);
    changed |= make_bytes(graph_);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (is_small(outputs[i].element)) pack(i, outputs[i]);
    }
    return changed;
  }

 private:
  ValueId emit(std::string_view name, std::vector<ValueId> operands, ir::Attributes attributes,
               const std::string& of) {
    const ir::Operator& op = ir::operator_named(name);
    ir::complete_attributes(op, attributes);
    const ir::NodeId id = graph_.add_node(op, std::move(operands), std::move(attributes), 1, of);
    ir::infer_node(graph_, id);
    return graph_.node(id).results[0];
  }

  ValueId add_shape(const ir::Shape& shape) {
    if (!ir::are_constant(shape)) return graph_.add_sizes(ElementType::kInt64, {shape.size()}, shape);
    const std::vector<std::int64_t> numbers = ir::numbers_of(shape);
    return graph_.add_constant(Tensor::of_ints(numbers, {static_cast<std::int64_t>(numbers.size())}));
  }

  bool unpack(std::size_t position) {
    const ValueId input = graph_.inputs()[position];
    const TensorType type = graph_.value(input).type;
    if (!is_small(type.element)) return false;
    graph_.pack_input(position, type);
    const std::string name = graph_.value(input).name;
    const std::vector<ir::Use> uses = graph_.value(input).uses;
    const ValueId shape = add_shape(type.shape);
    const ValueId bytes = emit("UnpackBits", {input, shape}, to_type(type.element), name);
    for (const ir::Use& use : uses) {
      if (use.node.valid()) {
        graph_.set_operand(use.node, use.slot, bytes);
      } else {
        graph_.set_output(static_cast<std::size_t>(use.slot), bytes);
      }
    }
    return true;
  }

  void pack(std::size_t position, const TensorType& type) {
    const std::string& name = graph_.output_names()[position];
    const ValueId shape = add_shape({type.count()});
    ir::Attributes flat;
    flat.set("allowzero", std::int64_t{1});  // 0 is the number of elements
    ValueId value = emit("Reshape", {graph_.outputs()[position], shape}, std::move(flat), name);
    const std::int64_t more = 8 / ir::bits_of(type.element) - 1;
    const std::int64_t ends[] = {0, more};
    const ValueId pads = graph_.add_constant(Tensor::of_ints(ends, {2}));
    value = emit("Pad", {value, pads}, {}, name);
    value = emit("PackBits", {value}, to_type(type.element), name);
    graph_.set_output(position, value);
    graph_.pack_output(position, type);
  }

  /// All values of a graph and of the branches in it.
  static bool make_bytes(ir::Graph& graph) {
    bool changed = false;
    for (const ir::NodeId id : graph.nodes()) {
      narrow(graph, id);
      for (ir::Graph& branch : graph.node(id).subgraphs) changed |= make_bytes(branch);
    }
    for (const ValueId id : graph.values()) {
      ir::Value& value = graph.value(id);
      if (!is_small(value.type.element)) continue;
      value.type.element = ir::byte_type(value.type.element);
      if (value.constant) value.constant = widened(*value.constant);
      changed = true;
    }
    return changed;
  }

  /// What makes such elements says from now on which.
  static void narrow(ir::Graph& graph, ir::NodeId id) {
    ir::Node& node = graph.node(id);
    for (const auto& [name, value] : std::map(node.attributes.all())) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (tensor && is_small(tensor->element())) node.attributes.set(name, widened(*tensor));
    }
    if (node.results.empty() || !node.results[0].valid()) return;
    const ElementType type = graph.value(node.results[0]).type.element;
    if (!is_small(type)) return;
    if (node.op == &ir::operator_named("Cast")) {
      node.op = &ir::operator_named("NarrowCast");
      node.attributes = to_type(type);
    } else if (node.op == &ir::operator_named("QuantizeLinear")) {
      node.op = &ir::operator_named("NarrowQuantizeLinear");
      node.attributes.set("output_dtype", ir::onnx_number_of(type));
    }
  }

  ir::Graph& graph_;
};

}  // namespace

bool legalise_small_elements(ir::Graph& graph, PassContext&) { return Legaliser(graph).run(); }

}  // namespace gcompile::passes
