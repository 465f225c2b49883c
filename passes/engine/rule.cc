#include "passes/engine/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/interrupt.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {

using ir::NodeId;
using ir::ValueId;

bool is_operator(const ir::Node& node, std::string_view name) {
  return node.op->name == name && node.op == &ir::operator_named(name);
}

Pattern Pattern::node(std::vector<std::string_view> operators, std::vector<Pattern> operands,
                      std::string_view name) {
  Pattern pattern;
  pattern.kind_ = Kind::kNode;
  pattern.name_ = name;
  pattern.operators_ = std::move(operators);
  pattern.operands_ = std::move(operands);
  return pattern;
}

Pattern Pattern::node_of_any(std::vector<std::string_view> operators, std::string_view name) {
  Pattern pattern = node(std::move(operators), {}, name);
  pattern.any_operands_ = true;
  return pattern;
}

Pattern Pattern::value(std::string_view name, bool constant) {
  Pattern pattern;
  pattern.kind_ = constant ? Kind::kConstant : Kind::kValue;
  pattern.name_ = name;
  return pattern;
}

Pattern Pattern::optional() const {
  Pattern pattern = *this;
  pattern.optional_ = true;
  return pattern;
}

Pattern Pattern::shared() const {
  Pattern pattern = *this;
  pattern.shared_ = true;
  return pattern;
}

bool commutes(const ir::Node& node) { return node.operands.size() == 2 && node.op->traits.commutative; }

// Match -----------------------------------------------------------------------------------------------------

ValueId Match::find(std::string_view name) const {
  for (const auto& [bound, id] : values_) {
    if (bound == name) return id;
  }
  return {};
}

ValueId Match::value(std::string_view name) const {
  const ValueId id = find(name);
  GC_CHECK(id.valid());
  return id;
}

const ir::Tensor& Match::constant(std::string_view name) const {
  const ir::Tensor* tensor = graph_.constant(value(name));
  GC_CHECK(tensor);
  return *tensor;
}

// Matcher ---------------------------------------------------------------------------------------------------

/// Depth-first search over the orders of commutative operands. It recurses over the pattern, whose size is
/// that of a line of source, never over the graph.
class Matcher {
 public:
  explicit Matcher(const ir::Graph& graph) : graph_(graph) {}

  std::optional<Match> match(const Pattern& pattern, NodeId root) {
    const ir::Node& node = graph_.node(root);
    for (std::size_t i = 1; i < node.results.size(); ++i) {
      if (node.results[i].valid() && graph_.use_count(node.results[i]) > 0) return std::nullopt;
    }
    const ValueId result = node.results[0];
    if (!result.valid() || graph_.constant(result)) return std::nullopt;
    return solve(Match(graph_), {{&pattern, result}});
  }

 private:
  struct Task {
    const Pattern* pattern;
    ValueId value;
  };

  std::optional<Match> solve(Match match, std::vector<Task> tasks) {
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      const Pattern& pattern = *task.pattern;
      if (!task.value.valid()) {
        if (!pattern.optional_) return std::nullopt;
        continue;
      }
      if (!bind(match, pattern.name_, task.value)) return std::nullopt;
      if (pattern.kind_ == Pattern::Kind::kConstant && !graph_.constant(task.value)) return std::nullopt;
      if (pattern.kind_ != Pattern::Kind::kNode) continue;
      const NodeId id = graph_.value(task.value).producer;
      if (!accepts(pattern, task.value)) return std::nullopt;
      match.nodes_.push_back({id, pattern.shared_ && !match.nodes_.empty()});
      if (pattern.any_operands_) continue;
      if (commutes(graph_.node(id))) {
        if (auto found = solve(match, with_operands(tasks, pattern, id, true))) return found;
      }
      tasks = with_operands(std::move(tasks), pattern, id, false);
    }
    return closed(match) ? std::optional(std::move(match)) : std::nullopt;
  }

  static bool bind(Match& match, std::string_view name, ValueId value) {
    if (name.empty()) return true;
    const ValueId bound = match.find(name);
    if (bound.valid()) return bound == value;
    match.values_.emplace_back(name, value);
    return true;
  }

  bool accepts(const Pattern& pattern, ValueId value) const {
    const ir::Value& result = graph_.value(value);
    if (!result.producer.valid() || result.result_index != 0) return false;
    const ir::Node& node = graph_.node(result.producer);
    if (!node.op->domain.empty() || node.form || !node.subgraphs.empty()) return false;
    const auto& names = pattern.operators_;
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return is_operator(node, name); }) &&
           (pattern.any_operands_ || fits(pattern, node));
  }

  static bool fits(const Pattern& pattern, const ir::Node& node) {
    for (std::size_t i = pattern.operands_.size(); i < node.operands.size(); ++i) {
      if (node.operands[i].valid()) return false;
    }
    return true;
  }

  /// Operands are pushed from the last to the first, so that the first is matched first.
  std::vector<Task> with_operands(std::vector<Task> tasks, const Pattern& pattern, NodeId id,
                                  bool swapped) const {
    const std::vector<ValueId>& operands = graph_.node(id).operands;
    const std::size_t count = pattern.operands_.size();
    for (std::size_t i = count; i-- > 0;) {
      const std::size_t slot = swapped ? count - 1 - i : i;
      tasks.push_back({&pattern.operands_[i], slot < operands.size() ? operands[slot] : ValueId{}});
    }
    return tasks;
  }

  /// Interior nodes serve the match alone.
  bool closed(const Match& match) const {
    for (std::size_t i = 1; i < match.nodes_.size(); ++i) {
      if (match.nodes_[i].shared) continue;
      for (const ValueId result : graph_.node(match.nodes_[i].id).results) {
        if (result.valid() && !read_only_by(match, graph_.value(result).uses)) return false;
      }
    }
    return true;
  }

  static bool read_only_by(const Match& match, const std::vector<ir::Use>& uses) {
    return std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
      return use.node.valid() && std::any_of(match.nodes_.begin(), match.nodes_.end(),
                                             [&](const auto& n) { return n.id == use.node; });
    });
  }

  const ir::Graph& graph_;
};

// Rewriter --------------------------------------------------------------------------------------------------

Rewriter::Rewriter(ir::Graph& graph, Match match) : Match(std::move(match)), mutable_graph_(graph) {
  std::set<ir::Origin> seen;
  for (auto at = nodes_.rbegin(); at != nodes_.rend(); ++at) {
    if (at->shared) continue;
    for (const ir::Origin& origin : graph.node(at->id).origins) {
      if (seen.insert(origin).second) origins_.push_back(origin);
    }
  }
}

std::string Rewriter::name_for(const ir::Operator& op) const {
  for (const MatchedNode& matched : nodes_) {
    if (graph_.node(matched.id).op == &op) return graph_.node(matched.id).name;
  }
  return graph_.node(root()).name;
}

ValueId Rewriter::emit(std::string_view op_name, std::vector<ValueId> operands, ir::Attributes attributes) {
  const ir::Operator& op = ir::operator_named(op_name);
  ir::complete_attributes(op, attributes);
  const NodeId id = mutable_graph_.add_node(op, std::move(operands), std::move(attributes), 1, name_for(op));
  mutable_graph_.node(id).origins = origins_;
  ir::infer_node(mutable_graph_, id);
  return mutable_graph_.node(id).results[0];
}

ValueId Rewriter::add_constant(ir::Tensor tensor, std::string_view like) {
  const std::string& name = graph_.value(like.empty() ? result() : value(like)).name;
  return mutable_graph_.add_constant(std::move(tensor), name.empty() ? graph_.value(result()).name : name);
}

ValueId Rewriter::add_ints(std::span<const ir::Dim> values) {
  if (ir::are_constant(values)) return add_ints(ir::numbers_of(values));
  return mutable_graph_.add_sizes(ir::ElementType::kInt64, {values.size()}, {values.begin(), values.end()});
}

ValueId Rewriter::add_ints(const std::vector<std::int64_t>& values) {
  return mutable_graph_.add_constant(ir::Tensor::of_ints(values, {static_cast<std::int64_t>(values.size())}));
}

// Driver ----------------------------------------------------------------------------------------------------

/// Rules by the operator of their root, in the order of the tables.
class RuleIndex {
 public:
  RuleIndex(const std::vector<const Rule*>& rules, const PassContext& context) {
    for (const Rule* rule : rules) {
      if (rule->level > context.options().level || !context.enabled(std::string(rule->name), rule->tier))
        continue;
      for (const std::string_view op : rule->pattern.operators_) by_root_[op].push_back(rule);
    }
  }
  const std::vector<const Rule*>& of(std::string_view op) const {
    static const std::vector<const Rule*> none;
    const auto at = by_root_.find(op);
    return at == by_root_.end() ? none : at->second;
  }

 private:
  std::map<std::string_view, std::vector<const Rule*>> by_root_;
};

class RuleDriver {
 public:
  RuleDriver(ir::Graph& graph, const std::vector<const Rule*>& rules, PassContext& context)
      : graph_(graph), index_(rules, context), context_(context), budget_(1000 + 50 * graph.node_count()) {}

  bool run() {
    bool changed = false;
    for (bool again = true; again;) {
      again = false;
      for (const NodeId id : graph_.topological_order()) {
        poll_interrupt();
        if (!graph_.alive(id)) continue;
        again |= rewrite(id);
        if (budget_ == 0) {
          context_.refused(graph_.name, "the rules ran out of their budget of rewrites");
          return true;
        }
      }
      changed |= again;
    }
    graph_.erase_unused_constants();
    return changed;
  }

 private:
  bool rewrite(NodeId id) {
    if (!graph_.node(id).op->domain.empty()) return false;
    for (const Rule* rule : index_.of(graph_.node(id).op->name)) {
      try {
        if (rewrite(id, *rule)) return true;
      } catch (const OperatorError& error) {
        // It asks for numbers where only a run knows the sizes. What it has built by then, nobody reads.
        if (!ir::SizesScope::in_force()) throw;
        context_.refused(subject(id), fmt::format("{}: {}", rule->name, error.message));
      }
    }
    return false;
  }

  bool rewrite(NodeId id, const Rule& rule) {
    std::optional<Match> match = Matcher(graph_).match(rule.pattern, id);
    if (!match) return false;
    match->prices_ = context_.options().prices;
    const std::string reason = rule.guard ? rule.guard(*match) : "";
    if (!reason.empty()) {
      if (!rule.quiet || context_.options().all_remarks) {
        context_.refused(subject(id), fmt::format("{}: {}", rule.name, reason));
      }
      return false;
    }
    apply(rule, *std::move(match));
    return true;
  }

  std::string subject(NodeId id) const {
    return fmt::format("{} '{}'", graph_.node(id).op->name, printable(graph_.node(id).name));
  }

  void apply(const Rule& rule, Match match) {
    const ValueId old = match.result();
    const std::string what = subject(match.root());
    Rewriter rewriter(graph_, std::move(match));
    const ValueId replacement = rule.build(rewriter);
    context_.did(what, std::string(rule.name));
    context_.count(std::string(rule.name));
    --budget_;
    GC_CHECK(graph_.value(replacement).type == graph_.value(old).type);
    if (graph_.value(replacement).name.empty()) graph_.value(replacement).name = graph_.value(old).name;
    graph_.replace_uses(old, replacement);
    erase_dead(rewriter.nodes_);
  }

  /// A node that several matched nodes read dies after the last of them, whatever the order of matching.
  void erase_dead(const std::vector<Match::MatchedNode>& nodes) {
    for (bool again = true; again;) {
      again = false;
      for (const auto& matched : nodes) {
        if (!graph_.alive(matched.id) || !is_dead(matched.id)) continue;
        graph_.erase_node(matched.id);
        again = true;
      }
    }
  }

  bool is_dead(NodeId id) const {
    const auto& results = graph_.node(id).results;
    return std::all_of(results.begin(), results.end(),
                       [&](ValueId result) { return !result.valid() || graph_.use_count(result) == 0; });
  }

  ir::Graph& graph_;
  RuleIndex index_;
  PassContext& context_;
  std::size_t budget_;
};

namespace {

std::vector<const Rule*> rules_of(const std::vector<const RuleTable*>& tables) {
  std::vector<const Rule*> rules;
  for (const RuleTable* table : tables) {
    for (const Rule& rule : *table) rules.push_back(&rule);
  }
  return rules;
}

}  // namespace

const std::vector<const Rule*>& all_rules() {
  static const std::vector<const Rule*> rules =
      rules_of({&quantised_movement_rules(), &integer_rules(), &block_rules(), &identity_rules(),
                &arithmetic_rules(), &reduce_rules(), &composite_rules(), &algebra_rules(), &movement_rules(),
                &pool_rules(), &product_rules(), &convolution_rules(), &cut_rules(), &passing_rules(),
                &padding_rules(), &weight_rules(), &volume_rules()});
  return rules;
}

bool apply_rules(ir::Graph& graph, const std::vector<const Rule*>& rules, PassContext& context) {
  return RuleDriver(graph, rules, context).run();
}

bool compute_in_integers(ir::Graph& graph, PassContext& context) {
  static const std::vector<const Rule*> rules =
      rules_of({&padding_rules(), &quantised_movement_rules(), &integer_rules(), &block_rules()});
  return apply_rules(graph, rules, context);
}

bool rewrite_volumes(ir::Graph& graph, PassContext& context) {
  static const std::vector<const Rule*> rules = rules_of({&volume_rules()});
  return apply_rules(graph, rules, context);
}

bool rewrite_by_rules(ir::Graph& graph, PassContext& context) {
  static const std::vector<const Rule*> rules =
      rules_of({&quantised_movement_rules(), &integer_rules(), &block_rules(), &identity_rules(),
                &arithmetic_rules(), &reduce_rules(), &composite_rules(), &algebra_rules(), &movement_rules(),
                &pool_rules(), &product_rules(), &convolution_rules(), &cut_rules(), &passing_rules(),
                &padding_rules(), &weight_rules()});
  return apply_rules(graph, rules, context);
}

}  // namespace gcompile::passes
