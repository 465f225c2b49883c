// Quantised models as integer networks (DESIGN law 7). A model in QDQ form spells every layer in floats
// between DequantizeLinear and QuantizeLinear; here contractions become exact sums of integers, and both
// operators move through data movement until they meet.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

// What a DequantizeLinear reads ---------------------------------------------------------------------------

struct Quantised {
  ValueId integers, scale, zero;  // zero: invalid when omitted
  const Tensor* factors = nullptr;
  int axis = -1;  // of the scales; -1: one for all
  double factor(std::int64_t i) const { return factors->real_at(axis < 0 ? 0 : i); }
};

bool is_one(const Shape& shape) { return shape.empty() || shape == Shape{1}; }

/// Scales are positive numbers of float32 far from the ends of its range, so that no product of a few of them
/// leaves it.
bool are_plain(const Tensor& scales) {
  for (std::int64_t i = 0; i < scales.count(); ++i) {
    const double scale = scales.real_at(i);
    if (!(scale > 1e-12 && scale < 1e12)) return false;
  }
  return scales.element() == ElementType::kFloat32;
}

/// Operands 1 and 2 of QuantizeLinear and DequantizeLinear, when they are known and not blocked.
std::optional<Quantised> parameters_of(const ir::Graph& graph, const ir::Node& node) {
  Quantised out;
  out.integers = node.operands[0];
  out.scale = node.operands[1];
  if (node.operands.size() > 2) out.zero = node.operands[2];
  out.factors = graph.constant(out.scale);
  if (!out.factors || !are_plain(*out.factors) || (out.zero.valid() && !graph.constant(out.zero)))
    return std::nullopt;
  if (is_one(out.factors->shape())) return out;
  if (node.attributes.int_of("block_size") != 0) return std::nullopt;
  const int rank = graph.value(out.integers).type.rank();
  out.axis = static_cast<int>(node.attributes.int_of("axis"));
  if (out.axis < 0) out.axis += rank;
  return out;
}

std::optional<Quantised> quantised(const Match& match, std::string_view name) {
  if (match.type(name).element != ElementType::kFloat32) return std::nullopt;
  return parameters_of(match.graph(), match.node(name));
}

ElementType element_of(const Match& match, const Quantised& q) {
  return match.graph().value(q.integers).type.element;
}

bool is_byte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUInt8; }

bool zero_is_zero(const ir::Graph& graph, const Quantised& q) {
  return !q.zero.valid() || all_equal(*graph.constant(q.zero), 0);
}

// Contractions --------------------------------------------------------------------------------------------

/// Largest difference of an element and its zero point.
std::int64_t reach(const Match& match, const Quantised& q) {
  const bool symmetric = element_of(match, q) == ElementType::kInt8 && zero_is_zero(match.graph(), q);
  return symmetric ? 128 : 255;
}

/// Sums stay below it, so that a bias below it can be added.
constexpr std::int64_t kMostOfSum = std::int64_t{1} << 30;

/// Both operands are bytes of known scales, the right one a constant scaled along `axis` or as a whole, and
/// sums of `depth` products fit.
std::string guard_products(const Match& match, int axis, std::int64_t depth) {
  const auto x = quantised(match, "x"), w = quantised(match, "w");
  if (!x || !w) return "a scale or zero point is computed, blocked or out of range";
  if (!is_byte(element_of(match, *x)) || !is_byte(element_of(match, *w)))
    return "an operand is not of 8 bits";
  if (!match.graph().constant(w->integers)) return "the weights are computed";
  if (x->axis >= 0) return "the left operand has several scales";
  if (w->axis >= 0 && w->axis != axis) return "the weights have scales along another axis";
  if (depth * reach(match, *x) * reach(match, *w) >= kMostOfSum) return "the sums may not fit into int32";
  return "";
}

std::string guard_conv(const Match& match) {
  const Shape& w = match.shape("w");
  std::int64_t depth = 1;
  for (std::size_t i = 1; i < w.size(); ++i) depth *= w[i];
  return guard_products(match, 0, depth);
}

std::string guard_matmul(const Match& match) {
  const Shape& w = match.shape("w");
  if (w.size() != 2) return "the right operand is no matrix";
  return guard_products(match, 1, w[0]);
}

/// The scales of the sums: f32(scale of x * scale of w), one or one per output channel.
Tensor product_scales(const Quantised& x, const Quantised& w) {
  const ir::TensorType type{ElementType::kFloat32, w.axis < 0 ? Shape{} : Shape{w.factors->count()}};
  return computed(type, [&](std::int64_t i) { return x.factor(0) * w.factor(i); });
}

ValueId dequantised(Rewriter& rewriter, ValueId integers, Tensor scales, std::int64_t axis) {
  ir::Attributes attributes;
  attributes.set("axis", axis);
  return rewriter.emit("DequantizeLinear", {integers, rewriter.add_constant(std::move(scales))},
                       std::move(attributes));
}

/// The elements of a bias that lies along `axis` of `shape`, in units of the scales of the sums; empty: it is
/// no such bias. Scales may differ by what rounding their product twice leaves.
std::vector<std::int64_t> integer_bias(const ir::Graph& graph, const ir::Node& node, const Tensor& scales,
                                       const Shape& shape, int axis) {
  constexpr double kRounding = 4.0 / (1 << 24);
  const auto bias = parameters_of(graph, node);
  if (!bias || !zero_is_zero(graph, *bias)) return {};
  const Tensor* integers = graph.constant(bias->integers);
  if (!integers || integers->element() != ElementType::kInt32) return {};
  const auto values = along_axis(*integers, shape, axis);
  if (!values) return {};
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < values->size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double wanted = scales.real_at(scales.count() == 1 ? 0 : at);
    if (std::abs(bias->factor(at) - wanted) > kRounding * wanted) return {};
    if (std::abs((*values)[i]) >= static_cast<double>(kMostOfSum)) return {};
    out.push_back(static_cast<std::int64_t>((*values)[i]));
  }
  return out;
}

/// sums + bias along `axis`, in int32.
ValueId add_integers(Rewriter& rewriter, ValueId sums, const std::vector<std::int64_t>& bias, int axis) {
  Shape shape(static_cast<std::size_t>(rewriter.type_of(sums).rank() - axis), 1);
  shape[0] = static_cast<std::int64_t>(bias.size());
  Tensor addend(ir::TensorType{ElementType::kInt32, shape});
  for (std::size_t i = 0; i < bias.size(); ++i) {
    addend.set(static_cast<std::int64_t>(i), ir::Scalar::of_integer(ElementType::kInt32, bias[i]));
  }
  return rewriter.emit("Add", {sums, rewriter.add_constant(std::move(addend))});
}

ValueId emit_integer_product(Rewriter& rewriter, std::string_view op, ir::Attributes attributes) {
  const Quantised x = *quantised(rewriter, "x"), w = *quantised(rewriter, "w");
  return rewriter.emit(op, {x.integers, w.integers, x.zero, w.zero}, std::move(attributes));
}

ValueId build_conv(Rewriter& rewriter) {
  ValueId sums = emit_integer_product(rewriter, "ConvInteger", rewriter.attributes("conv"));
  const Tensor scales = product_scales(*quantised(rewriter, "x"), *quantised(rewriter, "w"));
  const ir::Graph& graph = rewriter.graph();
  if (!rewriter.has("b")) return dequantised(rewriter, sums, scales, 1);
  const ir::NodeId producer = graph.value(rewriter.value("b")).producer;
  Shape channels(rewriter.shape("w").size() - 1, 1);
  channels[0] = rewriter.shape("w")[0];
  if (producer.valid() && is_operator(graph.node(producer), "DequantizeLinear")) {
    const auto bias = integer_bias(graph, graph.node(producer), scales, {channels[0]}, 0);
    if (!bias.empty()) return dequantised(rewriter, add_integers(rewriter, sums, bias, 1), scales, 1);
  }
  const ValueId addend = rewriter.emit("Reshape", {rewriter.value("b"), rewriter.add_ints(channels)});
  return rewriter.emit("Add", {dequantised(rewriter, sums, scales, 1), addend});
}

ValueId build_matmul(Rewriter& rewriter) {
  const ValueId sums = emit_integer_product(rewriter, "MatMulInteger", {});
  const Tensor scales = product_scales(*quantised(rewriter, "x"), *quantised(rewriter, "w"));
  return dequantised(rewriter, sums, scales, rewriter.type_of(sums).rank() - 1);
}

/// Which of "p" and "q" are the sums, and which the constant bias.
struct BiasedSums {
  std::string_view sums, bias;
};

std::optional<BiasedSums> biased_sums(const Match& match) {
  for (const BiasedSums names : {BiasedSums{"p", "q"}, BiasedSums{"q", "p"}}) {
    const auto sums = quantised(match, names.sums);
    if (sums && element_of(match, *sums) == ElementType::kInt32 && !match.graph().constant(sums->integers) &&
        zero_is_zero(match.graph(), *sums) && match.type(names.sums) == match.result_type()) {
      return names;
    }
  }
  return std::nullopt;
}

/// The axis along which a bias of the sums may lie.
int bias_axis(const Match& match, const BiasedSums& names) {
  const int axis = quantised(match, names.sums)->axis;
  return axis < 0 ? match.type(names.sums).rank() - 1 : axis;
}

std::vector<std::int64_t> bias_of(const Match& match, const BiasedSums& names) {
  return integer_bias(match.graph(), match.node(names.bias), *quantised(match, names.sums)->factors,
                      match.shape(names.sums), bias_axis(match, names));
}

std::string guard_bias(const Match& match) {
  const auto names = biased_sums(match);
  if (!names) return "neither operand is a sum of integers";
  return bias_of(match, *names).empty() ? "the bias is not a multiple of the scale of the sums" : "";
}

ValueId build_bias(Rewriter& rewriter) {
  const BiasedSums names = *biased_sums(rewriter);
  const Quantised sums = *quantised(rewriter, names.sums);
  const int axis = bias_axis(rewriter, names);
  const ValueId sum = add_integers(rewriter, sums.integers, bias_of(rewriter, names), axis);
  return rewriter.emit("DequantizeLinear", {sum, sums.scale}, rewriter.attributes(names.sums));
}

// Meeting ---------------------------------------------------------------------------------------------------

/// Equal scales and equal zero points, one for all elements.
bool same_parameters(const Match& match, const Quantised& a, const Quantised& b) {
  if (a.axis >= 0 || b.axis >= 0 || a.factor(0) != b.factor(0)) return false;
  const auto zero = [&](const Quantised& q) {
    return q.zero.valid() ? match.graph().constant(q.zero)->int_at(0) : 0;
  };
  return zero(a) == zero(b);
}

/// rint(f32((x - z) * s) / s) is x - z below 2^16: products and quotients are off by less than a half.
std::string guard_meet(const Match& match) {
  const auto q = parameters_of(match.graph(), match.node("q")), d = quantised(match, "d");
  if (!q || !d) return "a scale or zero point is computed, blocked or out of range";
  if (match.graph().value(d->integers).type != match.result_type()) return "the types differ";
  if (ir::bits_of(element_of(match, *d)) > 16) return "integers of more than 16 bits are rounded";
  return same_parameters(match, *q, *d) ? "" : "scales or zero points differ";
}

ValueId build_meet(Rewriter& rewriter) { return quantised(rewriter, "d")->integers; }

/// Whether every x <= bound has the least result, or every x >= bound the greatest.
bool saturates(const Match& match, const Quantised& q, double bound, bool below) {
  const ElementType type = match.result_type().element;
  const double zero = q.zero.valid() ? match.graph().constant(q.zero)->real_at(0) : 0;
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
  std::vector<std::string_view> names = {"Transpose", "Reshape",      "Squeeze",      "Unsqueeze", "Flatten",
                                         "Slice",     "DepthToSpace", "SpaceToDepth", "Gather",    "Expand"};
  if (maxima) names.push_back("MaxPool");
  return Pattern::node(
      std::move(names),
      {x, any("a").optional(), any("b").optional(), any("c").optional(), any("d").optional()}, "move");
}

std::vector<ValueId> moved_operands(const Rewriter& rewriter, ValueId x) {
  std::vector<ValueId> operands = rewriter.node("move").operands;
  operands[0] = x;
  return operands;
}

std::string guard_dequantise(const Match& match) {
  const auto q = quantised(match, "x");
  if (!q) return "a scale or zero point is computed, blocked or out of range";
  if (match.is("move", "MaxPool") && !is_byte(element_of(match, *q)))
    return "the maximum of other than bytes";
  if (q->axis >= 0 && !match.is("move", "Transpose")) return "several scales";
  return "";
}

ValueId build_dequantise(Rewriter& rewriter) {
  const Quantised q = *quantised(rewriter, "x");
  const std::string_view name = rewriter.node("move").op->name;
  const ValueId moved =
      rewriter.emit(name, moved_operands(rewriter, q.integers), rewriter.attributes("move"));
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
  return before <= match.result_type().count() ? "" : "more elements would be quantised";
}

ValueId quantised_as_root(Rewriter& rewriter, ValueId x) {
  std::vector<ValueId> operands = rewriter.node("q").operands;
  operands[0] = x;
  return rewriter.emit("QuantizeLinear", std::move(operands), rewriter.attributes("q"));
}

ValueId build_quantise(Rewriter& rewriter) {
  const ValueId integers = quantised_as_root(rewriter, rewriter.value("x"));
  return rewriter.emit(rewriter.node("move").op->name, moved_operands(rewriter, integers),
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
  for (const Quantised& part : parts) integers.push_back(part.integers);
  const ValueId joined = rewriter.emit("Concat", std::move(integers), rewriter.attributes("move"));
  return rewriter.emit("DequantizeLinear", {joined, parts[0].scale, parts[0].zero});
}

}  // namespace

const RuleTable& integer_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
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
        // Conv(DQ(x), DQ(w), b) -> DQ(ConvInteger(x, w) + b)
        {"conv-of-integers", tier, op("Conv", {integers("x"), integers("w"), any("b").optional()}, "conv"),
         guard_conv, build_conv},
        // DQ(x) DQ(w) -> DQ(x w)
        {"matmul-of-integers", tier, op("MatMul", {integers("x"), integers("w")}, "product"), guard_matmul,
         build_matmul},
        // DQ(x) + DQ(b) -> DQ(x + b), of sums and a bias of the same scale
        {"bias-of-integers", tier, op("Add", {integers("p"), integers("q")}), guard_bias, build_bias, true},
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
