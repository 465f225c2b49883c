#pragma once
// Rewrite rules as values (DESIGN, rule 3): a law in a comment, a pattern, a guard that says why it refused,
// a replacement, a tier. The engine guarantees what rules need not repeat:
//   * interior nodes of a pattern have no reader outside it and are no graph outputs (unless `shared`);
//   * commutative operators of two operands match in either order;
//   * the replacement has the type of what it replaces, and carries the origins of all replaced nodes;
//   * sweeps in topological order until nothing changes, within a budget; the order is a function of the
//   graph.

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/operator.h"
#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

/// Whether the node is an operator of ai.onnx, or one of the compiler's own. For patterns alone, whose
/// subject are given operators; everything else asks for traits (ir/graph/operator.h).
bool is_operator(const ir::Node& node, std::string_view name);
/// Whether the two operands of a node may change places: up to the sign of zero, for Max and Min of floats.
bool commutes(const ir::Node& node);

/// What an operand of a node must look like.
class Pattern {
 public:
  /// Node of one of the operators, with these operands; trailing ones that are not listed must be absent.
  static Pattern node(std::vector<std::string_view> operators, std::vector<Pattern> operands,
                      std::string_view name);
  /// Node with whatever operands.
  static Pattern node_of_any(std::vector<std::string_view> operators, std::string_view name);
  static Pattern value(std::string_view name, bool constant);

  /// The operand may be omitted.
  Pattern optional() const;
  /// The node may have readers outside the match, and then survives.
  Pattern shared() const;

 private:
  friend class Matcher;
  friend class RuleIndex;
  enum class Kind { kValue, kConstant, kNode };
  Kind kind_ = Kind::kValue;
  std::string_view name_;
  std::vector<std::string_view> operators_;
  std::vector<Pattern> operands_;
  bool any_operands_ = false;
  bool optional_ = false;
  bool shared_ = false;
};

/// Any value. A name that occurs twice, also as the name of a node, must be the same value.
inline Pattern any(std::string_view name) { return Pattern::value(name, false); }
/// A value known at compile time.
inline Pattern constant(std::string_view name) { return Pattern::value(name, true); }
inline Pattern op(std::string_view name, std::vector<Pattern> operands, std::string_view bound = {}) {
  return Pattern::node({name}, std::move(operands), bound);
}
inline Pattern one_of(std::vector<std::string_view> names, std::vector<Pattern> operands,
                      std::string_view bound = {}) {
  return Pattern::node(std::move(names), std::move(operands), bound);
}
inline Pattern op_of_any(std::string_view name, std::string_view bound = {}) {
  return Pattern::node_of_any({name}, bound);
}

/// What a pattern matched. Names are those of the pattern; asking for one that is not bound is a bug.
class Match {
 public:
  explicit Match(const ir::Graph& graph) : graph_(graph) {}

  const ir::Graph& graph() const { return graph_; }
  /// What the target's kernels take; nullptr: everything.
  const ir::KernelPrices* prices() const { return prices_; }
  ir::NodeId root() const { return nodes_.front().id; }
  bool has(std::string_view name) const { return find(name).valid(); }
  /// The value, or result 0 of the node, of that name.
  ir::ValueId value(std::string_view name) const;
  ir::NodeId node_id(std::string_view name) const { return graph_.value(value(name)).producer; }
  const ir::Node& node(std::string_view name) const { return graph_.node(node_id(name)); }
  /// Which of the operators of its pattern a node is.
  bool is(std::string_view name, std::string_view op) const { return is_operator(node(name), op); }
  const ir::Attributes& attributes(std::string_view name) const { return node(name).attributes; }
  const ir::TensorType& type(std::string_view name) const { return graph_.value(value(name)).type; }
  const ir::Shape& shape(std::string_view name) const { return type(name).shape; }
  const ir::Tensor& constant(std::string_view name) const;
  ir::ValueId result() const { return graph_.node(root()).results[0]; }
  const ir::TensorType& result_type() const { return graph_.value(result()).type; }

 protected:
  friend class Matcher;
  friend class RuleDriver;
  struct MatchedNode {
    ir::NodeId id;
    bool shared = false;
  };
  ir::ValueId find(std::string_view name) const;
  const ir::Graph& graph_;
  const ir::KernelPrices* prices_ = nullptr;
  std::vector<std::pair<std::string_view, ir::ValueId>> values_;
  std::vector<MatchedNode> nodes_;  // the root first
};

/// A match and the means to build its replacement.
class Rewriter : public Match {
 public:
  Rewriter(ir::Graph& graph, Match match);
  /// Adds a node, fills its defaults, infers its type, and returns result 0. It takes the name of the
  /// replaced node with the same operator, else that of the root.
  ir::ValueId emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {});
  /// With the name of `like`, a value of the pattern that it is made of; without one, of the result.
  ir::ValueId add_constant(ir::Tensor tensor, std::string_view like = {});
  /// Sizes and axes, which belong to their node.
  ir::ValueId add_ints(const std::vector<std::int64_t>& values);
  ir::ValueId add_ints(std::span<const ir::Dim> values);
  const ir::TensorType& type_of(ir::ValueId id) const { return graph_.value(id).type; }
  using Match::constant;

 private:
  friend class RuleDriver;
  std::string name_for(const ir::Operator& op) const;
  ir::Graph& mutable_graph_;
  std::vector<ir::Origin> origins_;
};

struct Rule {
  std::string_view name;  // for --disable-pass, counters and remarks
  Tier tier = Tier::kExact;
  Pattern pattern;
  /// Empty: the rule may fire; else the reason why not. Null: always.
  std::string (*guard)(const Match&) = nullptr;
  /// The value that replaces result 0 of the root; of the same type.
  ir::ValueId (*build)(Rewriter&) = nullptr;
  /// The guard completes the pattern, and its refusals say nothing about a chance missed: not remarked.
  bool quiet = false;
  int level = 1;  // of -O
};

using RuleTable = std::vector<Rule>;
const RuleTable& integer_rules();
const RuleTable& block_rules();
const RuleTable& quantised_movement_rules();
const RuleTable& identity_rules();
const RuleTable& arithmetic_rules();
const RuleTable& algebra_rules();
const RuleTable& movement_rules();
const RuleTable& pool_rules();
const RuleTable& product_rules();
const RuleTable& convolution_rules();
const RuleTable& cut_rules();
const RuleTable& passing_rules();
const RuleTable& reduce_rules();
const RuleTable& composite_rules();
const RuleTable& padding_rules();
const RuleTable& weight_rules();
const RuleTable& volume_rules();
/// All of them, in the order in which they are tried.
const std::vector<const Rule*>& all_rules();

/// Applies the rules until none fires. Returns whether any did.
bool apply_rules(ir::Graph& graph, const std::vector<const Rule*>& rules, PassContext& context);

}  // namespace gcompile::passes
