#pragma once
// The lowered schedule before offsets are known: a tree of steps over storage buffers.

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "codegen/calls/call_writer.h"
#include "codegen/choice/kernel_options.h"
#include "codegen/schedule/strips.h"

namespace gcompile {

struct LoweredStep {
  enum class Kind : std::uint8_t { kCall, kIf, kTrap, kStrips };
  Kind kind = Kind::kCall;
  KernelCall call;
  Storage condition;                // kIf: one bool
  std::vector<ir::Origin> origins;  // what it computes: nodes of the model, or "layout"
  std::string comment, result;
  std::string trap;     // kTrap: why the branch cannot run
  ir::Dim trapped = 1;  // kTrap: where this size is not 0
  std::int64_t bytes_read = 0, bytes_written = 0;
  std::int64_t weight_bytes = 0;   // among those read
  std::int64_t scratch_bytes = 0;  // among those written
  std::vector<LoweredStep> then_steps, else_steps;
  // kStrips: the kernels, in their order, and the buffers of all parts.
  std::vector<LoweredStep> strip_steps;
  StripPlan strips;
  Storage strip_buffers;
};

/// Where a node came from; its own name when it says nothing of that.
std::vector<ir::Origin> origins_of(const ir::Node& node);
/// "Conv 'conv1', Relu 'relu1'".
std::string comment_of(const ir::Node& node);

/// Choices that trade copies for memory.
struct ScheduleOptions {
  bool lowest_peak =
      false;  // reorder independent nodes so that fewer bytes live at a time; else the graph's order
  bool place_parts = true;  // see StorageAssigner
  KernelOptions kernels;
};

/// Builds the schedule of a graph and, inside If steps, of its branches. Storage lives are filled in on the
/// way.
class Instances;

class Scheduler {
 public:
  Scheduler(std::vector<StorageBuffer>& buffers, WeightBlob& weights, Diagnostics& diagnostics,
            ScheduleOptions options);

  /// `inputs`: homes of the graph's inputs; `outputs`: homes its outputs must have.
  /// CUDA: `host_inputs`: where the host finds them; invalid entries are on the device only.
  std::vector<LoweredStep> run(const ir::Graph& graph, const std::vector<Storage>& inputs,
                               const std::vector<Storage>& outputs, const std::vector<Storage>& host_inputs);
  /// Bytes of the values that the host computes to choose branches.
  std::int64_t host_bytes() const { return host_bytes_; }
  std::int64_t now() const { return now_; }
  /// Positions in options.kernels.forced that named a step.
  const std::set<std::size_t>& forced_used() const { return forced_used_; }

 private:
  struct Scope;
  void lower_node(Scope& scope, ir::NodeId id);
  /// CUDA: lowers a reduction and the product that alone reads its rows as one call; whether it did.
  bool lower_with_rows(Scope& scope, ir::NodeId maker, ir::NodeId reader);
  /// CUDA: lowers the first nodes of `order` as one call, where those are the Concats of keys and of values
  /// and the attention that reads them; returns how many.
  std::size_t lower_with_cache(Scope& scope, std::span<const ir::NodeId> order);
  static std::optional<Storage> home_of_part(const Scope& scope, ir::NodeId id, std::size_t region);
  static std::optional<JoinedOperand> joined_operand(const Scope& scope, ir::NodeId id, ir::NodeId reader,
                                                     std::size_t i);
  /// Lowers the first nodes of `order` in strips, if that pays; returns how many.
  std::size_t lower_in_strips(Scope& scope, std::span<const ir::NodeId> order);
  bool spares_operands(const Scope& scope, std::span<const ir::NodeId> order,
                       std::span<const StripKernel> chain, const StripPlan& plan) const;
  void cut_chain(Scope& scope, std::span<const ir::NodeId> order);
  bool hands_over(const Scope& scope, ir::NodeId from, ir::NodeId to) const;
  std::optional<StripKernel> strip_kernel(const Scope& scope, ir::NodeId id);
  void lower_if(Scope& scope, ir::NodeId id);
  /// CUDA: computes on the host what the value depends on.
  Storage steer(Scope& scope, ir::ValueId value);
  void check_steers(const Scope& scope, ir::ValueId value) const;
  void compute_on_host(Scope& scope, ir::ValueId value);
  void copy_outputs(Scope& scope, const std::vector<Storage>& outputs);
  void emit(Scope& scope, KernelCall call, std::vector<ir::Origin> origins, std::string comment,
            std::string result);
  LoweredStep made_step(KernelCall call, std::vector<ir::Origin> origins, std::string comment,
                        std::string result);
  Storage scratch(std::int64_t bytes, const char* name);
  /// Calls the family that serves the node's work best, over values that lie at `home`.
  /// Loops over rows that every block makes for itself, and the node that they are of.
  struct RowMaker {
    ir::NodeId node;
    const ir::LoopForm& loops;
  };
  /// With `maker`, which computes operand 0, or operands that are joined: no family is named where the best
  /// one does not take them.
  KernelCall chosen_call(const ir::Graph& graph, ir::NodeId id, const ir::Form& form, const HomeOf& home,
                         bool by_rows, const RowMaker* maker = nullptr,
                         const JoinedOperands* joined = nullptr);
  /// What a call has to do.
  struct Wanted {
    const ir::Graph& graph;
    ir::NodeId id;
    const ir::Form& form;
    const HomeOf& home;
    bool by_rows;
    const RowMaker* maker;
    const JoinedOperands* joined;
    const ir::Problem& problem;
  };
  std::optional<KernelCall> call_of(const Wanted& wanted, const Candidate& chosen, const Machine& gpu,
                                    const SizeParameters& named);
  bool add_instance(Instances& instances, const Wanted& wanted, const Machine& gpu,
                    const KernelFamily* forced, const Candidate& oldest);
  Ranking ranking_on(const Machine& gpu, const ir::Problem& problem, const KernelFamily* forced) const;
  /// The best family's recipe on each machine; empty if some machine has no family.
  std::vector<const Recipe*> best_recipes(const ir::Problem& problem, const KernelFamily* forced) const;
  std::map<ir::ValueId, Storage> copy_operands(Scope& scope, ir::NodeId id, const ir::Form& form);
  const Machine& machine() const { return options_.kernels.machine; }
  bool on_device() const { return info_of(machine().target).has_device_memory; }
  Storage temporary(const ir::TensorType& type, const std::vector<int>& order, const std::string& name);
  void touch(const Storage& storage);

  std::vector<StorageBuffer>& buffers_;
  WeightBlob& weights_;
  Diagnostics& diagnostics_;
  ScheduleOptions options_;
  std::vector<Machine> machines_;  // that calls are made for: CUDA: of each GPU, oldest first
  const KernelFamily* forced_family(const ir::Node& node, const ir::Form& form);
  std::set<std::size_t> forced_used_;
  std::int64_t now_ = 0;
  std::int64_t host_bytes_ = 0;
};

}  // namespace gcompile
