// Values that nothing but products read lie in memory as the products round them, in 16 bits where the target
// multiplies such (KernelPrices::factor_type): which changes no bit of any result, for a factor is rounded
// once either way, and halves what is moved.
//
//   v in 16 bits  <=>  every reader of v is a product that takes it as a factor in 16 bits, a movement whose
//                      result is in 16 bits, or an expression that rounds it first; and if v is a view or a
//                      Concat, what it shows is in 16 bits.
//
// With Options::short_activations it is enough that one reader is such, if the others compute floats of v
// element by element, reduce it, or add it behind their own sums. Those then read what the products read: a
// rounding more in the sum of a residual stream, as large as the one that each product makes of the same
// value; and no range is lost, for what float16 cannot hold the product could not read either. Sums, softmax
// and residual streams that no product reads stay float32, and so does what leads to a decision.
//
// A state is two values, what a run begins with and what it leaves: both are in 16 bits, or none is. So a
// cache of keys takes half of the bytes, and what lies in it is what a product would have made of it. Nobody
// reads a state, or what movements make of it, who would not round it: it is what the caller sees.

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

/// Whether a small change of what it reads may become a step: a rounding to whole numbers, or a comparison
/// with something else than zero, whose sign a rounding keeps.
bool decides(const ir::Dag& dag, const ScalarNode& node) {
  const auto is_zero = [&](int id) {
    return dag[id].op == ScalarOp::kConstant && dag[id].constant.as_double() == 0;
  };
  if (node.arguments.empty() || !ir::is_float(dag[node.arguments[0]].type)) return false;
  if (node.op == ScalarOp::kCast || node.op == ScalarOp::kBits) return !ir::is_float(node.type);
  if (ir::row_of(node.op).bool_result && node.arguments.size() == 2)
    return !is_zero(node.arguments[0]) && !is_zero(node.arguments[1]);
  constexpr ScalarOp kSteps[] = {ScalarOp::kMod,  ScalarOp::kFmod,  ScalarOp::kFloor,
                                 ScalarOp::kCeil, ScalarOp::kTrunc, ScalarOp::kRoundHalfEven};
  return std::find(std::begin(kSteps), std::end(kSteps), node.op) != std::end(kSteps);
}

/// Whether expressions give floats, and nothing in them decides.
bool computes_floats(const LoopForm& loops) {
  const std::vector<ScalarNode>& nodes = loops.dag.nodes();
  return std::none_of(nodes.begin(), nodes.end(),
                      [&](const ScalarNode& node) { return decides(loops.dag, node); }) &&
         std::all_of(loops.regions.begin(), loops.regions.end(),
                     [&](const ir::Region& region) { return ir::is_float(loops.dag[region.root].type); });
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
    context_.did("factors", fmt::format("{} value{} that products read lie in memory as {}", short_.size(),
                                        short_.size() == 1 ? "" : "s", name_of(half_)));
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
    if (outputs != 1 || graph_.is_output(*from) || graph_.is_input(to)) return;
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
    bool is_multiplied = false;
    const auto takes_short = [&](const ir::Use& use) {
      if (!use.node.valid()) return is_state;
      const bool multiplies = is_factor(use);
      is_multiplied = is_multiplied || multiplies;
      return multiplies || (!is_state && reads_rounded(use));
    };
    return shows_short(value.producer) && std::all_of(value.uses.begin(), value.uses.end(), takes_short) &&
           (is_state ? !is_read_rounded(id) : is_multiplied);
  }

  /// Whether somebody who would not round it reads the value, or what movements make of it.
  bool is_read_rounded(ValueId id) {
    const std::vector<ir::Use>& uses = graph_.value(id).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
      if (!use.node.valid()) return false;
      const ir::Node& node = graph_.node(use.node);
      if (moved_operands(graph_, node).empty()) return !is_factor(use);
      return is_short(node.results[0]) && is_read_rounded(node.results[0]);
    });
  }

  /// Whether an expression, or what a contraction does with its sums, may read what a product has rounded.
  bool reads_rounded(const ir::Use& use) {
    const ir::Node& node = graph_.node(use.node);
    const LoopForm* loops = loops_of(node);
    if (!context_.options().short_activations || !loops || !computes_floats(*loops)) return false;
    if (use.slot < base_operands(node) || !moved_operands(graph_, node).empty()) return false;
    return !std::holds_alternative<ir::ContractForm>(*node.form) || takes_short_factors(use.node);
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
    if (const LoopForm* loops = loops_of(node)) {
      if (use.slot >= base_operands(node) && rounds(*loops, use.slot)) return true;
    }
    const std::vector<ValueId> moved = moved_operands(graph_, node);
    if (!moved.empty()) {
      const ValueId operand = node.operands[use.slot];
      return std::find(moved.begin(), moved.end(), operand) != moved.end() && is_short(node.results[0]);
    }
    const auto* contract = node.form ? std::get_if<ir::ContractForm>(node.form.get()) : nullptr;
    return contract && use.slot < contract->base_operands && !is_mask(*contract, use.slot) &&
           may_be_added(*contract, use.slot) && rounds_at_all_sizes(use.node) &&
           takes_short_factors(use.node);
  }

  /// Whether an expression makes 16 bits of all that it loads of an operand, before anything else.
  bool rounds(const LoopForm& loops, int operand) const {
    const ir::Dag& dag = loops.dag;
    const auto is_load = [&](int id) { return dag[id].op == ScalarOp::kLoad && dag[id].operand == operand; };
    const auto reads_as_it_is = [&](const ScalarNode& node) {
      return !(node.op == ScalarOp::kCast && node.type == half_) &&
             std::any_of(node.arguments.begin(), node.arguments.end(), is_load);
    };
    return std::none_of(dag.nodes().begin(), dag.nodes().end(), reads_as_it_is) &&
           std::none_of(loops.stages.begin(), loops.stages.end(),
                        [&](const ir::Stage& stage) { return is_load(stage.root); }) &&
           std::none_of(loops.regions.begin(), loops.regions.end(),
                        [&](const ir::Region& region) { return is_load(region.root); });
  }

  static bool is_mask(const ir::ContractForm& contract, int slot) {
    return ir::kind_of(contract.work) == ir::Kind::kAttention && slot >= ir::AttentionWork::kMask;
  }
  /// Whether what is done with the sums does not read the factor, or may read it rounded.
  bool may_be_added(const ir::ContractForm& contract, int slot) const {
    const std::vector<ScalarNode>& nodes = contract.epilogue.dag.nodes();
    const bool is_read = std::any_of(nodes.begin(), nodes.end(), [&](const ScalarNode& node) {
      return node.op == ScalarOp::kLoad && node.operand == slot;
    });
    return !is_read || (context_.options().short_activations && computes_floats(contract.epilogue));
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
        const int load = dag.load(leaf.operand, is_short(operand) ? half_ : leaf.type, leaf.index);
        return is_short(operand) ? dag.cast(load, leaf.type) : load;
      });
      if (is_short(node.results[0])) {
        for (ir::Region& region : changed.regions) region.root = changed.dag.cast(region.root, half_);
      }
      set_loops(graph_, id, std::move(changed), operands);
    }
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
