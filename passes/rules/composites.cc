// Normalisations spelled out in elementary operators -> the operator that is one stitched kernel. Spellings
// meet first in arithmetic.cc: x ^ 2 is x * x, x ^ 0.5 is Sqrt(x), 1 / x is Reciprocal(x).

#include <algorithm>
#include <cmath>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

/// The axes of a reduction that keeps its dims, sorted; empty when it does not.
Ints kept_axes(const Match& match, std::string_view node, std::string_view axes) {
  if (!match.attributes(node).flag("keepdims")) return {};
  Ints out = normalised(ints_of(match, axes), match.type("x").rank());
  std::sort(out.begin(), out.end());
  return out;
}

/// Whether the axes are the last ones of the operand.
bool are_last(const Ints& axes, int rank) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<std::int64_t>(axes.size() - i)) return false;
  }
  return !axes.empty();
}

// Layer and RMS normalisation -------------------------------------------------------------------------------

std::string guard_epsilon(const Match& match) {
  const Tensor& epsilon = match.constant("epsilon");
  if (epsilon.count() != 1) return "epsilon is not one number";
  const double value = epsilon.real_at(0);
  return value >= 0 && static_cast<double>(static_cast<float>(value)) == value
             ? ""
             : "epsilon is not a number of float32";
}

std::string guard_layer(const Match& match) {
  const Ints axes = kept_axes(match, "variance", "axes2");
  if (!are_last(axes, match.type("x").rank()))
    return "the variance is not taken over the last axes, kept as 1";
  if (match.has("mean") && kept_axes(match, "mean", "axes1") != axes) {
    return "mean and variance are taken over different axes";
  }
  if (!keeps_type(match, "x")) return "the result is broadcast";
  return guard_epsilon(match);
}

/// Scale of 1 over the normalised axes; gamma and beta join by rules of their own.
ValueId emit_normalisation(Rewriter& rewriter, std::string_view name) {
  const Ints axes = kept_axes(rewriter, "variance", "axes2");
  const Shape& x = rewriter.shape("x");
  const ir::TensorType type{rewriter.type("x").element,
                            Shape(x.begin() + static_cast<std::ptrdiff_t>(axes[0]), x.end())};
  ir::Attributes attributes;
  attributes.set("axis", axes[0]);
  attributes.set("epsilon", static_cast<float>(rewriter.constant("epsilon").real_at(0)));
  const ValueId ones = rewriter.add_constant(computed(type, [](std::int64_t) { return 1.0; }));
  return rewriter.emit(name, {rewriter.value("x"), ones}, std::move(attributes));
}

ValueId build_layer(Rewriter& rewriter) { return emit_normalisation(rewriter, "LayerNormalization"); }
ValueId build_rms(Rewriter& rewriter) { return emit_normalisation(rewriter, "RMSNormalization"); }

/// A factor or addend joins when the operator broadcasts it to its operand.
std::string guard_parameter(const Match& match) {
  if (match.shape("g").size() > match.shape("y").size()) return "the parameter enlarges the result";
  return match.type("y") == match.result_type() ? "" : "the parameter enlarges the result";
}

std::string guard_gain(const Match& match) {
  if (!all_equal(match.constant("scale"), 1)) return "there is a scale already";
  return guard_parameter(match);
}

ValueId build_gain(Rewriter& rewriter) {
  return rewriter.emit(rewriter.node("y").op->name, {rewriter.value("x"), rewriter.value("g")},
                       rewriter.attributes("y"));
}

ValueId build_bias(Rewriter& rewriter) {
  return rewriter.emit("LayerNormalization",
                       {rewriter.value("x"), rewriter.value("scale"), rewriter.value("g")},
                       rewriter.attributes("y"));
}

// Softmax ---------------------------------------------------------------------------------------------------

std::string guard_softmax(const Match& match) {
  const Ints axes = kept_axes(match, "max", "axes1");
  if (axes.size() != 1 || kept_axes(match, "sum", "axes2") != axes) {
    return "maximum and sum are not taken over one axis, kept as 1";
  }
  return unless_type_is_kept(match);
}

ValueId build_softmax(Rewriter& rewriter) {
  ir::Attributes attributes;
  attributes.set("axis", kept_axes(rewriter, "max", "axes1")[0]);
  return rewriter.emit("Softmax", {rewriter.value("x")}, std::move(attributes));
}

void add_normalisations(RuleTable& rules) {
  const Tier tier = Tier::kReassociate;
  const Pattern x = any("x");
  const Pattern mean = op("ReduceMean", {x, constant("axes1")}, "mean");
  const Pattern deviation = op("Sub", {x, mean}, "d");
  const auto deviation_of = [](const Pattern& squared) {
    const Pattern variance = op("ReduceMean", {op("Mul", {squared, squared}), constant("axes2")}, "variance");
    return op("Sqrt", {op("Add", {variance, constant("epsilon")})});
  };
  const Pattern layer = deviation_of(any("d")), rms = deviation_of(x);
  // d / sqrt(mean(d * d) + epsilon), d = x - mean(x) -> LayerNormalization(x)
  rules.push_back({"layer-norm", tier, op("Div", {deviation, layer}), guard_layer, build_layer});
  // d * (1 / sqrt(mean(d * d) + epsilon))
  rules.push_back({"layer-norm-by-reciprocal", tier, op("Mul", {deviation, op("Reciprocal", {layer})}),
                   guard_layer, build_layer});
  // x / sqrt(mean(x * x) + epsilon) -> RMSNormalization(x)
  rules.push_back({"rms-norm", tier, op("Div", {x, rms}), guard_layer, build_rms});
  // x * (1 / sqrt(mean(x * x) + epsilon))
  rules.push_back(
      {"rms-norm-by-reciprocal", tier, op("Mul", {x, op("Reciprocal", {rms})}), guard_layer, build_rms});
  // Norm(x, 1) * g -> Norm(x, g)
  rules.push_back({"norm-gain", tier,
                   op("Mul", {one_of({"LayerNormalization", "RMSNormalization"}, {x, constant("scale")}, "y"),
                              constant("g")}),
                   guard_gain, build_gain});
  // LayerNormalization(x, s) + g -> LayerNormalization(x, s, g)
  rules.push_back({"norm-bias", tier,
                   op("Add", {op("LayerNormalization", {x, any("scale")}, "y"), constant("g")}),
                   guard_parameter, build_bias});
}

}  // namespace

const RuleTable& composite_rules() {
  static const RuleTable rules = [] {
    RuleTable table;
    add_normalisations(table);
    const Pattern x = any("x");
    const Pattern max = op("ReduceMax", {x, constant("axes1")}, "max");
    const Pattern power = op("Exp", {op("Sub", {x, max})}, "e");
    // e / sum(e), e = exp(x - max(x)) -> Softmax(x)
    table.push_back({"softmax", Tier::kReassociate,
                     op("Div", {power, op("ReduceSum", {any("e"), constant("axes2")}, "sum")}), guard_softmax,
                     build_softmax});
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes
