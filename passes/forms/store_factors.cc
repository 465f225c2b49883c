// Values that nothing but products read lie in memory as the products round them, in 16 bits where the target
// multiplies such (KernelPrices::factor_type): which changes no bit of any result, for a factor is rounded
// once either way, and halves what is moved. Sums, norms, softmax and residual streams stay float32, and so
// does what leads to a decision: they are read by something else as well.
//
//   v in 16 bits  <=>  every reader of v is a product that takes it as a factor in 16 bits, or a movement
//   whose
//                      result is in 16 bits; and if v is a view or a Concat, what it shows is in 16 bits.
//
// A state is two values, what a run begins with and what it leaves: both are in 16 bits, or none is. So a
// cache of keys takes half of the bytes, and what lies in it is what a product would have made of it.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/graph/problem.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::LoopForm;
using ir::NodeId;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::ValueId;

/// Operands that the roots of a map load and nothing else; empty: it computes.
std::vector<ValueId> moved_operands(const ir::Graph& graph, const ir::Node& node) {
  const auto* loops = std::get_if<LoopForm>(node.form.get());
  if (!loops || !loops->is_map()) return {};
  std::vector<ValueId> moved;
  for (const ir::Region& region : loops->regions) {
    const ScalarNode& root = loops->dag[region.root];
    if (root.op != ScalarOp::kLoad || root.type != ElementType::kFloat32) return {};
    const ValueId operand = node.operands[root.operand];
    if (graph.constant(operand)) return {};
    moved.push_back(operand);
  }
  return moved;
}

class FactorStore {
 public:
  FactorStore(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), prices_(*context.options().prices), half_(*prices_.factor_type()) {
    for (const auto& [input, output] : context.options().states) {
      if (context.options().full_states.count(input) == 0) add_state(input, output);
    }
  }

  bool run() {
    for (const ValueId id : graph_.values()) {
      if (may_be_short(id)) short_.insert(id);
    }
    for (const ValueId id : std::set<ValueId>(short_)) look_at(id);
    while (!open_.empty()) {
      poll_interrupt();
      const ValueId id = open_.front();
      open_.pop_front();
      for (const ir::Use& use : graph_.value(id).uses) {
        if (use.node.valid()) look_at_results_and_factors(use.node);
      }
      if (const auto other = other_of_state_.find(id); other != other_of_state_.end()) look_at(other->second);
      const NodeId producer = graph_.value(id).producer;
      if (!producer.valid()) continue;
      for (const ValueId operand : moved_operands(graph_, graph_.node(producer))) look_at(operand);
    }
    if (short_.empty()) return false;
    apply();
    context_.did("factors", fmt::format("{} value{} that only products read lie in memory as {}",
                                        short_.size(), short_.size() == 1 ? "" : "s", name_of(half_)));
    return true;
  }

 private:
  bool is_short(ValueId id) const { return short_.count(id) != 0; }

  /// Values that are one state; not of an output that is an input, or the state of several.
  void add_state(const std::string& input, const std::string& output) {
    const std::vector<std::string>& names = graph_.output_names();
    const auto name = std::find(names.begin(), names.end(), output);
    const auto from = std::find_if(graph_.inputs().begin(), graph_.inputs().end(),
                                   [&](ValueId id) { return graph_.value(id).name == input; });
    if (name == names.end() || from == graph_.inputs().end()) return;
    const ValueId to = graph_.outputs()[static_cast<std::size_t>(name - names.begin())];
    const std::vector<ir::Use>& uses = graph_.value(to).uses;
    const auto outputs =
        std::count_if(uses.begin(), uses.end(), [](const ir::Use& use) { return !use.node.valid(); });
    if (outputs != 1 || graph_.is_output(*from)) return;
    other_of_state_[*from] = to;
    other_of_state_[to] = *from;
  }

  bool may_be_short(ValueId id) const {
    const ir::Value& value = graph_.value(id);
    const bool is_state = other_of_state_.count(id) != 0;
    if (value.type.element != ElementType::kFloat32 || value.uses.empty()) return false;
    if (!value.producer.valid()) return is_state;
    const ir::Node& node = graph_.node(value.producer);
    return (is_state || !graph_.is_output(id)) && loops_of(node) != nullptr && !is_kept(node);
  }

  /// Whether --keep-fp32 names a node that the kernel computes.
  bool is_kept(const ir::Node& node) const {
    const std::set<std::string>& kept = context_.options().keep_fp32;
    return kept.count(node.name) != 0 ||
           std::any_of(node.origins.begin(), node.origins.end(), [&](const ir::Origin& origin) {
             return origin.name && kept.count(*origin.name) != 0;
           });
  }

  void look_at(ValueId id) {
    if (is_short(id) && !stays_short(id)) {
      short_.erase(id);
      open_.push_back(id);
    }
  }
  void look_at_results_and_factors(NodeId id) {
    for (const ValueId result : graph_.node(id).results) {
      if (result.valid()) look_at(result);
    }
    for (const ValueId operand : graph_.node(id).operands) {
      if (operand.valid()) look_at(operand);
    }
  }

  bool stays_short(ValueId id) {
    const ir::Value& value = graph_.value(id);
    const auto other = other_of_state_.find(id);
    const bool is_state = other != other_of_state_.end();
    if (is_state && !is_short(other->second)) return false;
    return shows_short(value.producer) &&
           std::all_of(value.uses.begin(), value.uses.end(),
                       [&](const ir::Use& use) { return use.node.valid() ? is_factor(use) : is_state; });
  }

  /// Whether all that the result of a movement shows in its own memory is short.
  bool shows_short(NodeId id) const {
    if (!id.valid()) return true;
    const ir::Node& producer = graph_.node(id);
    const std::vector<ValueId> moved = moved_operands(graph_, producer);
    if (moved.empty() || !shares_memory(producer)) return true;
    // What the caller brings is copied into a Concat, whatever its type.
    const bool is_concat = moved.size() > 1;
    return std::all_of(moved.begin(), moved.end(), [&](ValueId operand) {
      return is_short(operand) ||
             (is_concat && graph_.is_input(operand) && other_of_state_.count(operand) == 0);
    });
  }

  /// A view of its operand, or a Concat, of which operands are parts.
  bool shares_memory(const ir::Node& node) const {
    const auto& loops = std::get<LoopForm>(*node.form);
    const ScalarNode* load = ir::pure_load(loops);
    if (!load) return true;
    const auto view = ir::view_strides(loops, strides_of(node.operands[load->operand]));
    const ValueId result = node.results[0];
    return view && ir::same_layout(graph_.value(result).type.shape, view->strides, strides_of(result));
  }

  ir::Shape strides_of(ValueId id) const {
    const ir::Value& value = graph_.value(id);
    return ir::strides_in_order(value.type.shape, value.order);
  }

  bool is_factor(const ir::Use& use) {
    const ir::Node& node = graph_.node(use.node);
    const std::vector<ValueId> moved = moved_operands(graph_, node);
    if (!moved.empty()) {
      const ValueId operand = node.operands[use.slot];
      return std::find(moved.begin(), moved.end(), operand) != moved.end() && is_short(node.results[0]);
    }
    const auto* contract = node.form ? std::get_if<ir::ContractForm>(node.form.get()) : nullptr;
    return contract && use.slot < contract->base_operands && !is_mask(*contract, use.slot) &&
           !epilogue_reads(*contract, use.slot) && rounds_at_all_sizes(use.node) &&
           takes_short_factors(use.node);
  }

  static bool is_mask(const ir::ContractForm& contract, int slot) {
    return ir::kind_of(contract.work) == ir::Kind::kAttention && slot >= ir::AttentionWork::kMask;
  }
  static bool epilogue_reads(const ir::ContractForm& contract, int slot) {
    const std::vector<ScalarNode>& nodes = contract.epilogue.dag.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const ScalarNode& node) {
      return node.op == ScalarOp::kLoad && node.operand == slot;
    });
  }

  /// The few rows of a run may be vectors, whose products with weights round these alone.
  bool rounds_at_all_sizes(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const bool has_weights = node.operands.size() > 1 && graph_.constant(node.operands[1]);
    return ir::kind_of(std::get<ir::ContractForm>(*node.form).work) != ir::Kind::kProduct || !has_weights ||
           are_constant(graph_.value(node.operands[0]).type.shape);
  }

  /// Whether the kernel that serves the contraction is no slower with its short operands as they are now.
  bool takes_short_factors(NodeId id) {
    const ir::Form& form = *graph_.node(id).form;
    const bool reads_floats = half_ == ElementType::kFloat16;
    ir::Problem problem = *ir::problem_of(
        graph_, id, form, [&](ValueId value) { return strides_of(value); }, reads_floats);
    const auto& contract = std::get<ir::ContractForm>(form);
    std::vector<bool> shorts;
    for (std::size_t i = 0; i < problem.operands.size(); ++i) {
      const ValueId operand = graph_.node(id).operands[i];
      shorts.push_back(operand.valid() && is_short(operand) && !is_mask(contract, static_cast<int>(i)));
    }
    const auto known = asked_.find({id, shorts});
    if (known != asked_.end()) return known->second;
    const ir::Price floats = prices_.price(problem);
    for (std::size_t i = 0; i < shorts.size(); ++i) {
      if (shorts[i]) problem.operands[i].element = half_;
    }
    const ir::Price price = prices_.price(problem);
    const bool takes =
        price.picoseconds && (!floats.picoseconds || *price.picoseconds <= *floats.picoseconds);
    if (!takes) {
      context_.refused(graph_.node(id).name, price.picoseconds ? "factors in 16 bits: floats are faster"
                                                               : "factors in 16 bits: " + price.refusal);
    }
    asked_[{id, std::move(shorts)}] = takes;
    return takes;
  }

  /// Types of values, then the expressions that load or make them.
  void apply() {
    std::set<NodeId> touched;
    for (const ValueId id : short_) {
      ir::Value& value = graph_.value(id);
      value.type.element = half_;
      if (value.producer.valid()) touched.insert(value.producer);
      for (const ir::Use& use : value.uses) {
        if (use.node.valid()) touched.insert(use.node);
      }
    }
    for (const NodeId id : touched) {
      const ir::Node& node = graph_.node(id);
      const LoopForm* loops = loops_of(node);
      if (!loops) continue;
      const std::vector<ValueId> operands = node.operands;
      LoopForm changed = rebuild(*loops, [&](ir::Dag& dag, const ScalarNode& leaf) {
        if (leaf.op != ScalarOp::kLoad) return dag.accumulator(leaf.operand, leaf.type);
        const ValueId operand = operands[leaf.operand];
        return dag.load(leaf.operand, is_short(operand) ? half_ : leaf.type, leaf.index);
      });
      if (is_short(node.results[0])) {
        for (ir::Region& region : changed.regions) region.root = in_half(changed.dag, region.root);
      }
      set_loops(graph_, id, std::move(changed), operands);
    }
  }

  /// What was 16 bits before it was widened passes through as it is.
  int in_half(ir::Dag& dag, int root) const {
    const ScalarNode& node = dag[root];
    if (node.op == ScalarOp::kCast && dag.type(node.arguments[0]) == half_) return node.arguments[0];
    return dag.cast(root, half_);
  }

  ir::Graph& graph_;
  PassContext& context_;
  const ir::KernelPrices& prices_;
  ElementType half_;
  std::map<ValueId, ValueId> other_of_state_;
  std::set<ValueId> short_;   // so far not refused
  std::deque<ValueId> open_;  // refused, whose neighbours were not looked at again
  std::map<std::pair<NodeId, std::vector<bool>>, bool> asked_;
};

}  // namespace

bool store_factors(ir::Graph& graph, PassContext& context) {
  const ir::KernelPrices* prices = context.options().prices;
  if (!prices || !prices->factor_type()) return false;
  return FactorStore(graph, context).run();
}

}  // namespace gcompile::passes
