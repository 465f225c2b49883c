#pragma once

#include <map>
#include <set>
#include <vector>

#include "codegen/schedule/schedule.h"
#include "codegen/schedule/storage_assigner.h"

namespace gcompile {

/// One graph, the model's or a branch's, while its steps are made.
struct Scheduler::Scope {
  const ir::Graph& graph;
  NodeForms forms;
  StorageAssigner::Result homes;
  std::map<int, int> values_in_buffer;        // of `homes`
  std::map<ir::ValueId, Storage> host_homes;  // CUDA: of the values that the host knows
  std::map<ir::NodeId, StripGroup> strips;    // of chains that have been cut, by the first node of a group
  std::vector<LoweredStep> steps;
  std::set<ir::NodeId> host_only;  // CUDA: nodes that nothing but the choice of branches needs
};

}  // namespace gcompile
