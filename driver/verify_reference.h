#pragma once
// What the evaluator makes of the graph as imported: the oracle of verify.

#include <map>
#include <string>
#include <vector>

#include "codegen/kernels/precision.h"
#include "ir/graph.h"

namespace gcompile {

/// Whether the model computes with quantised integers.
bool is_quantised(const ir::Graph& graph);

struct ReferenceValues {
  std::vector<ir::Tensor> outputs;
  std::map<std::string, ir::Tensor> by_name;  // values along the way whose name is theirs alone
};

class Reference {
 public:
  explicit Reference(const ir::Graph& imported) : graph_(imported) {}
  const ir::Graph& graph() const { return graph_; }

  /// Throws CompileError (kInputOutput) when an input is missing.
  ReferenceValues evaluate(const std::map<std::string, ir::Tensor>& inputs) const;

  /// Whether `output` is an index found by comparing floats (ArgMax, ArgMin, TopK), and wherever the two
  /// differ, the floats they point at differ by less than the float tolerance of `precision`: both are
  /// right.
  bool is_close_decision(const std::string& output, const std::map<std::string, ir::Tensor>& inputs,
                         const ir::Tensor& expected, const ir::Tensor& actual, Precision precision) const;

 private:
  std::vector<ir::Tensor> in_order(const std::map<std::string, ir::Tensor>& inputs) const;

  const ir::Graph& graph_;
};

}  // namespace gcompile
