#pragma once
// Graph of forms -> Program: schedule, storage, kernels, weights, memory plan. Every node must carry a form.

#include <string>
#include <vector>

#include "codegen/kernels/kernel_options.h"
#include "codegen/program/program.h"
#include "ir/graph.h"

namespace gcompile {

struct LoweringOptions {
  KernelOptions kernels;
  std::string name;  // prefix of every symbol
  /// Model names of (input, output) pairs that become persistent state.
  std::vector<std::pair<std::string, std::string>> states;
  bool optimize_for_size = false;
  bool keeps_denormals = false;  // else a run that multiplies floats counts them as zeros
  /// By how much kernels may enlarge the weights, in percent of what weights and arena take.
  std::int64_t extra_weights_percent = 100;
};

/// Throws ir::CompileError that lists every node without a kernel.
Program lower_graph(const ir::Graph& graph, const LoweringOptions& options);

}  // namespace gcompile
