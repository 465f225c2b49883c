#pragma once
// What a group of threads keeps of a row that several stages and the final expression go over: each value
// that a stage computes and a later one wants again, so that it is read or computed once.

#include <vector>

#include "codegen/loops/loop_nest.h"

namespace gcompile {

struct KeptRow {
  /// Dag nodes that each stage computes and keeps, in the order of the dag.
  std::vector<std::vector<int>> nodes;
  /// Most 32-bit registers per element of the row that are wanted between one stage and the next.
  int words = 0;

  bool is_empty() const { return words == 0; }
};

/// Empty when there is nothing to keep: one stage and nothing after it goes over the row, or values that need
/// no memory.
KeptRow keep_row(const LoopNest& nest, int region_root);

/// Ids that a node is computed from: its arguments and the loaded parts of its indices.
std::vector<int> sources_of(const ir::ScalarNode& node);

}  // namespace gcompile
