// A float that is made a small integer and then a float again, as between two quantised layers of one kernel,
// stays a float between the bounds of that integer:
//   float(int32(int8(w)) - z) -> min(max(w - z, -128 - z), 127 - z)    for whole w that is never NaN

#include <algorithm>
#include <map>
#include <optional>

#include "base/interrupt.h"
#include "ir/loops/number_facts.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::Dag;
using ir::ElementType;
using ir::LoopForm;
using ir::ScalarNode;
using ir::ScalarOp;

/// float(int(value) - zero), with int of 8 or 16 bits.
struct Narrowing {
  int value;
  double zero;
  ElementType type;
};

std::optional<Narrowing> narrowing_of(const Dag& dag, const std::vector<ir::NumberFacts>& facts, int id) {
  const auto is_cast = [&](int n, ElementType type) {
    return dag[n].op == ScalarOp::kCast && dag.type(n) == type;
  };
  if (!is_cast(id, ElementType::kFloat32)) return std::nullopt;
  int integer = dag[id].arguments[0];
  double zero = 0;
  if (dag[integer].op == ScalarOp::kSub && dag.type(integer) == ElementType::kInt32) {
    const ScalarNode& subtrahend = dag[dag[integer].arguments[1]];
    if (subtrahend.op != ScalarOp::kConstant) return std::nullopt;
    zero = subtrahend.constant.as_double();
    integer = dag[integer].arguments[0];
  }
  if (is_cast(integer, ElementType::kInt32)) integer = dag[integer].arguments[0];
  const ElementType type = dag.type(integer);
  if (dag[integer].op != ScalarOp::kCast || !ir::is_integer(type) || ir::bits_of(type) > 16)
    return std::nullopt;
  const int value = dag[integer].arguments[0];
  const ir::NumberFacts& known = facts[static_cast<std::size_t>(value)];
  if (dag.type(value) != ElementType::kFloat32 || !known.number || !known.whole) return std::nullopt;
  return Narrowing{value, zero, type};
}

/// Writes an expression anew, with its narrowings replaced. Returns its root.
class Rewriting {
 public:
  Rewriting(const Dag& from, const std::vector<ir::NumberFacts>& facts) : from_(from), facts_(facts) {}

  int run(int root, Dag& to) {
    const int roots[] = {root};
    for (const int id : from_.reachable(roots)) {
      const auto narrowing = narrowing_of(from_, facts_, id);
      ids_[id] = narrowing ? clamped(*narrowing, to) : copied(from_[id], to);
      found_ |= narrowing.has_value();
    }
    return ids_.at(root);
  }
  bool found() const { return found_; }

 private:
  int copied(const ScalarNode& node, Dag& to) const {
    switch (node.op) {
      case ScalarOp::kLoad:
        return to.load(node.operand, node.type, node.index);
      case ScalarOp::kConstant:
        return to.constant(node.constant);
      case ScalarOp::kIota:
        return to.iota(node.index[0]);
      case ScalarOp::kAccumulator:
        return to.accumulator(node.operand, node.type);
      case ScalarOp::kCast:
        return to.cast(ids_.at(node.arguments[0]), node.type);
      case ScalarOp::kBits:
        return to.bits(ids_.at(node.arguments[0]), node.type);
      case ScalarOp::kRound:
        return to.round(ids_.at(node.arguments[0]));
      default:
        break;
    }
    ir::Arguments arguments = node.arguments;
    for (int& argument : arguments) argument = ids_.at(argument);
    return to.apply(node.op, arguments);
  }

  /// The sum with 0 stays where there is one: it makes 0 of -0, as the integer did.
  int clamped(const Narrowing& narrowing, Dag& to) const {
    const auto number = [&](double v) { return to.constant(ElementType::kFloat32, v); };
    int value = narrowing.value;
    double shift = -narrowing.zero;
    const ScalarNode& sum = from_[ir::unrounded(from_, value)];
    if (sum.op == ScalarOp::kAdd && from_[sum.arguments[1]].op == ScalarOp::kConstant &&
        facts_[sum.arguments[0]].whole) {
      shift += from_[sum.arguments[1]].constant.as_double();
      value = sum.arguments[0];
    }
    const int moved = to.apply(ScalarOp::kAdd, {ids_.at(value), number(shift == 0 ? 0.0 : shift)});
    const double low = static_cast<double>(ir::integer_lowest(narrowing.type)) - narrowing.zero;
    const double high = static_cast<double>(ir::integer_highest(narrowing.type)) - narrowing.zero;
    return to.apply(ScalarOp::kMin, {to.apply(ScalarOp::kMax, {moved, number(low)}), number(high)});
  }

  const Dag& from_;
  const std::vector<ir::NumberFacts>& facts_;
  std::map<int, int> ids_;
  bool found_ = false;
};

bool rewrite(ir::Graph& graph, ir::NodeId id) {
  const LoopForm* loops = loops_of(graph.node(id));
  if (!loops || !is_rebuilt(*loops)) return false;
  const Dag& dag = loops->dag;
  const bool narrows = std::any_of(dag.nodes().begin(), dag.nodes().end(), [](const ScalarNode& node) {
    return node.op == ScalarOp::kCast && ir::is_integer(node.type) && ir::bits_of(node.type) <= 16;
  });
  if (!narrows) return false;
  const std::vector<ir::ValueId> operands = graph.node(id).operands;
  const auto facts = ir::number_facts(dag, [&](const ScalarNode& load) -> std::optional<double> {
    const ir::Tensor* constant = graph.constant(operands[load.operand]);
    return constant ? ir::bound_of(*constant) : std::nullopt;
  });
  LoopForm changed = *loops;
  changed.dag = Dag();
  Rewriting rewriting(dag, facts);
  changed.regions[0].root = rewriting.run(loops->regions[0].root, changed.dag);
  if (!rewriting.found()) return false;
  set_loops(graph, id, std::move(changed), operands);
  return true;
}

}  // namespace

bool keep_in_float(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (const ir::NodeId id : graph.nodes()) {
    poll_interrupt();
    changed |= rewrite(graph, id);
  }
  return changed;
}

}  // namespace gcompile::passes
