#include "ir/graph/size_evaluator.h"

#include <cmath>
#include <numeric>

#include "ir/forms/form.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {
namespace {

constexpr std::int64_t kMostElements = 4096;

/// over / under. Integers have no divisor, and bools are 0 and 1. A float with a power of two below it is
/// that number; any other is the float next to it, of which floor and ceil are still exact.
struct Fraction {
  Dim over = 0;
  std::int64_t under = 1;
  Fraction(Dim number) : over(number) {}  // NOLINT: a size is a number
  Fraction(Dim dividend, std::int64_t divisor) : over(dividend), under(divisor) {
    const std::int64_t common = std::gcd(content(over), under);
    if (common > 1) over = *exact_quotient(over, common), under /= common;
  }
  bool is_exact() const { return (under & (under - 1)) == 0; }
};
using Known = std::optional<Fraction>;

Known limited(Dim number, ElementType type) {
  const bool fits =
      bits_of(type) == 64 || (highest(number) <= static_cast<std::int64_t>(integer_highest(type)) &&
                              lowest(number) >= integer_lowest(type));
  return fits ? Known(number) : std::nullopt;
}

/// What float32 has room for: 24 bits of an exact number. Of a quotient of integers of 22 bits, the nearest
/// float lies on the same side of every integer as the quotient does.
Known limited(const Fraction& number) {
  const std::int64_t most = std::int64_t{1} << (number.is_exact() ? 24 : 22);
  const bool fits = number.under < most && highest(number.over) < most && lowest(number.over) > -most;
  return fits ? Known(number) : std::nullopt;
}

Known of_real(double real) {
  std::int64_t under = 1;
  while (std::trunc(real) != real && under < (1 << 24)) real *= 2, under *= 2;
  if (std::trunc(real) != real || std::abs(real) >= 0x1p24) return std::nullopt;
  return Fraction(static_cast<std::int64_t>(real), under);
}

Known truth(Truth known) {
  if (known == Truth::kUnknown) return std::nullopt;
  return Fraction(known == Truth::kYes ? 1 : 0);
}

Truth less(Dim a, Dim b) {
  if (always_less(a, b)) return Truth::kYes;
  return always_less_equal(b, a) ? Truth::kNo : Truth::kUnknown;
}
Truth opposite(Truth a) { return a == Truth::kUnknown ? a : a == Truth::kYes ? Truth::kNo : Truth::kYes; }

/// The interpreter of one form.
class Interpreter {
 public:
  Interpreter(const LoopForm& form, std::vector<std::optional<SizeFractions>> elements,
              std::vector<Shape> shapes)
      : form_(form), dag_(form.dag), elements_(std::move(elements)), shapes_(std::move(shapes)) {}

  std::optional<SizeFractions> run(const Shape& result) {
    std::vector<Fraction> out(static_cast<std::size_t>(element_count(result)), Fraction(0));
    if (!form_.checks.empty() || !are_constant(form_.extents)) return std::nullopt;
    const Shape strides = row_major_strides(result);
    for (const Region& region : form_.regions) {
      for_each(region.box, [&] {
        const Known value = final_value(region.root);
        if (!value) return false;
        Dim at = 0;
        for (std::size_t axis = 0; axis < form_.store.size(); ++axis) {
          const std::optional<Dim> coordinate = index(form_.store[axis]);
          if (!coordinate) return false;
          at += *coordinate * strides[axis];
        }
        out[at] = *value;
        return true;
      });
    }
    return unknown_ ? std::nullopt : with_one_divisor(out);
  }

 private:
  static std::optional<SizeFractions> with_one_divisor(const std::vector<Fraction>& elements) {
    SizeFractions out;
    for (const Fraction& element : elements) out.divisor = std::lcm(out.divisor, element.under);
    for (const Fraction& element : elements) {
      // A number that is exact is not the nearest to itself of another divisor.
      if (element.is_exact() != Fraction(1, out.divisor).is_exact()) return std::nullopt;
      out.elements.push_back(element.over * (out.divisor / element.under));
    }
    return out;
  }

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

  static Known combined(Combine how, const Fraction& a, const Fraction& b, ElementType type) {
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

  std::optional<Dim> index(const Index& index) {
    Dim sum = index.constant();
    for (const Index::Term& term : index.terms()) {
      const std::optional<Dim> atom = part(term.atom);
      if (!atom) return std::nullopt;
      sum += term.coefficient * *atom;
    }
    return sum;
  }

  std::optional<Dim> part(const IndexAtom& atom) {
    if (atom.kind == IndexAtom::Kind::kAxis) return position_[atom.axis];
    if (atom.kind == IndexAtom::Kind::kLoaded) {
      const Known loaded = value(atom.axis);
      return loaded ? std::optional(loaded->over) : std::nullopt;
    }
    const std::optional<Dim> inner = index(*atom.inner);
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
      const std::optional<Dim> coordinate = index(node.index[axis]);
      if (!coordinate) return std::nullopt;
      at += *coordinate * strides[axis];
    }
    const SizeFractions& known = *elements_[operand];
    if (!at.is_constant() || at < 0 || at >= known.elements.size()) return std::nullopt;
    return Fraction(known.elements[at], known.divisor);
  }

  Known value(int id) {
    const ScalarNode& node = dag_[id];
    switch (node.op) {
      case ScalarOp::kLoad:
        return loaded(node);
      case ScalarOp::kConstant:
        return is_float(node.type) ? of_real(node.constant.real) : Known(node.constant.integer);
      case ScalarOp::kIota: {
        const std::optional<Dim> position = index(node.index[0]);
        return position ? Known(*position) : std::nullopt;
      }
      case ScalarOp::kAccumulator:
        return accumulators_.at(static_cast<std::size_t>(node.operand));
      default:
        break;
    }
    if (node.op == ScalarOp::kSelect) {
      const Known which = value(node.arguments[0]);
      if (!which) return std::nullopt;
      return value(node.arguments[which->over == 1 ? 1 : 2]);
    }
    std::vector<Fraction> arguments;
    for (const int argument : node.arguments) {
      const Known known = value(argument);
      if (!known) return std::nullopt;
      arguments.push_back(*known);
    }
    const ElementType from = dag_.type(node.arguments[0]);
    return arguments.size() == 1 ? unary(node.op, arguments[0], from, node.type)
                                 : binary(node.op, arguments[0], arguments[1], from);
  }

  static Known unary(ScalarOp op, const Fraction& a, ElementType from, ElementType to) {
    if (is_float(from)) return unary_of_floats(op, a, from, to);
    switch (op) {
      case ScalarOp::kRound:
        return a;
      case ScalarOp::kCast:
        if (is_float(to)) return holds_fractions(to) ? limited(a) : std::nullopt;
        return to == ElementType::kBool ? truth(opposite(are_equal(a.over, 0))) : limited(a.over, to);
      case ScalarOp::kNeg:
        return limited(-a.over, from);
      case ScalarOp::kAbs:
        if (always_less_equal(0, a.over)) return a;
        return always_less_equal(a.over, 0) ? limited(-a.over, from) : std::nullopt;
      case ScalarOp::kLogicalNot:
        return Fraction(1 - a.over);
      default:
        return std::nullopt;
    }
  }

  static bool holds_fractions(ElementType type) {
    return type == ElementType::kFloat32 || type == ElementType::kFloat64;
  }

  static Known unary_of_floats(ScalarOp op, const Fraction& a, ElementType from, ElementType to) {
    if (!holds_fractions(from)) return std::nullopt;
    // Rounding is away from where formulas are known to divide.
    const bool is_positive = always_less_equal(0, a.over), is_negative = always_less_equal(a.over, 0);
    switch (op) {
      case ScalarOp::kRound:
        return a;
      case ScalarOp::kCast:
        if (is_float(to)) return a.is_exact() && holds_fractions(to) ? Known(a) : std::nullopt;
        if (to == ElementType::kBool) return truth(opposite(are_equal(a.over, 0)));
        if (is_positive) return limited(floor_div(a.over, a.under), to);
        return is_negative ? limited(ceil_div(a.over, a.under), to) : std::nullopt;
      case ScalarOp::kFloor:
        return Known(floor_div(a.over, a.under));
      case ScalarOp::kTrunc:
        if (is_positive) return Known(floor_div(a.over, a.under));
        return is_negative ? Known(ceil_div(a.over, a.under)) : std::nullopt;
      case ScalarOp::kCeil:
        return Known(ceil_div(a.over, a.under));
      case ScalarOp::kRoundHalfEven:
        return a.under == 1 ? Known(a) : std::nullopt;
      case ScalarOp::kNeg:
        return Fraction(-a.over, a.under);
      case ScalarOp::kAbs:
        if (is_positive) return Known(a);
        return is_negative ? Known(Fraction(-a.over, a.under)) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  static Known binary(ScalarOp op, const Fraction& a, const Fraction& b, ElementType type) {
    if (is_float(type)) {
      return a.is_exact() && b.is_exact() && holds_fractions(type) ? binary_of_floats(op, a, b)
                                                                   : std::nullopt;
    }
    return binary_of_integers(op, a.over, b.over, type);
  }

  static Known compared(ScalarOp op, Dim a, Dim b) {
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
      default:
        return std::nullopt;
    }
  }

  static Known binary_of_floats(ScalarOp op, const Fraction& a, const Fraction& b) {
    const std::int64_t under = std::max(a.under, b.under);  // powers of two
    const Dim x = a.over * (under / a.under), y = b.over * (under / b.under);
    switch (op) {
      case ScalarOp::kAdd:
        return limited(Fraction(x + y, under));
      case ScalarOp::kSub:
        return limited(Fraction(x - y, under));
      case ScalarOp::kMul:
        return limited(Fraction(a.over * b.over, a.under * b.under));
      case ScalarOp::kMin:
        return Fraction(min(x, y), under);
      case ScalarOp::kMax:
        return Fraction(max(x, y), under);
      case ScalarOp::kDiv: {
        if (!always_less(0, y)) return std::nullopt;
        if (const std::optional<Dim> quotient = exact_quotient(x, y)) return limited(Fraction(*quotient));
        return y.is_constant() ? limited(Fraction(x, y.constant())) : std::nullopt;
      }
      default:
        return compared(op, x, y);
    }
  }

  static Known binary_of_integers(ScalarOp op, Dim a, Dim b, ElementType type) {
    switch (op) {
      case ScalarOp::kLogicalAnd:
        return Fraction(a == 1 && b == 1 ? 1 : 0);
      case ScalarOp::kLogicalOr:
        return Fraction(a == 1 || b == 1 ? 1 : 0);
      case ScalarOp::kLogicalXor:
        return Fraction(a != b ? 1 : 0);
      case ScalarOp::kAdd:
        return limited(a + b, type);
      case ScalarOp::kSub:
        return limited(a - b, type);
      case ScalarOp::kMul:
        return limited(a * b, type);
      case ScalarOp::kMin:
        return Known(min(a, b));
      case ScalarOp::kMax:
        return Known(max(a, b));
      case ScalarOp::kDiv:
        // Exact where a formula divides; else rounded towards zero.
        if (!always_less(0, b) && !(a.is_constant() && b.is_constant() && b != 0)) return std::nullopt;
        if (b.is_constant() && !a.is_constant() && always_less_equal(a, 0))
          return limited(-floor_div(-a, b), type);
        return limited(a / b, type);
      case ScalarOp::kMod:
        // The remainder of numbers takes the sign of the divisor.
        if (!always_less(0, b)) return std::nullopt;
        if (b.is_constant() && !a.is_constant()) return limited(a - floor_div(a, b) * b, type);
        if (always_less_equal(0, a)) return always_less(a, b) ? Known(a) : limited(a % b, type);
        return always_less(a, 0) && always_less_equal(-b, a) ? limited(a + b, type) : std::nullopt;
      default:
        return compared(op, a, b);
    }
  }

  const LoopForm& form_;
  const Dag& dag_;
  std::vector<std::optional<SizeFractions>> elements_;
  std::vector<Shape> shapes_;
  std::vector<Dim> position_;
  std::vector<Fraction> accumulators_;
  bool unknown_ = false;
};

/// Elements of a value that are known as numbers or formulas. nullopt: they are not, or too many.
std::optional<SizeFractions> known_elements(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.sizes) return SizeFractions{*value.sizes};
  if (value.fractions) return value.fractions;
  const Tensor* tensor = graph.constant(id);
  if (!tensor || tensor->count() > kMostElements) return std::nullopt;
  if (!is_float(tensor->element())) return SizeFractions{shape_of(tensor->ints())};
  SizeFractions known{{}, 1 << 24};  // every fraction of a constant is exact with it, or too fine
  for (std::int64_t i = 0; i < tensor->count(); ++i) {
    const Known real = of_real(tensor->real_at(i));
    if (!real) return std::nullopt;
    known.elements.push_back(real->over * (known.divisor / real->under));
  }
  return known;
}

}  // namespace

std::optional<Shape> known_integers(const Graph& graph, ValueId value) {
  const std::optional<SizeFractions> known = known_elements(graph, value);
  if (!known) return std::nullopt;
  Shape out;
  for (const Dim element : known->elements) {
    const Fraction number(element, known->divisor);
    if (number.under != 1) return std::nullopt;
    out.push_back(number.over);
  }
  return out;
}

std::optional<SizeFractions> evaluate_sizes(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.op->lower || node.results.empty() || !node.results[0].valid()) return std::nullopt;
  const TensorType& result = graph.value(node.results[0]).type;
  if (!are_constant(result.shape) || result.count() > kMostElements) return std::nullopt;
  std::vector<std::optional<SizeFractions>> elements;
  std::vector<Shape> shapes;
  bool has_formula = false;
  for (const ValueId operand : node.operands) {
    elements.push_back(operand.valid() ? known_elements(graph, operand) : std::nullopt);
    shapes.push_back(operand.valid() ? graph.value(operand).type.shape : Shape{});
    has_formula =
        has_formula || (operand.valid() && (graph.value(operand).sizes || graph.value(operand).fractions));
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
