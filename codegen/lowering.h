#pragma once
// Graph of forms -> Program: schedule, storage, kernels, weights, memory plan. Every node must carry a form.

#include <string>
#include <vector>

#include "codegen/precision.h"
#include "codegen/program.h"
#include "ir/graph.h"

namespace gcompile {

struct LoweringOptions {
  Target target = Target::kCpp;
  int capability = 80;  // of the GPU that tiles are chosen for: 10 * major + minor
  Precision precision = Precision::kFp32;
  std::string name;  // prefix of every symbol
  /// Model names of (input, output) pairs that become persistent state.
  std::vector<std::pair<std::string, std::string>> states;
  bool optimize_for_size = false;
};

/// Throws ir::CompileError that lists every node without a kernel.
Program lower_graph(const ir::Graph& graph, const LoweringOptions& options);

}  // namespace gcompile
