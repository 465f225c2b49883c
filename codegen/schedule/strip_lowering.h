#pragma once
// Chains of kernels that run in strips of image rows: which nodes they are, where a chain is cut, and the
// step of each group.

#include <optional>
#include <span>
#include <vector>

#include "codegen/schedule/step_maker.h"

namespace gcompile {

class StripLowering {
 public:
  StripLowering(std::vector<StorageBuffer>& buffers, WeightBlob& weights, KernelChooser& chooser,
                StepMaker& steps)
      : buffers_(buffers), weights_(weights), chooser_(chooser), steps_(steps) {}

  /// Lowers the first nodes of `order` in strips, if that pays; returns how many.
  std::size_t lower(ScheduleScope& scope, std::span<const ir::NodeId> order);

 private:
  void cut_chain(ScheduleScope& scope, std::span<const ir::NodeId> order);
  bool hands_over(const ScheduleScope& scope, ir::NodeId from, ir::NodeId to) const;
  KernelCall call_by_rows(const ScheduleScope& scope, ir::NodeId id);
  std::optional<StripKernel> strip_kernel(const ScheduleScope& scope, ir::NodeId id);

  std::vector<StorageBuffer>& buffers_;
  WeightBlob& weights_;
  KernelChooser& chooser_;
  StepMaker& steps_;
};

}  // namespace gcompile
