#pragma once
// The schedule of a graph before offsets are known: order, homes of values, and a step for every kernel.

#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/diagnostics.h"
#include "codegen/schedule/host_steps.h"
#include "codegen/schedule/kernel_chooser.h"
#include "codegen/schedule/step_maker.h"
#include "codegen/schedule/strip_lowering.h"

namespace gcompile {

/// Choices that trade copies for memory.
struct ScheduleOptions {
  bool lowest_peak =
      false;  // reorder independent nodes so that fewer bytes live at a time; else the graph's order
  bool place_parts = true;  // see StorageAssigner
};

/// Builds the schedule of a graph and, inside If steps, of its branches.
/// Storage lives are filled in on the way.
class Scheduler {
 public:
  Scheduler(std::vector<StorageBuffer>& buffers, WeightBlob& weights, Diagnostics& diagnostics,
            KernelChooser& chooser, const ScheduleOptions& options);

  /// `inputs`: homes of the graph's inputs; `outputs`: homes its outputs must have. `host_inputs`: in a
  /// program for a device, where the host finds them; invalid entries are on the device only.
  std::vector<LoweredStep> run(const ir::Graph& graph, const std::vector<Storage>& inputs,
                               const std::vector<Storage>& outputs, const std::vector<Storage>& host_inputs);
  /// Bytes of the values that the host computes to choose branches.
  std::int64_t host_bytes() const { return host_.bytes(); }
  std::int64_t now() const { return steps_.now(); }

 private:
  void lower_node(ScheduleScope& scope, ir::NodeId id);
  /// On a device: lowers a reduction and the product that alone reads its rows as one call; whether it did.
  bool lower_with_rows(ScheduleScope& scope, ir::NodeId maker, ir::NodeId reader);
  /// On a device: lowers the first nodes of `order` as one call, where those are the Concats of keys and of
  /// values and the attention that reads them; returns how many.
  std::size_t lower_with_cache(ScheduleScope& scope, std::span<const ir::NodeId> order);
  void lower_if(ScheduleScope& scope, ir::NodeId id);
  void copy_outputs(ScheduleScope& scope, const std::vector<Storage>& outputs);
  std::map<ir::ValueId, Storage> copy_operands(ScheduleScope& scope, ir::NodeId id, const ir::Form& form);

  std::vector<StorageBuffer>& buffers_;
  WeightBlob& weights_;
  Diagnostics& diagnostics_;
  KernelChooser& chooser_;
  ScheduleOptions options_;
  StepMaker steps_;
  HostSteps host_;
  StripLowering strips_;
};

}  // namespace gcompile
