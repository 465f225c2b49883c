#pragma once
// What the host computes in a program for a device: the values by which it chooses branches, from inputs that
// it sees.

#include <vector>

#include "codegen/schedule/step_maker.h"

namespace gcompile {

/// Nodes that nothing but the choice of branches needs. `order`: every node before its readers.
std::set<ir::NodeId> host_only_nodes(const ir::Graph& graph, const NodeForms& forms,
                                     const std::vector<ir::NodeId>& order);

class HostSteps {
 public:
  HostSteps(std::vector<StorageBuffer>& buffers, WeightBlob& weights, StepMaker& steps)
      : buffers_(buffers), weights_(weights), steps_(steps) {}

  /// Where the host has the value; appends the steps that compute what it depends on. Throws OperatorError
  /// where only the device can know that.
  Storage steer(ScheduleScope& scope, ir::ValueId value);
  /// Bytes of the values that the host computes.
  std::int64_t bytes() const { return bytes_; }

 private:
  void compute(ScheduleScope& scope, ir::ValueId value);

  std::vector<StorageBuffer>& buffers_;
  WeightBlob& weights_;
  StepMaker& steps_;
  std::int64_t bytes_ = 0;
};

}  // namespace gcompile
