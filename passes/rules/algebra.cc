// Element-wise algebra beyond one constant: chains of factors, multiples that are summed, signs, and functions
// that undo each other.

#include <algorithm>
#include <cmath>

#include "ir/ops/support.h"
#include "ir/tensors/constant_range.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

constexpr std::string_view kNotReal = "integers divide with truncation, and sums of them wrap";
constexpr std::string_view kEnlarged = "the constants enlarge the result, or each other";
constexpr std::string_view kLeaveRange = "the constants together leave their range";

bool is_real(const Match& match) { return ir::is_float(match.result_type().element); }

// Chains of factors -----------------------------------------------------------------------------------------

/// What elements are multiplied with, by a product with a constant or a quotient by one.
struct Factor {
  const Tensor& constant;
  bool divides = false;

  double at(const Shape& shape, std::int64_t i) const {
    const double number = constant.real_at(position_under(constant.shape(), shape, i));
    return divides ? 1 / number : number;
  }
};

/// Products of constants, element by element, and whether they can stand for their factors.
struct Products {
  Tensor tensor;
  bool is_kept = false;
};

Products products(const Factor& a, const Factor& b) {
  const ElementType element = a.constant.element();
  const Shape shape = ir::broadcast(a.constant.shape(), b.constant.shape());
  Products out;
  out.tensor = computed({element, shape}, [&](std::int64_t i) { return a.at(shape, i) * b.at(shape, i); });
  ir::ProductRange range(element);
  for (std::int64_t i = 0; i < out.tensor.count(); ++i)
    range.add(out.tensor.real_at(i), a.at(shape, i), b.at(shape, i));
  out.is_kept = range.is_kept();
  return out;
}

/// Whether the constant "a" is what x divides.
bool is_numerator(const Match& match) {
  return match.is("inner", "Div") && match.node("inner").operands[0] == match.value("a");
}

Factor inner_factor(const Match& match) {
  return {match.constant("a"), match.is("inner", "Div") && !is_numerator(match)};
}
Factor outer_factor(const Match& match) { return {match.constant("b"), match.is("outer", "Div")}; }

/// The name of the larger one of two constants, which what is made of both is called by.
std::string_view larger(const Match& match, std::string_view a, std::string_view b) {
  return match.type(b).bytes() > match.type(a).bytes() ? b : a;
}

std::string guard_factors(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  const Products both = products(inner_factor(match), outer_factor(match));
  if (match.shape("inner") != match.result_type().shape ||
      both.tensor.count() > match.constant(larger(match, "a", "b")).count()) {
    return std::string(kEnlarged);
  }
  return both.is_kept ? unless_decisions_stay(match) : std::string(kLeaveRange);
}

ValueId build_factors(Rewriter& rewriter) {
  const ValueId factor = rewriter.add_constant(
      products(inner_factor(rewriter), outer_factor(rewriter)).tensor, larger(rewriter, "a", "b"));
  if (is_numerator(rewriter)) return rewriter.emit("Div", {factor, rewriter.value("x")});
  return rewriter.emit("Mul", {rewriter.value("x"), factor});
}

// (x * a + b) * c -> x * (a * c) + b * c --------------------------------------------------------------------

Products shifted(const Match& match) { return products({match.constant("shift")}, outer_factor(match)); }

std::string guard_affine(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  for (const std::string_view name : {"a", "b", "shift"}) {
    if (!all_finite(match.constant(name))) return "a constant is not finite";
  }
  const Products factors = products(inner_factor(match), outer_factor(match)), shifts = shifted(match);
  const Shape& shape = match.result_type().shape;
  const auto most = [&](std::string_view name) { return match.constant(larger(match, name, "b")).count(); };
  if (match.shape("inner") != shape || match.shape("sum") != shape || factors.tensor.count() > most("a") ||
      shifts.tensor.count() > most("shift")) {
    return std::string(kEnlarged);
  }
  const bool kept = factors.is_kept && shifts.is_kept && is_small_addend(shifts.tensor);
  return kept ? unless_decisions_stay(match) : std::string(kLeaveRange);
}

ValueId build_affine(Rewriter& rewriter) {
  const ValueId factor = rewriter.add_constant(
      products(inner_factor(rewriter), outer_factor(rewriter)).tensor, larger(rewriter, "a", "b"));
  const ValueId shift = rewriter.add_constant(shifted(rewriter).tensor, larger(rewriter, "shift", "b"));
  return rewriter.emit("Add", {rewriter.emit("Mul", {rewriter.value("x"), factor}), shift});
}

// a - x and constants ---------------------------------------------------------------------------------------

/// a + b of (a - x) + b; b - a of b - (x + a) and b - (a - x).
Tensor minuend(const Match& match) {
  const Tensor &a = match.constant("a"), &b = match.constant("b");
  const Shape shape = ir::broadcast(a.shape(), b.shape());
  const double sign = match.is("outer", "Add") ? 1 : -1;
  return computed({a.element(), shape}, [&](std::int64_t i) {
    return sign * a.real_at(position_under(a.shape(), shape, i)) +
           b.real_at(position_under(b.shape(), shape, i));
  });
}

std::string guard_minuend(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  const Tensor together = minuend(match);
  if (match.shape("inner") != match.result_type().shape ||
      together.count() > match.constant(larger(match, "a", "b")).count()) {
    return std::string(kEnlarged);
  }
  const bool kept =
      all_finite(together) || !all_finite(match.constant("a")) || !all_finite(match.constant("b"));
  return kept ? unless_decisions_stay(match) : std::string(kLeaveRange);
}

ValueId build_minuend(Rewriter& rewriter) {
  const ValueId together = rewriter.add_constant(minuend(rewriter), larger(rewriter, "a", "b"));
  const bool adds = rewriter.is("outer", "Sub") && rewriter.is("inner", "Sub");
  if (adds) return rewriter.emit("Add", {rewriter.value("x"), together});
  return rewriter.emit("Sub", {together, rewriter.value("x")});
}

// Sums of multiples -----------------------------------------------------------------------------------------

/// a + b, or a + 1.
Tensor summed(const Match& match) {
  const Tensor& a = match.constant("a");
  const Tensor* b = match.has("b") ? &match.constant("b") : nullptr;
  const Shape shape = b ? ir::broadcast(a.shape(), b->shape()) : a.shape();
  return computed({a.element(), shape}, [&](std::int64_t i) {
    return a.real_at(position_under(a.shape(), shape, i)) +
           (b ? b->real_at(position_under(b->shape(), shape, i)) : 1.0);
  });
}

/// Factors of one sign: others would give no number of an infinite x.
std::string guard_multiples(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  const Tensor sum = summed(match);
  const std::string_view b = match.has("b") ? "b" : "a";
  if (match.shape("inner") != match.result_type().shape || !keeps_type(match, "x") ||
      sum.count() > match.constant(larger(match, "a", b)).count()) {
    return std::string(kEnlarged);
  }
  const bool is_negative =
      match.has("b") && match.constant("b").count() > 0 && match.constant("b").real_at(0) < 0;
  const double sign = is_negative ? -1 : 1;
  for (const std::string_view name : {std::string_view("a"), b}) {
    const Tensor& factors = match.constant(name);
    for (std::int64_t i = 0; i < factors.count(); ++i) {
      if (!(factors.real_at(i) * sign > 0)) return "the factors are not of one sign";
    }
  }
  if (!all_finite(sum)) return std::string(kLeaveRange);
  return unless_decisions_stay(match);
}

ValueId build_multiples(Rewriter& rewriter) {
  const std::string_view name = rewriter.has("b") ? larger(rewriter, "a", "b") : "a";
  return rewriter.emit("Mul", {rewriter.value("x"), rewriter.add_constant(summed(rewriter), name)});
}

std::string guard_twice(const Match& match) { return is_real(match) ? "" : std::string(kNotReal); }

ValueId build_twice(Rewriter& rewriter) {
  const Tensor two = Tensor::scalar(ir::Scalar::of_real(rewriter.result_type().element, 2));
  return rewriter.emit("Mul", {rewriter.value("x"), rewriter.add_constant(two)});
}

/// Below 1 a factor may keep multiples in the range whose sum would leave it.
std::string guard_common_factor(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  if (!keeps_type(match, "x") || !keeps_type(match, "y")) return "one of the summands is broadcast";
  const Tensor& a = match.constant("a");
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (!(std::abs(a.real_at(i)) >= 1) || std::isinf(a.real_at(i)))
      return "a factor is below 1, and keeps multiples in the range";
  }
  return unless_decisions_stay(match);
}

ValueId build_common_factor(Rewriter& rewriter) {
  const std::string_view op = rewriter.graph().node(rewriter.root()).op->name;
  return rewriter.emit("Mul",
                       {rewriter.emit(op, {rewriter.value("x"), rewriter.value("y")}), rewriter.value("a")});
}

// Signs -----------------------------------------------------------------------------------------------------

/// Rows whose replacement is one operator of x and y.
template <const char* kOp>
ValueId build_of_two(Rewriter& rewriter) {
  return rewriter.emit(kOp, {rewriter.value("x"), rewriter.value("y")});
}
constexpr char kAdd[] = "Add", kSub[] = "Sub", kMul[] = "Mul", kDiv[] = "Div", kAbs[] = "Abs",
               kReciprocal[] = "Reciprocal";

template <const char* kOp>
ValueId build_of_one(Rewriter& rewriter) {
  return rewriter.emit(kOp, {rewriter.value("x")});
}

std::string guard_real(const Match& match) { return is_real(match) ? "" : std::string(kNotReal); }

std::string guard_sign(const Match& match) {
  if (is_real(match)) return "";
  if (!ir::is_computable(match.result_type().element)) return "nothing computes in this type";
  return match.is("scaled", "Mul") ? "" : std::string(kNotReal);
}

/// The product or quotient that is bound to "scaled", by the opposite constant.
ValueId build_sign(Rewriter& rewriter) {
  const ir::Node& scaled = rewriter.node("scaled");
  const ValueId c = rewriter.add_constant(negated(rewriter.constant("c")), "c");
  std::vector<ValueId> operands = {rewriter.value("x"), c};
  if (scaled.operands[0] == rewriter.value("c")) std::swap(operands[0], operands[1]);
  return rewriter.emit(scaled.op->name, std::move(operands));
}

std::string guard_difference(const Match& match) {
  return is_real(match) ? unless_decisions_stay(match) : "";
}

/// -(x + c), as (-c) - x.
ValueId build_opposite_minuend(Rewriter& rewriter) {
  const ValueId c = rewriter.add_constant(negated(rewriter.constant("c")), "c");
  return rewriter.emit("Sub", {c, rewriter.value("x")});
}

void add_signs(RuleTable& table) {
  const Tier exact = Tier::kExact;
  const Pattern x = any("x"), y = any("y"), c = constant("c");
  const Pattern minus_x = op("Neg", {x}), minus_y = op("Neg", {y});
  // x + (-y) -> x - y
  table.push_back({"add-of-neg", exact, op("Add", {x, minus_y}), nullptr, build_of_two<kSub>});
  // x - (-y) -> x + y
  table.push_back({"sub-of-neg", exact, op("Sub", {x, minus_y}), nullptr, build_of_two<kAdd>});
  // (-x) * (-y) -> x * y; (-x) / (-y) -> x / y
  table.push_back({"signs-cancel", exact, op("Mul", {minus_x, minus_y}), nullptr, build_of_two<kMul>});
  table.push_back({"signs-cancel", exact, op("Div", {minus_x, minus_y}), guard_real, build_of_two<kDiv>});
  // (-x) * c -> x * (-c), also of quotients
  table.push_back({"neg-into-factor", exact, op("Mul", {minus_x, c}, "scaled"), guard_sign, build_sign});
  table.push_back({"neg-into-factor", exact, op("Div", {minus_x, c}, "scaled"), guard_sign, build_sign});
  table.push_back({"neg-into-factor", exact, op("Div", {c, minus_x}, "scaled"), guard_sign, build_sign});
  // -(x * c) -> x * (-c), also of quotients
  for (const Pattern& scaled :
       {op("Mul", {x, c}, "scaled"), op("Div", {x, c}, "scaled"), op("Div", {c, x}, "scaled")}) {
    table.push_back({"neg-of-multiple", exact, op("Neg", {scaled}), guard_sign, build_sign});
  }
  // Abs(-x) -> Abs(x)
  table.push_back({"abs-of-neg", exact, op("Abs", {minus_x.shared()}), nullptr, build_of_one<kAbs>});
  // -(x + c) -> (-c) - x, but for the sign of zero
  table.push_back({"neg-of-sum", Tier::kReassociate, op("Neg", {op("Add", {x, c})}), guard_difference,
                   build_opposite_minuend});
  // -(y - x) -> x - y, but for the sign of zero
  table.push_back({"neg-of-difference", Tier::kReassociate, op("Neg", {op("Sub", {y, x})}), guard_difference,
                   build_of_two<kSub>});
}

// Functions that undo each other ----------------------------------------------------------------------------

std::string guard_undone(const Match& match) {
  if (!is_never_negative(match.graph(), match.value("x"))) return "the operand may be negative";
  return unless_decisions_stay(match);
}

ValueId build_operand(Rewriter& rewriter) { return rewriter.value("x"); }

std::string guard_magnitude(const Match& match) {
  return is_real(match) ? unless_decisions_stay(match) : std::string(kNotReal);
}

/// Reciprocals of rows are taken once for each, and the quotient would be for each element.
std::string guard_reciprocal(const Match& match) {
  if (match.shape("reciprocal") != match.result_type().shape) return "the reciprocal is of fewer elements";
  return unless_decisions_stay(match);
}

std::string guard_inverse(const Match& match) {
  if (!is_real(match) || match.constant("c").count() != 1 || !all_equal(match.constant("c"), -1))
    return "another power";
  return unless_type_is_kept(match);
}

std::string guard_inverse_root(const Match& match) {
  if (!is_real(match) || match.constant("c").count() != 1 || !all_equal(match.constant("c"), -0.5))
    return "another power";
  const std::string reason = unless_type_is_kept(match);
  return reason.empty() ? guard_undone(match) : reason;
}

ValueId build_inverse_root(Rewriter& rewriter) {
  return rewriter.emit("Reciprocal", {rewriter.emit("Sqrt", {rewriter.value("x")})});
}

void add_functions(RuleTable& table) {
  const Tier tier = Tier::kReassociate;
  const Pattern x = any("x"), y = any("y"), c = constant("c");
  // Exp(Log(x)) -> x where x is never negative
  table.push_back({"exp-of-log", tier, op("Exp", {op("Log", {x})}), guard_undone, build_operand});
  // Sqrt(x) * Sqrt(x) -> x where x is never negative
  table.push_back({"square-of-root", tier, op("Mul", {op("Sqrt", {x}, "root"), any("root")}), guard_undone,
                   build_operand});
  // Sqrt(x * x) -> Abs(x), also where the square leaves the range
  table.push_back(
      {"root-of-square", tier, op("Sqrt", {op("Mul", {x, x})}), guard_magnitude, build_of_one<kAbs>});
  // x * Reciprocal(y) -> x / y
  table.push_back({"mul-by-reciprocal", tier, op("Mul", {x, op("Reciprocal", {y}, "reciprocal")}),
                   guard_reciprocal, build_of_two<kDiv>});
  // x ^ -1 -> Reciprocal(x)
  table.push_back(
      {"pow-minus-one", Tier::kExact, op("Pow", {x, c}), guard_inverse, build_of_one<kReciprocal>, true});
  // x ^ -0.5 -> Reciprocal(Sqrt(x)) where x is never negative
  table.push_back({"pow-minus-half", tier, op("Pow", {x, c}), guard_inverse_root, build_inverse_root, true});
}

}  // namespace

const RuleTable& algebra_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
    const Pattern x = any("x"), y = any("y"), a = constant("a"), b = constant("b");
    const Pattern quotient = op("Div", {x, a}, "inner"), multiple = op("Mul", {x, a}, "inner");
    const Pattern either = one_of({"Mul", "Div"}, {x, a}, "inner");
    const Pattern sum = op("Add", {either, constant("shift")}, "sum");
    RuleTable table = {
        // (x / a) / b -> x * (1 / (a * b)); (x * a) / b -> x * (a / b); (x / a) * b -> x * (b / a)
        {"div-constants", tier, op("Div", {either, b}, "outer"), guard_factors, build_factors},
        {"div-constants", tier, op("Mul", {quotient, b}, "outer"), guard_factors, build_factors},
        // (a / x) * b -> (a * b) / x; (a / x) / b -> (a / b) / x
        {"numerator-constants", tier, op("Mul", {op("Div", {a, x}, "inner"), b}, "outer"), guard_factors,
         build_factors},
        {"numerator-constants", tier, op("Div", {op("Div", {a, x}, "inner"), b}, "outer"), guard_factors,
         build_factors},
        // (x * a + b) * c -> x * (a * c) + b * c; also with quotients in place of products
        {"affine-constants", tier, op("Mul", {sum, b}, "outer"), guard_affine, build_affine},
        {"affine-constants", tier, op("Div", {sum, b}, "outer"), guard_affine, build_affine},
        // (a - x) + b -> (a + b) - x; b - (x + a) -> (b - a) - x; b - (a - x) -> x + (b - a)
        {"minuend-constants", tier, op("Add", {op("Sub", {a, x}, "inner"), b}, "outer"), guard_minuend,
         build_minuend},
        {"minuend-constants", tier, op("Sub", {b, op("Add", {x, a}, "inner")}, "outer"), guard_minuend,
         build_minuend},
        {"minuend-constants", tier, op("Sub", {b, op("Sub", {a, x}, "inner")}, "outer"), guard_minuend,
         build_minuend},
        // x * a + x * b -> x * (a + b)
        {"sum-of-multiples", tier, op("Add", {multiple, op("Mul", {x, b})}), guard_multiples,
         build_multiples},
        // x * a + x -> x * (a + 1)
        {"multiple-and-itself", tier, op("Add", {multiple, x}), guard_multiples, build_multiples},
        // x + x -> x * 2
        {"twice", Tier::kExact, op("Add", {x, x}), guard_twice, build_twice, true},
        // x * a + y * a -> (x + y) * a; x * a - y * a -> (x - y) * a
        {"common-factor", tier, op("Add", {op("Mul", {x, a}), op("Mul", {y, a})}), guard_common_factor,
         build_common_factor},
        {"common-factor", tier, op("Sub", {op("Mul", {x, a}), op("Mul", {y, a})}), guard_common_factor,
         build_common_factor},
    };
    add_signs(table);
    add_functions(table);
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes
