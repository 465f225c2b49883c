#pragma once
// Graph of forms -> Schedule: order, storage, kernels, memory plan; what is planned first, so that
// alternatives can be judged, and then joins a program.

#include <vector>

#include "codegen/program/addresses.h"
#include "codegen/program/kernel_table.h"
#include "codegen/program/lowering.h"
#include "codegen/program/ports.h"
#include "codegen/schedule/schedule.h"

namespace gcompile {

class ScheduleBuilder {
 public:
  ScheduleBuilder(const SizedGraph& sized, const std::vector<StateTensor>& states,
                  const LoweringOptions& options)
      : graph_(*sized.graph),
        states_(states),
        options_(options),
        target_(info_of(options.kernels.machine.target)) {
    schedule_.formulas = sized.formulas;
  }

  /// Kernels, order and memory; what an alternative is judged by.
  void plan(const ScheduleOptions& choices, KernelChooser& chooser);
  std::int64_t arena_bytes() const { return schedule_.arena_bytes; }
  /// 0: the weights are within their budget. Else the price of a byte that brings them there.
  double weight_price() const;

  /// What the kernels have asked for; once.
  WeightBlob take_weights() { return std::move(weights_); }
  /// The steps get their addresses, and their kernels join `kernels` and `program`; once. `places`: of the
  /// weights that were taken, in the program's.
  Schedule finish(Program& program, KernelTable& kernels, std::vector<std::size_t> places);

 private:
  void warn_without_tensor_cores(Program& program);
  void check_forced(const std::set<std::size_t>& used, Diagnostics& diagnostics) const;
  void plan_arena(std::int64_t end);
  void add_zeroed_words();

  const ir::Graph& graph_;
  const std::vector<StateTensor>& states_;
  const LoweringOptions& options_;
  const TargetInfo& target_;
  Schedule schedule_;
  std::vector<LoweredStep> steps_;
  GraphPorts ports_;
  std::vector<StorageBuffer> buffers_;
  WeightBlob weights_;
  std::vector<int> planned_;  // buffers, in the order of the plan
};

}  // namespace gcompile
