#pragma once
// What a group of threads keeps of a row that several stages and the final expression go over: each value
// that a stage computes and a later one wants again, so that it is read or computed once.

#include <vector>

#include "codegen/loops/loop_nest.h"

namespace gcompile {

struct KeptRow {
  /// Dag nodes that each stage computes and keeps, in the order of the dag.
  std::vector<std::vector<int>> nodes;
  /// Loads of weights that are the same for all rows: a group has them before the kernel ahead has ended.
  std::vector<int> ahead;
  /// Most 32-bit registers per element of the row that are wanted between one stage and the next, beside those
  /// that weights take.
  int words = 0;

  bool is_empty() const { return words == 0; }
};

/// Empty when there is nothing to keep: one stage and nothing after it goes over the row, or values that need
/// no memory.
KeptRow keep_row(const LoopNest& nest, int region_root);

/// Loads of weights, by 32-bit elements or shorter ones, whose place is a matter of the row alone.
std::vector<int> weights_of_rows(const LoopNest& nest, const std::vector<KernelTensor>& operands);

/// Ids that a node is computed from: its arguments and the loaded parts of its indices.
std::vector<int> sources_of(const ir::ScalarNode& node);

}  // namespace gcompile
