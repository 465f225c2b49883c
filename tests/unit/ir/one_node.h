#pragma once
// Runs one operator the way a model would: normalised, inferred, decomposed, evaluated.

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/operator.h"

namespace gcompile::testing {

struct OneNode {
  std::string op = {};
  ir::Attributes attributes = {};
  std::vector<const ir::Tensor*> operands = {};  // nullptr: omitted
  int results = 1;
  int opset = 1000;
  std::string domain = {};
  bool known = false;  // operands are constants rather than inputs of the graph
};

inline std::vector<double> reals(const ir::Tensor& tensor) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < tensor.count(); ++i) out.push_back(tensor.real_at(i));
  return out;
}

/// Normalises and infers a node that was added with the model's attributes.
inline void complete(ir::Graph& graph, ir::NodeId id, int opset) {
  if (graph.node(id).op->normalise) {
    ir::RewriteContext context(graph, id, opset);
    graph.node(id).op->normalise(context);
  }
  ir::complete_attributes(*graph.node(id).op, graph.node(id).attributes);
  ir::infer_node(graph, id);
}

/// Graph of the node; its outputs are the node's results.
inline ir::Graph graph_of(const OneNode& spec) {
  ir::Graph graph;
  std::vector<ir::ValueId> operands;
  for (const ir::Tensor* tensor : spec.operands) {
    operands.push_back(!tensor      ? ir::ValueId{}
                       : spec.known ? graph.add_constant(*tensor)
                                    : graph.add_input("x", tensor->type()));
  }
  const ir::Operator* op = ir::find_operator(spec.domain, spec.op);
  if (!op) operator_error("no such operator");
  const ir::NodeId id = graph.add_node(*op, operands, spec.attributes, spec.results, "node");
  graph.node(id).origins = {{spec.op, "node"}};
  complete(graph, id, spec.opset);
  for (int i = 0; i < spec.results; ++i) {
    graph.add_output(graph.node(id).results[static_cast<std::size_t>(i)], "y" + std::to_string(i));
  }
  return graph;
}

/// Applies decompositions until none is left.
inline void decompose_all(ir::Graph& graph) {
  for (bool again = true; again;) {
    again = false;
    for (const ir::NodeId id : graph.nodes()) {
      const ir::Operator* op = graph.node(id).op;
      if (!op->decompose) continue;
      ir::RewriteContext context(graph, id, 0);
      if (!op->decompose(context)) continue;
      graph.erase_node(id);
      again = true;
    }
  }
}

inline std::vector<ir::Tensor> evaluate_inputs(const ir::Graph& graph, const OneNode& spec) {
  std::vector<ir::Tensor> inputs;
  for (const ir::Tensor* tensor : spec.operands) {
    if (tensor && !spec.known) inputs.push_back(*tensor);
  }
  return ir::evaluate_graph(graph, inputs);
}

/// Results of the node, decomposed where its record decomposes. Throws OperatorError.
inline std::vector<ir::Tensor> run(const OneNode& spec) {
  ir::Graph graph = graph_of(spec);
  decompose_all(graph);
  return evaluate_inputs(graph, spec);
}

/// The message of the OperatorError that `action` throws, or "no error".
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const OperatorError& error) {
    return error.message;
  }
  return "no error";
}

inline ir::Tensor floats(std::vector<float> values, ir::Shape shape) {
  return ir::Tensor::of_floats(values, std::move(shape));
}

inline ir::Tensor ints(std::vector<std::int64_t> values, ir::Shape shape) {
  return ir::Tensor::of_ints(values, std::move(shape));
}

/// Integers of any type.
inline ir::Tensor integers(ir::ElementType type, const std::vector<std::int64_t>& values, ir::Shape shape) {
  ir::Tensor tensor(ir::TensorType{type, std::move(shape)});
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), ir::Scalar::of_integer(type, values[i]));
  }
  return tensor;
}

}  // namespace gcompile::testing
