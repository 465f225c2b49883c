#pragma once
// Which kernel family serves a node, and its call: the best of all, or the one that the user asks for; where
// a program is for several GPUs, the best on each.

#include <optional>
#include <set>
#include <vector>

#include "codegen/calls/call_writer.h"
#include "codegen/choice/kernel_options.h"
#include "codegen/choice/rankings.h"

namespace gcompile {

class Instances;

/// Loops over rows that every block makes for itself, and the node that they are of.
struct RowMaker {
  ir::NodeId node;
  const ir::LoopForm& loops;
};

/// A node with the work of a kernel, and where its values lie.
struct KernelTask {
  const ir::Graph& graph;
  ir::NodeId id;
  const ir::Form& form;
  const HomeOf& home;
  bool by_rows = false;                    // makes some rows of its result at a time
  const RowMaker* maker = nullptr;         // computes operand 0
  const JoinedOperands* joined = nullptr;  // operands that lie in two places

  const ir::Node& node() const { return graph.node(id); }
};

class KernelChooser {
 public:
  explicit KernelChooser(KernelOptions options);
  KernelChooser(const KernelChooser&) = delete;
  KernelChooser& operator=(const KernelChooser&) = delete;

  const KernelOptions& options() const { return options_; }
  /// The machine that decides what a project has once; on CUDA the oldest GPU.
  const Machine& machine() const { return options_.machine; }
  bool on_device() const { return info_of(machine().target).has_device_memory; }
  /// The machines that calls are made for: that one, then the newer GPUs.
  std::size_t machine_count() const { return rankings_.size(); }
  const Machine& machine(std::size_t i) const { return rankings_[i].machine(); }

  /// What the families are asked.
  ir::Problem problem_of(const KernelTask& task) const;
  /// The families by preference on the deciding machine.
  const Ranking& ranking_of(const KernelTask& task, const ir::Problem& problem);
  /// The best family's recipe on each machine; empty if some machine has no family.
  std::vector<const Recipe*> best_recipes(const KernelTask& task, const ir::Problem& problem);
  /// The call of the family that serves the task best; it names no family where the task has a row maker or
  /// joined operands that this family does not take. Throws OperatorError where none serves it.
  KernelCall call_for(const KernelTask& task, WeightBlob& weights);

  /// Positions in options.forced that named a step.
  const std::set<std::size_t>& forced_used() const { return forced_used_; }

 private:
  /// A task and what else its call follows from, on whatever machine.
  struct Wanted {
    const KernelTask& task;
    const ir::Problem& problem;
    const KernelFamily* forced;
    WeightBlob& weights;
  };
  const KernelFamily* forced_family(const ir::Node& node, const ir::Form& form);
  const Ranking& ranking_on(std::size_t machine, const ir::Problem& problem, const KernelFamily* forced);
  std::optional<KernelCall> call_of(const Wanted& wanted, const Candidate& chosen, const Machine& on,
                                    const SizeParameters& named) const;
  bool add_instance(Instances& instances, const Wanted& wanted, std::size_t machine, const Candidate& oldest);

  KernelOptions options_;
  std::vector<Rankings> rankings_;  // by machine
  std::set<std::size_t> forced_used_;
};

}  // namespace gcompile
