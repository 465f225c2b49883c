// Element-wise arithmetic with constants.

#include <cmath>

#include "ir/tensors/constant_range.h"
#include "passes/rules/support.h"

namespace gcompile::passes {

bool is_never_negative(const ir::Graph& graph, ir::ValueId value) {
  std::vector<ir::ValueId> open = {value};
  for (int steps = 0; !open.empty(); ++steps) {
    constexpr int kLimit = 16;
    const ir::ValueId next = open.back();
    open.pop_back();
    if (const ir::Tensor* constant = graph.constant(next)) {
      for (std::int64_t i = 0; i < constant->count(); ++i) {
        if (std::signbit(constant->real_at(i)) && !std::isnan(constant->real_at(i))) return false;
      }
      continue;
    }
    const ir::NodeId producer = graph.value(next).producer;
    const bool is_real = ir::is_float(graph.value(next).type.element);  // integers wrap
    if (!producer.valid() || !is_real || steps == kLimit) return false;
    const ir::Node& node = graph.node(producer);
    const auto is = [&](std::string_view name) { return is_operator(node, name); };
    const bool is_square = is("Mul") && node.operands[0] == node.operands[1];
    if (is_square || is("Exp") || is("Abs") || is("Sigmoid") || is("Softmax") || is("ReduceSumSquare") ||
        is("ReduceL2")) {
      continue;
    }
    if (is("Add") || is("Mul") || is("Max")) {
      open.insert(open.end(), node.operands.begin(), node.operands.end());
    } else if (is("ReduceMean") || is("ReduceSum") || is("Reshape") || is("Cast")) {
      open.push_back(node.operands[0]);
    } else {
      return false;
    }
  }
  return true;
}

namespace {

using ir::Scalar;
using ir::Tensor;
using ir::ValueId;

bool is_real(const Match& match) { return ir::is_float(match.result_type().element); }

// Powers of two ---------------------------------------------------------------------------------------------

/// Whether the number has an exact reciprocal that is a normal number of the type.
bool has_exact_reciprocal(ir::ElementType type, double number) {
  int exponent = 0;
  if (number == 0 || !std::isfinite(number) || std::abs(std::frexp(number, &exponent)) != 0.5) return false;
  const double reciprocal = 1 / number;
  return ir::round_to(type, reciprocal) == reciprocal && std::abs(reciprocal) >= ir::least_normal(type);
}

std::string guard_reciprocal(const Match& match) {
  if (!is_real(match)) return "integers divide with truncation";
  const Tensor& c = match.constant("c");
  for (std::int64_t i = 0; i < c.count(); ++i) {
    if (!has_exact_reciprocal(c.element(), c.real_at(i))) return "a divisor is not a power of two";
  }
  return "";
}

ValueId build_reciprocal(Rewriter& rewriter) {
  const Tensor& c = rewriter.constant("c");
  const Tensor factors = computed(c.type(), [&](std::int64_t i) { return 1 / c.real_at(i); });
  return rewriter.emit("Mul", {rewriter.value("x"), rewriter.add_constant(factors, "c")});
}

/// The quotient that a smooth function is taken of: what it rounds differs by a place, which the function
/// leaves as small as it was. What is compared or made an integer behind a division is another matter.
std::string guard_smooth_quotient(const Match& match) {
  if (!is_real(match)) return "integers divide with truncation";
  const Tensor& c = match.constant("c");
  for (std::int64_t i = 0; i < c.count(); ++i) {
    const double number = std::abs(c.real_at(i));
    if (!(number >= 0x1p-20 && number <= 0x1p20)) return "a divisor near the ends of the type's range";
  }
  const std::string reason = unless_type_is_kept(match);
  return reason.empty() ? unless_decisions_stay(match) : reason;
}

ValueId build_smooth_product(Rewriter& rewriter) {
  return rewriter.emit("Erf", {build_reciprocal(rewriter)});
}

std::string guard_numerator(const Match& match) {
  if (!is_real(match)) return "integers divide with truncation";
  return all_equal(match.constant("c"), 1) && keeps_type(match, "x") ? "" : "the numerator is not 1";
}

ValueId build_numerator(Rewriter& rewriter) { return rewriter.emit("Reciprocal", {rewriter.value("x")}); }

// Powers ----------------------------------------------------------------------------------------------------

std::string guard_exponent(const Match& match, double exponent) {
  if (match.constant("c").count() != 1 || !all_equal(match.constant("c"), exponent))
    return "another exponent";
  return unless_type_is_kept(match);
}
std::string guard_square(const Match& match) { return guard_exponent(match, 2); }
std::string guard_root(const Match& match) {
  if (!is_real(match)) return "the base is an integer";
  const std::string reason = guard_exponent(match, 0.5);
  if (!reason.empty()) return reason;
  return is_never_negative(match.graph(), match.value("x")) ? "" : "the base may be -infinity or -0";
}

ValueId build_square(Rewriter& rewriter) {
  return rewriter.emit("Mul", {rewriter.value("x"), rewriter.value("x")});
}
ValueId build_root(Rewriter& rewriter) { return rewriter.emit("Sqrt", {rewriter.value("x")}); }

// Constants meet --------------------------------------------------------------------------------------------

/// Elements of a + b or a * b with broadcasting, in double, rounded once; integers wrap.
Tensor combined(const Match& match) {
  ir::Graph scratch;
  const ValueId a = scratch.add_constant(match.constant("a")), b = scratch.add_constant(match.constant("b"));
  const ir::NodeId node = scratch.add_node(*match.graph().node(match.root()).op, {a, b}, {}, 1);
  ir::infer_node(scratch, node);
  return ir::evaluate_node(scratch, node, {scratch.constant(a), scratch.constant(b)}).at(0);
}

enum class Meet { kSum, kProduct };

bool keeps_range(const Match& match, Meet meet) {
  const Tensor &a = match.constant("a"), &b = match.constant("b"), both = combined(match);
  ir::ProductRange products(both.element());
  for (std::int64_t i = 0; i < both.count(); ++i) {
    const double left = a.real_at(position_under(a.shape(), both.shape(), i));
    const double right = b.real_at(position_under(b.shape(), both.shape(), i));
    if (meet == Meet::kProduct) products.add(both.real_at(i), left, right);
    if (meet == Meet::kSum && !ir::keeps_sum(both.real_at(i), left, right)) return false;
  }
  return products.is_kept();
}

/// Integers wrap, so neither their order nor their range matters.
std::string guard_meet(const Match& match, Meet meet) {
  if (match.shape("inner") != match.result_type().shape) return "the outer constant enlarges the result";
  if (!is_real(match)) return "";
  return keeps_range(match, meet) ? unless_decisions_stay(match) : "the constants together leave their range";
}
std::string guard_sum(const Match& match) { return guard_meet(match, Meet::kSum); }
std::string guard_product(const Match& match) { return guard_meet(match, Meet::kProduct); }

ValueId build_meet(Rewriter& rewriter) {
  const bool larger = rewriter.type("b").bytes() > rewriter.type("a").bytes();
  return rewriter.emit(rewriter.graph().node(rewriter.root()).op->name,
                       {rewriter.value("x"), rewriter.add_constant(combined(rewriter), larger ? "b" : "a")});
}

std::string guard_negated(const Match& match) {
  return ir::is_computable(match.result_type().element) ? "" : "nothing computes in this type";
}

/// x - c and x + (-c) are the same number for every x, rounded once; integers wrap.
ValueId build_negated(Rewriter& rewriter) {
  return rewriter.emit("Add",
                       {rewriter.value("x"), rewriter.add_constant(negated(rewriter.constant("c")), "c")});
}

// Clamps: a lattice, so they merge exactly ------------------------------------------------------------------

bool greater(const Scalar& a, const Scalar& b) {
  if (ir::is_float(a.type)) return a.real > b.real;
  if (a.type == ir::ElementType::kUInt64) {
    return static_cast<std::uint64_t>(a.integer) > static_cast<std::uint64_t>(b.integer);
  }
  return a.integer > b.integer;
}

/// min(max(x, low), high) with absent bounds. Of equal bounds, which zeros of both signs are, the later one
/// is the result.
struct Clamp {
  std::optional<Scalar> low, high;

  void raise(const Scalar& bound) {
    if (!low || !greater(*low, bound)) low = bound;
    if (high && !greater(*high, bound)) high = bound;
  }
  void lower(const Scalar& bound) {
    if (!high || !greater(bound, *high)) high = bound;
  }
};

Scalar zero_of(ir::ElementType type) {
  return ir::is_float(type) ? Scalar::of_real(type, 0) : Scalar::of_integer(type, 0);
}

/// The bounds that the constants `low` and `high` of the match are; a Relu bound to `relu` has the lower
/// bound 0.
void apply(const Match& match, std::string_view relu, std::string_view low, std::string_view high,
           Clamp& clamp) {
  if (match.has(relu)) clamp.raise(zero_of(match.result_type().element));
  if (match.has(low)) clamp.raise(match.constant(low).at(0));
  if (match.has(high)) clamp.lower(match.constant(high).at(0));
}

bool is_bound(const Match& match, std::string_view name) {
  if (!match.has(name)) return true;
  const Tensor& bound = match.constant(name);
  return bound.count() == 1 && !std::isnan(bound.real_at(0));
}

std::string guard_clamps(const Match& match) {
  for (const std::string_view name : {"low1", "high1", "low2", "high2"}) {
    if (!is_bound(match, name)) return "a bound is not one number";
  }
  return "";
}

ValueId emit_clamp(Rewriter& rewriter, const Clamp& clamp) {
  std::vector<ValueId> operands = {rewriter.value("x"), ValueId{}, ValueId{}};
  if (clamp.low) operands[1] = rewriter.add_constant(Tensor::scalar(*clamp.low));
  if (clamp.high) operands[2] = rewriter.add_constant(Tensor::scalar(*clamp.high));
  while (!operands.back().valid()) operands.pop_back();
  return rewriter.emit("Clip", std::move(operands));
}

ValueId build_clamps(Rewriter& rewriter) {
  Clamp clamp;
  apply(rewriter, "relu1", "low1", "high1", clamp);
  apply(rewriter, "relu2", "low2", "high2", clamp);
  return emit_clamp(rewriter, clamp);
}

std::string guard_bound(const Match& match) {
  const std::string reason = guard_clamps(match);
  return reason.empty() ? unless_type_is_kept(match) : reason;
}

Pattern clip_of(Pattern x, std::string_view low, std::string_view high) {
  return op("Clip", {std::move(x), constant(low).optional(), constant(high).optional()});
}

}  // namespace

const RuleTable& arithmetic_rules() {
  static const RuleTable rules = [] {
    const Pattern x = any("x"), c = constant("c");
    const Pattern relu = op("Relu", {x}, "relu1");
    const Pattern clip = clip_of(x, "low1", "high1");
    RuleTable table = {
        // x - c -> x + (-c)
        {"sub-constant", Tier::kExact, op("Sub", {x, c}), guard_negated, build_negated},
        // x / 2^k -> x * 2^-k
        {"div-by-power-of-two", Tier::kExact, op("Div", {x, c}), guard_reciprocal, build_reciprocal},
        // Erf(x / c) -> Erf(x * (1 / c))
        {"erf-of-quotient", Tier::kReassociate, op("Erf", {op("Div", {x, c}, "quotient")}),
         guard_smooth_quotient, build_smooth_product},
        // 1 / x -> Reciprocal(x)
        {"one-over", Tier::kExact, op("Div", {c, x}), guard_numerator, build_numerator},
        // x ^ 2 -> x * x
        {"pow-two", Tier::kExact, op("Pow", {x, c}), guard_square, build_square},
        // x ^ 0.5 -> Sqrt(x), but for -infinity, whose power is infinity, and -0, whose power is 0
        {"pow-half", Tier::kExact, op("Pow", {x, c}), guard_root, build_root},
        // (x + a) + b -> x + (a + b)
        {"add-constants", Tier::kReassociate,
         op("Add", {op("Add", {x, constant("a")}, "inner"), constant("b")}), guard_sum, build_meet},
        // (x * a) * b -> x * (a * b)
        {"mul-constants", Tier::kReassociate,
         op("Mul", {op("Mul", {x, constant("a")}, "inner"), constant("b")}), guard_product, build_meet},
        // Max(x, c) -> Clip(x, c); Min(x, c) -> Clip(x, , c)
        {"max-to-clip", Tier::kExact, op("Max", {x, constant("low1")}), guard_bound, build_clamps},
        {"min-to-clip", Tier::kExact, op("Min", {x, constant("high1")}), guard_bound, build_clamps},
        // Clip(Clip(x, a, b), c, d) -> Clip(x, max(a, c), min(max(b, c), d)); Relu is Clip(x, 0)
        {"clip-of-clip", Tier::kExact, clip_of(clip, "low2", "high2"), guard_clamps, build_clamps},
        {"clip-of-relu", Tier::kExact, clip_of(relu, "low2", "high2"), guard_clamps, build_clamps},
        {"relu-of-clip", Tier::kExact, op("Relu", {clip}, "relu2"), guard_clamps, build_clamps},
    };
    for (Rule& rule : table) rule.quiet = rule.tier == Tier::kExact;
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes
