#pragma once
// Makes steps of calls, one behind the other: the lives of their buffers, their bytes, and the time predicted
// for them.

#include <string>
#include <vector>

#include "codegen/packing/weights.h"
#include "codegen/schedule/kernel_chooser.h"
#include "codegen/schedule/schedule_scope.h"

namespace gcompile {

class StepMaker {
 public:
  StepMaker(std::vector<StorageBuffer>& buffers, WeightBlob& weights, const KernelChooser& chooser)
      : buffers_(buffers), weights_(weights), chooser_(chooser) {}

  /// Appends the step of a call to those of the scope.
  void emit(ScheduleScope& scope, KernelCall call, std::vector<ir::Origin> origins, std::string comment,
            std::string result);
  /// The same step by itself, which takes no time of its own.
  LoweredStep made_step(KernelCall call, std::vector<ir::Origin> origins, std::string comment,
                        std::string result);
  /// The buffer lives during the step that comes next.
  void touch(const Storage& storage);
  /// A buffer that lives during one step, whose name says for what.
  Storage scratch(std::int64_t bytes, std::string name);
  /// A buffer for a value whose axes lie in this order.
  Storage temporary(const ir::TensorType& type, const std::vector<int>& order, const std::string& name,
                    std::string maker);
  /// The number of the step that comes next.
  std::int64_t now() const { return now_; }
  void pass() { ++now_; }

 private:
  void predict(KernelCall& call, const LoweredStep& step,
               const std::vector<std::pair<int, std::int64_t>>& bytes_by_buffer) const;

  std::vector<StorageBuffer>& buffers_;
  WeightBlob& weights_;
  const KernelChooser& chooser_;
  std::int64_t now_ = 0;
};

}  // namespace gcompile
