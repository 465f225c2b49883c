#pragma once
// Graphs of forms -> Program: schedules, storage, kernels, weights, memory plans.
// Every node must carry a form.

#include <memory>
#include <string>
#include <vector>

#include "codegen/choice/kernel_options.h"
#include "codegen/program/program.h"
#include "ir/graph/graph.h"
#include "ir/sizes/sizes.h"

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

/// The alignment of buffers within the arena, in bytes.
std::int64_t buffer_alignment(const LoweringOptions& options);

/// A model at one choice of its sizes.
struct SizedGraph {
  const ir::Graph* graph;
  std::shared_ptr<ir::Sizes> formulas;  // null where every size is a number
};

/// One schedule for each graph, which are one model at several sizes: kernels of the same text and weights of
/// the same bytes are there once. Throws CompileError that lists every node without a kernel.
Program lower_graphs(const std::vector<SizedGraph>& graphs, const LoweringOptions& options);
Program lower_graph(const ir::Graph& graph, const LoweringOptions& options);

}  // namespace gcompile
