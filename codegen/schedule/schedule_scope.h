#pragma once

#include <map>
#include <set>
#include <vector>

#include "codegen/order/node_forms.h"
#include "codegen/schedule/lowered_step.h"
#include "codegen/schedule/storage_assigner.h"

namespace gcompile {

/// One graph, the model's or a branch's, while its steps are made.
struct ScheduleScope {
  const ir::Graph& graph;
  NodeForms forms = {};
  StorageAssigner::Result homes = {};
  std::map<int, int> values_in_buffer = {};      // of `homes`
  std::map<ir::NodeId, StripGroup> strips = {};  // of chains that have been cut, by the first node of a group
  std::vector<LoweredStep> steps = {};
  /// Where the host of a device finds the values that it knows.
  std::map<ir::ValueId, Storage> host_homes = {};
  std::set<ir::NodeId> host_only = {};  // nodes of which a device needs nothing but the choice of branches
};

}  // namespace gcompile
