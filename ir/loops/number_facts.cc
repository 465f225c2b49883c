#include "ir/loops/number_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gcompile::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double within_float(double bound) {
  return bound < static_cast<double>(std::numeric_limits<float>::max()) ? bound : kInfinity;
}

bool is_small_integer(ElementType type) { return is_integer(type) && bits_of(type) == 8; }

class Deduction {
 public:
  explicit Deduction(const std::vector<NumberFacts>& facts) : facts_(facts) {}

  NumberFacts of(const ScalarNode& node) const {
    if (!is_float(node.type))
      return {true, true, std::ldexp(1.0, bits_of(node.type) - (is_signed(node.type) ? 1 : 0))};
    if (is_small_float(node.type)) return {};  // a cast makes NaN of what is too large
    switch (node.op) {
      case ScalarOp::kCast:
      case ScalarOp::kRound:
      case ScalarOp::kNeg:
      case ScalarOp::kAbs:
        return at(node, 0);
      case ScalarOp::kRoundHalfEven:
      case ScalarOp::kFloor:
      case ScalarOp::kCeil:
      case ScalarOp::kTrunc:
        return {at(node, 0).number, true, at(node, 0).bound + 1};
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
        return sum(at(node, 0), at(node, 1));
      case ScalarOp::kMul:
        return product(at(node, 0), at(node, 1));
      case ScalarOp::kMin:
      case ScalarOp::kMax:
        return choice(at(node, 0), at(node, 1));
      case ScalarOp::kSelect:
        return choice(at(node, 1), at(node, 2));
      case ScalarOp::kSigmoid:
      case ScalarOp::kTanh:
      case ScalarOp::kErf:
        return {at(node, 0).number, false, 1};
      default:
        return {};
    }
  }

 private:
  const NumberFacts& at(const ScalarNode& node, std::size_t i) const { return facts_[node.arguments[i]]; }
  /// Infinity less infinity is NaN.
  static NumberFacts sum(const NumberFacts& a, const NumberFacts& b) {
    const bool finite = a.bound < kInfinity || b.bound < kInfinity;
    return {a.number && b.number && finite, a.whole && b.whole, within_float(a.bound + b.bound)};
  }
  /// Infinity times 0 is NaN.
  static NumberFacts product(const NumberFacts& a, const NumberFacts& b) {
    const bool finite = a.bound < kInfinity && b.bound < kInfinity;
    return {a.number && b.number && finite, a.whole && b.whole,
            finite ? within_float(a.bound * b.bound) : kInfinity};
  }
  static NumberFacts choice(const NumberFacts& a, const NumberFacts& b) {
    return {a.number && b.number, a.whole && b.whole, std::max(a.bound, b.bound)};
  }

  const std::vector<NumberFacts>& facts_;
};

NumberFacts of_constant(const Scalar& value) {
  const double v = value.as_double();
  return {!std::isnan(v), v == std::trunc(v), std::abs(v)};
}

}  // namespace

std::optional<double> bound_of(const Tensor& tensor) {
  double bound = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double value = tensor.real_at(i);
    if (!std::isfinite(value)) return std::nullopt;
    bound = std::max(bound, std::abs(value));
  }
  return bound;
}

std::vector<NumberFacts> number_facts(
    const Dag& dag, const std::function<std::optional<double>(const ScalarNode& load)>& bound_of_load) {
  std::vector<NumberFacts> facts;
  const Deduction deduction(facts);
  for (const ScalarNode& node : dag.nodes()) {
    if (node.op == ScalarOp::kConstant) {
      facts.push_back(of_constant(node.constant));
    } else if (node.op == ScalarOp::kLoad && is_float(node.type)) {
      const auto bound = bound_of_load(node);
      facts.push_back(bound ? NumberFacts{true, false, *bound} : NumberFacts{});
    } else if (node.op == ScalarOp::kAccumulator && is_float(node.type)) {
      facts.emplace_back();
    } else {
      facts.push_back(deduction.of(node));
    }
  }
  return facts;
}

int unrounded(const Dag& dag, int id) { return dag[id].op == ScalarOp::kRound ? dag[id].arguments[0] : id; }

namespace {

/// What a kMin or kMax with a constant limits, where rounding, adding `shift` and saturating limit as much.
int unclamped(const Dag& dag, int id, ElementType type, double shift) {
  const double low = static_cast<double>(integer_lowest(type)) - shift;
  const double high = static_cast<double>(integer_highest(type)) - shift;
  for (;;) {
    const int at = unrounded(dag, id);
    const ScalarNode& node = dag[at];
    if (node.op != ScalarOp::kMin && node.op != ScalarOp::kMax) return id;
    const ScalarNode& limit = dag[node.arguments[1]];
    if (limit.op != ScalarOp::kConstant) return id;
    const double bound = limit.constant.as_double();
    // A bound that is half of one below the end may round to either side.
    if (node.op == ScalarOp::kMin ? !(bound > high - 0.5) : !(bound <= low)) return id;
    id = node.arguments[0];
  }
}

}  // namespace

Arguments Saturation::arguments() const {
  Arguments out;
  if (product) {
    out = {product->word, product->factor};
  } else {
    out = {value};
  }
  if (shift) out.push_back(*shift);
  return out;
}

std::optional<Saturation> saturation_of(const Dag& dag, const std::vector<NumberFacts>& facts, int id,
                                        bool finds_products) {
  const ScalarNode& node = dag[id];
  if (node.op != ScalarOp::kCast || !is_small_integer(node.type)) return std::nullopt;
  const int argument = node.arguments[0];
  const NumberFacts& known = facts[argument];
  if (dag.type(argument) != ElementType::kFloat32 || !known.number || !known.whole) return std::nullopt;
  Saturation out{argument};
  double shift = 0;
  const ScalarNode& sum = dag[unrounded(dag, argument)];
  if (sum.op == ScalarOp::kAdd && dag[sum.arguments[1]].op == ScalarOp::kConstant &&
      facts[sum.arguments[0]].whole) {
    // Float32 holds every sum that lies within the range.
    // Adding 0 makes 0 of -0, and both are the same integer.
    shift = dag[sum.arguments[1]].constant.as_double();
    if (shift == std::trunc(shift) && std::abs(shift) <= 255) {
      out.value = sum.arguments[0];
      if (shift != 0) out.shift = sum.arguments[1];
    }
  }
  const ScalarNode& rounding = dag[unrounded(dag, out.value)];
  if (rounding.op == ScalarOp::kRoundHalfEven) out.value = rounding.arguments[0];
  out.value = unclamped(dag, out.value, node.type, out.shift ? shift : 0);
  out.fits = facts[static_cast<std::size_t>(out.value)].bound < std::ldexp(1.0, 31) - 1024;
  const ScalarNode& product = dag[unrounded(dag, out.value)];
  for (const int i : {0, 1}) {
    if (!finds_products || !out.fits || product.op != ScalarOp::kMul || out.product) continue;
    const ScalarNode& converted = dag[unrounded(dag, product.arguments[static_cast<std::size_t>(i)])];
    if (converted.op != ScalarOp::kCast || dag.type(converted.arguments[0]) != ElementType::kInt32) continue;
    out.product = {converted.arguments[0], product.arguments[static_cast<std::size_t>(1 - i)]};
  }
  return out;
}

}  // namespace gcompile::ir
