// QuantizeLinear and DequantizeLinear move through data movement, maxima and bounds, each towards the other,
// and where they meet nothing is left of them.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/loops/scalar_op.h"
#include "passes/rules/quantised.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Tensor;
using ir::ValueId;

// Meeting ---------------------------------------------------------------------------------------------------

/// Equal scales and equal zero points, one for all elements.
bool same_parameters(const Match& match, const Quantised& a, const Quantised& b) {
  if (a.axis >= 0 || b.axis >= 0 || a.factor(0) != b.factor(0)) return false;
  return zero_of(match.graph(), a) == zero_of(match.graph(), b);
}

/// rint(f32((x - z) * s) / s) is x - z below 2^16: products and quotients are off by less than a half.
std::string guard_meet(const Match& match) {
  const auto q = parameters_of(match.graph(), match.node("q")), d = quantised(match, "d");
  if (!q || !d) return "a scale or zero point is computed, blocked or out of range";
  if (match.graph().value(d->operand).type != match.result_type()) return "the types differ";
  if (ir::bits_of(element_of(match, *d)) > 16) return "integers of more than 16 bits are rounded";
  return same_parameters(match, *q, *d) ? "" : "scales or zero points differ";
}

ValueId build_meet(Rewriter& rewriter) { return quantised(rewriter, "d")->operand; }

/// Whether every x <= bound has the least result, or every x >= bound the greatest.
bool saturates(const Match& match, const Quantised& q, double bound, bool below) {
  const ElementType type = match.result_type().element;
  const double zero = zero_of(match.graph(), q);
  const double step = std::nearbyint(static_cast<float>(bound / q.factor(0))) + zero;
  return below ? step <= static_cast<double>(ir::integer_lowest(type))
               : step >= static_cast<double>(ir::integer_highest(type));
}

std::string guard_saturation(const Match& match) {
  const auto q = parameters_of(match.graph(), match.node("q"));
  if (!q || q->axis >= 0) return "several scales, or unknown ones";
  const auto bound = [&](std::string_view name, double otherwise) {
    return match.has(name) ? match.constant(name).real_at(0) : otherwise;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const bool relu = match.is("f", "Relu");
  const bool low = saturates(match, *q, bound("low", relu ? 0 : -infinity), true);
  const bool high = saturates(match, *q, bound("high", infinity), false);
  return low && high ? "" : "integers remain beyond the bounds";
}

ValueId build_saturation(Rewriter& rewriter) {
  std::vector<ValueId> operands = rewriter.node("q").operands;
  operands[0] = rewriter.value("x");
  return rewriter.emit("QuantizeLinear", std::move(operands), rewriter.attributes("q"));
}

// Moving ----------------------------------------------------------------------------------------------------

/// What only moves elements of operand 0, or picks the greatest of several.
Pattern movement(const Pattern& x, bool maxima) {
  std::vector<std::string_view> names = {"Transpose",    "Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                         "Slice",        "Gather",  "Expand",  "Tile",      "DepthToSpace",
                                         "SpaceToDepth", "Resize",  "Pad"};
  if (maxima) names.push_back("MaxPool");
  return Pattern::node(
      std::move(names),
      {x, any("a").optional(), any("b").optional(), any("c").optional(), any("d").optional()}, "move");
}

/// Reasons that lie in what moves.
std::string unless_it_moves(const Match& match) {
  const bool resizes = match.is("move", "Resize");
  if (resizes && match.attributes("move").string_of("mode") != "nearest") return "elements are interpolated";
  if (resizes && match.attributes("move").string_of("coordinate_transformation_mode") == "tf_crop_and_resize")
    return "elements outside are extrapolated";
  return "";
}

/// The integer that a Pad of zeros or of the constant "b" pads with; nullopt: "b" is computed.
std::optional<double> padding_step(const Match& match, const Quantised& q) {
  const double zero = zero_of(match.graph(), q);
  if (!match.has("b")) return zero;
  const Tensor* value = match.graph().constant(match.value("b"));
  if (!value) return std::nullopt;
  return std::nearbyint(static_cast<float>(value->real_at(0) / q.factor(0))) + zero;
}

std::vector<ValueId> moved_operands(Rewriter& rewriter, const Quantised& q, ValueId x) {
  std::vector<ValueId> operands = rewriter.node("move").operands;
  operands[0] = x;
  if (!rewriter.is("move", "Pad")) return operands;
  const ElementType type = rewriter.type_of(x).element;
  const ir::Scalar step =
      ir::cast(ir::Scalar::of_real(ElementType::kFloat32, *padding_step(rewriter, q)), type);
  operands.resize(std::max<std::size_t>(operands.size(), 3));
  operands[2] = rewriter.add_constant(Tensor::scalar(step));
  return operands;
}

/// A convolution takes the zeros itself (rules/weights.cc).
bool pads_a_convolution(const Match& match) {
  const std::vector<ir::Use>& uses = match.graph().value(match.result()).uses;
  const bool zeros = !match.has("b") || (match.graph().constant(match.value("b")) &&
                                         all_equal(*match.graph().constant(match.value("b")), 0));
  return zeros && uses.size() == 1 && uses[0].node.valid() &&
         is_operator(match.graph().node(uses[0].node), "Conv");
}

std::string guard_dequantise_pad(const Match& match, const Quantised& q) {
  if (pads_a_convolution(match)) return "the convolution takes the padding";
  const auto step = padding_step(match, q);
  if (!step) return "the padding is computed";
  const double zero = zero_of(match.graph(), q);
  const double wanted = match.has("b") ? match.graph().constant(match.value("b"))->real_at(0) : 0;
  const ElementType type = element_of(match, q);
  const bool in_range = *step >= static_cast<double>(ir::integer_lowest(type)) &&
                        *step <= static_cast<double>(ir::integer_highest(type));
  const bool is_step = static_cast<double>(static_cast<float>((*step - zero) * q.factor(0))) == wanted;
  return in_range && is_step ? "" : "the padding is no multiple of the scale";
}

std::string guard_dequantise(const Match& match) {
  const auto q = quantised(match, "x");
  if (!q) return "a scale or zero point is computed, blocked or out of range";
  if (match.is("move", "MaxPool") && !is_short(element_of(match, *q)))
    return "the maximum of integers of other than 8 or 16 bits";
  if (q->axis >= 0 && !match.is("move", "Transpose")) return "several scales";
  if (match.is("move", "Pad")) return guard_dequantise_pad(match, *q);
  return unless_it_moves(match);
}

ValueId build_dequantise(Rewriter& rewriter) {
  const Quantised q = *quantised(rewriter, "x");
  const std::string_view name = rewriter.node("move").op->name;
  const ValueId moved =
      rewriter.emit(name, moved_operands(rewriter, q, q.operand), rewriter.attributes("move"));
  ir::Attributes attributes = rewriter.attributes("x");
  if (q.axis >= 0) {
    const auto& perm = rewriter.attributes("move").ints_of("perm");
    const auto to = std::find(perm.begin(), perm.end(), q.axis) - perm.begin();
    attributes.set("axis", static_cast<std::int64_t>(to));
  }
  return rewriter.emit("DequantizeLinear", {moved, q.scale, q.zero}, std::move(attributes));
}

std::string guard_quantise(const Match& match) {
  const auto q = parameters_of(match.graph(), match.node("q"));
  if (!q) return "a scale or zero point is computed, blocked or out of range";
  if (q->axis >= 0) return "several scales";
  const std::int64_t before = match.type("x").count();
  if (before > match.result_type().count()) return "more elements would be quantised";
  if (match.is("move", "Pad") && !padding_step(match, *q)) return "the padding is computed";
  return unless_it_moves(match);
}

ValueId quantised_as_root(Rewriter& rewriter, ValueId x) {
  std::vector<ValueId> operands = rewriter.node("q").operands;
  operands[0] = x;
  return rewriter.emit("QuantizeLinear", std::move(operands), rewriter.attributes("q"));
}

ValueId build_quantise(Rewriter& rewriter) {
  const ValueId integers = quantised_as_root(rewriter, rewriter.value("x"));
  const Quantised q = *parameters_of(rewriter.graph(), rewriter.node("q"));
  return rewriter.emit(rewriter.node("move").op->name, moved_operands(rewriter, q, integers),
                       rewriter.attributes("move"));
}

std::string guard_quantise_concat(const Match& match) {
  const auto q = parameters_of(match.graph(), match.node("q"));
  return q && q->axis < 0 ? "" : "several scales, or unknown ones";
}

ValueId build_quantise_concat(Rewriter& rewriter) {
  std::vector<ValueId> parts = rewriter.node("move").operands;
  for (ValueId& part : parts) part = quantised_as_root(rewriter, part);
  return rewriter.emit("Concat", std::move(parts), rewriter.attributes("move"));
}

/// The operands of a Concat that all are integers of the same scale and zero point; empty: they are not.
std::vector<Quantised> quantised_parts(const Match& match) {
  std::vector<Quantised> parts;
  for (const ValueId id : match.node("move").operands) {
    const ir::NodeId producer = match.graph().value(id).producer;
    if (!producer.valid() || !is_operator(match.graph().node(producer), "DequantizeLinear")) return {};
    const auto part = parameters_of(match.graph(), match.graph().node(producer));
    if (!part) return {};
    parts.push_back(*part);
    if (element_of(match, *part) != element_of(match, parts[0])) return {};
    if (!same_parameters(match, *part, parts[0])) return {};
  }
  return parts;
}

std::string guard_dequantise_concat(const Match& match) {
  if (match.result_type().element != ElementType::kFloat32) return "not of float32";
  return quantised_parts(match).empty() ? "operands have other scales or zero points" : "";
}

ValueId build_dequantise_concat(Rewriter& rewriter) {
  const std::vector<Quantised> parts = quantised_parts(rewriter);
  std::vector<ValueId> integers;
  for (const Quantised& part : parts) integers.push_back(part.operand);
  const ValueId joined = rewriter.emit("Concat", std::move(integers), rewriter.attributes("move"));
  return rewriter.emit("DequantizeLinear", {joined, parts[0].scale, parts[0].zero});
}

}  // namespace

const RuleTable& quantised_movement_rules() {
  static const RuleTable rules = [] {
    const auto integers = [](std::string_view name) { return op_of_any("DequantizeLinear", name).shared(); };
    const auto quantise = [](const Pattern& x) {
      return op("QuantizeLinear", {x, constant("scale"), constant("zero").optional()}, "q");
    };
    const Pattern x = any("x");
    const Pattern clip = op("Clip", {x, constant("low").optional(), constant("high").optional()}, "f");
    return RuleTable{
        // Q(DQ(x)) -> x, with the same scale and zero point
        {"quantize-of-dequantize", Tier::kExact, quantise(integers("d")), guard_meet, build_meet, true},
        // Q(Relu(x)) -> Q(x), when zero is the least integer
        {"relu-into-saturation", Tier::kExact, quantise(op("Relu", {x}, "f")), guard_saturation,
         build_saturation, true},
        // Q(Clip(x, a, b)) -> Q(x), when integers end within the bounds
        {"clip-into-saturation", Tier::kExact, quantise(clip), guard_saturation, build_saturation, true},
        // M(DQ(x)) -> DQ(M(x)), M moves elements or picks the greatest
        {"dequantize-after-movement", Tier::kExact, movement(integers("x"), true), guard_dequantise,
         build_dequantise, true},
        // Q(M(x)) -> M(Q(x))
        {"quantize-before-movement", Tier::kExact, quantise(movement(x, false)), guard_quantise,
         build_quantise, true},
        // Concat(DQ(x), DQ(y)) -> DQ(Concat(x, y)), of the same scale and zero point
        {"dequantize-after-concat", Tier::kExact, op_of_any("Concat", "move"), guard_dequantise_concat,
         build_dequantise_concat, true},
        // Q(Concat(x, y)) -> Concat(Q(x), Q(y))
        {"quantize-before-concat", Tier::kExact, quantise(op_of_any("Concat", "move")), guard_quantise_concat,
         build_quantise_concat, true},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes
