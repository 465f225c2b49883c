#include "ir/size_evaluator.h"

#include "ir/operator.h"

namespace gcompile::ir {
namespace {

constexpr std::int64_t kMostElements = 4096;

/// Integers, and bools as 0 and 1.
using Known = std::optional<Dim>;

Known limited(Dim number, ElementType type) {
  const bool fits =
      bits_of(type) == 64 || (highest(number) <= static_cast<std::int64_t>(integer_highest(type)) &&
                              lowest(number) >= integer_lowest(type));
  return fits ? Known(number) : std::nullopt;
}

Known truth(Truth known) {
  if (known == Truth::kUnknown) return std::nullopt;
  return known == Truth::kYes ? 1 : 0;
}

Truth less(Dim a, Dim b) {
  if (always_less(a, b)) return Truth::kYes;
  return always_less_equal(b, a) ? Truth::kNo : Truth::kUnknown;
}
Truth opposite(Truth a) { return a == Truth::kUnknown ? a : a == Truth::kYes ? Truth::kNo : Truth::kYes; }

/// The interpreter of one form.
class Interpreter {
 public:
  Interpreter(const LoopForm& form, std::vector<std::optional<Shape>> elements, std::vector<Shape> shapes)
      : form_(form), dag_(form.dag), elements_(std::move(elements)), shapes_(std::move(shapes)) {}

  std::optional<Shape> run(const Shape& result) {
    Shape out(static_cast<std::size_t>(element_count(result)), 0);
    if (!form_.checks.empty() || !are_constant(form_.extents)) return std::nullopt;
    const Shape strides = row_major_strides(result);
    for (const Region& region : form_.regions) {
      for_each(region.box, [&] {
        const Known value = final_value(region.root);
        if (!value) return false;
        Dim at = 0;
        for (std::size_t axis = 0; axis < form_.store.size(); ++axis) {
          const Known coordinate = index(form_.store[axis]);
          if (!coordinate) return false;
          at += *coordinate * strides[axis];
        }
        out[static_cast<std::size_t>(at)] = *value;
        return true;
      });
    }
    return unknown_ ? std::nullopt : std::optional(std::move(out));
  }

 private:
  /// Calls what returns whether to go on with every point of a box as the position.
  template <class Each>
  void for_each(const std::vector<Range>& box, Each each) {
    for (const Range& range : box) {
      if (range.high <= range.low) return;
    }
    const std::size_t first = position_.size();
    for (const Range& range : box) position_.push_back(range.low);
    for (bool more = true; more && !unknown_;) {
      if (!each()) unknown_ = true;
      more = false;
      for (std::size_t axis = box.size(); axis-- > 0 && !more;) {
        more = ++position_[first + axis] < box[axis].high;
        if (!more) position_[first + axis] = box[axis].low;
      }
    }
    position_.resize(first);
  }

  Known final_value(int root) {
    accumulators_.clear();
    for (const Stage& stage : form_.stages) {
      if (form_.final_over_reduced) return std::nullopt;
      const Known value = reduced(stage);
      if (!value) return std::nullopt;
      accumulators_.push_back(*value);
    }
    return value(root);
  }

  Known reduced(const Stage& stage) {
    std::vector<Range> box = form_.ranges();
    box.erase(box.begin(), box.begin() + form_.parallel);
    Known held;
    bool is_first = true;
    for_each(box, [&] {
      const Known next = value(stage.root);
      const ElementType type = dag_.type(stage.root);
      held = is_first ? next : next && held ? combined(stage.combine, *held, *next, type) : std::nullopt;
      is_first = false;
      return held.has_value();
    });
    return held;
  }

  static Known combined(Combine how, Dim a, Dim b, ElementType type) {
    switch (how) {
      case Combine::kSum:
        return binary(ScalarOp::kAdd, a, b, type);
      case Combine::kProduct:
        return binary(ScalarOp::kMul, a, b, type);
      case Combine::kMax:
        return binary(ScalarOp::kMax, a, b, type);
      case Combine::kMin:
        return binary(ScalarOp::kMin, a, b, type);
      default:
        return std::nullopt;
    }
  }

  Known index(const Index& index) {
    Dim sum = index.constant();
    for (const Index::Term& term : index.terms()) {
      const Known atom = part(term.atom);
      if (!atom) return std::nullopt;
      sum += term.coefficient * *atom;
    }
    return sum;
  }

  Known part(const IndexAtom& atom) {
    if (atom.kind == IndexAtom::Kind::kAxis) return position_[static_cast<std::size_t>(atom.axis)];
    if (atom.kind == IndexAtom::Kind::kLoaded) return value(atom.axis);
    const Known inner = index(*atom.inner);
    if (!inner || !inner->is_constant() || !atom.divisor.is_constant()) return std::nullopt;
    const Dim quotient = floor_div(*inner, atom.divisor.constant());
    return atom.kind == IndexAtom::Kind::kFloorDiv ? quotient : *inner - quotient * atom.divisor;
  }

  Known loaded(const ScalarNode& node) {
    const auto operand = static_cast<std::size_t>(node.operand);
    if (operand >= elements_.size() || !elements_[operand]) return std::nullopt;
    const Shape strides = row_major_strides(shapes_[operand]);
    Dim at = 0;
    for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
      const Known coordinate = index(node.index[axis]);
      if (!coordinate) return std::nullopt;
      at += *coordinate * strides[axis];
    }
    if (!at.is_constant() || at < 0 || at >= elements_[operand]->size()) return std::nullopt;
    return (*elements_[operand])[static_cast<std::size_t>(at)];
  }

  Known value(int id) {
    const ScalarNode& node = dag_[id];
    switch (node.op) {
      case ScalarOp::kLoad:
        return loaded(node);
      case ScalarOp::kConstant:
        return is_float(node.type) ? Known() : Known(node.constant.integer);
      case ScalarOp::kIota:
        return index(node.index[0]);
      case ScalarOp::kAccumulator:
        return accumulators_.at(static_cast<std::size_t>(node.operand));
      default:
        break;
    }
    if (node.op == ScalarOp::kSelect) {
      const Known which = value(node.arguments[0]);
      if (!which) return std::nullopt;
      return value(node.arguments[*which == 1 ? 1 : 2]);
    }
    std::vector<Dim> arguments;
    for (const int argument : node.arguments) {
      const Known known = value(argument);
      if (!known) return std::nullopt;
      arguments.push_back(*known);
    }
    const ElementType from = dag_.type(node.arguments[0]);
    return arguments.size() == 1 ? unary(node.op, arguments[0], from, node.type)
                                 : binary(node.op, arguments[0], arguments[1], from);
  }

  static Known unary(ScalarOp op, Dim a, ElementType from, ElementType to) {
    switch (op) {
      case ScalarOp::kRound:
        return a;
      case ScalarOp::kCast:
        if (is_float(to)) return std::nullopt;
        return to == ElementType::kBool ? truth(opposite(are_equal(a, 0))) : limited(a, to);
      case ScalarOp::kNeg:
        return limited(-a, from);
      case ScalarOp::kAbs:
        if (always_less_equal(0, a)) return a;
        return always_less_equal(a, 0) ? limited(-a, from) : std::nullopt;
      case ScalarOp::kLogicalNot:
        return 1 - a;
      default:
        return std::nullopt;
    }
  }

  static Known binary(ScalarOp op, Dim a, Dim b, ElementType type) {
    switch (op) {
      case ScalarOp::kLess:
        return truth(less(a, b));
      case ScalarOp::kGreater:
        return truth(less(b, a));
      case ScalarOp::kLessEqual:
        return truth(opposite(less(b, a)));
      case ScalarOp::kGreaterEqual:
        return truth(opposite(less(a, b)));
      case ScalarOp::kEqual:
        return truth(are_equal(a, b));
      case ScalarOp::kNotEqual:
        return truth(opposite(are_equal(a, b)));
      case ScalarOp::kLogicalAnd:
        return a == 1 && b == 1 ? 1 : 0;
      case ScalarOp::kLogicalOr:
        return a == 1 || b == 1 ? 1 : 0;
      case ScalarOp::kLogicalXor:
        return a != b ? 1 : 0;
      case ScalarOp::kAdd:
        return limited(a + b, type);
      case ScalarOp::kSub:
        return limited(a - b, type);
      case ScalarOp::kMul:
        return limited(a * b, type);
      case ScalarOp::kMin:
        return min(a, b);
      case ScalarOp::kMax:
        return max(a, b);
      case ScalarOp::kDiv:
        // Exact where a formula divides; else rounded down, which is towards zero.
        if (!always_less(0, b) && !(a.is_constant() && b.is_constant() && b != 0)) return std::nullopt;
        return limited(a / b, type);
      case ScalarOp::kMod:
        // Of numbers it takes the sign of the divisor.
        return always_less_equal(0, a) && always_less(0, b) ? limited(a % b, type) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  const LoopForm& form_;
  const Dag& dag_;
  std::vector<std::optional<Shape>> elements_;
  std::vector<Shape> shapes_;
  std::vector<Dim> position_;
  std::vector<Dim> accumulators_;
  bool unknown_ = false;
};

}  // namespace

std::optional<Shape> known_elements(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.sizes) return value.sizes;
  const Tensor* tensor = graph.constant(id);
  if (!tensor || is_float(tensor->element()) || tensor->count() > kMostElements) return std::nullopt;
  return shape_of(tensor->ints());
}

std::optional<Shape> evaluate_sizes(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.op->lower || node.results.empty() || !node.results[0].valid()) return std::nullopt;
  const TensorType& result = graph.value(node.results[0]).type;
  if (!are_constant(result.shape) || result.count() > kMostElements) return std::nullopt;
  std::vector<std::optional<Shape>> elements;
  std::vector<Shape> shapes;
  bool has_formula = false;
  for (const ValueId operand : node.operands) {
    elements.push_back(operand.valid() ? known_elements(graph, operand) : std::nullopt);
    shapes.push_back(operand.valid() ? graph.value(operand).type.shape : Shape{});
    has_formula = has_formula || (operand.valid() && graph.value(operand).sizes);
  }
  if (!has_formula) return std::nullopt;
  try {
    const Form form = node.op->lower(LowerContext(graph, id));
    const auto* loops = std::get_if<LoopForm>(&form);
    return loops ? Interpreter(*loops, std::move(elements), std::move(shapes)).run(result.shape)
                 : std::nullopt;
  } catch (const OperatorError&) {
    return std::nullopt;  // a formula that is too long, or that nothing is known of
  }
}

}  // namespace gcompile::ir
