// Quantised models as integer networks (DESIGN law 7). A model in QDQ form spells every layer in floats
// between DequantizeLinear and QuantizeLinear; here contractions become exact sums of integers.

#include <algorithm>
#include <cmath>

#include "passes/rules/quantised.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

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
  if (!match.graph().constant(w->operand)) return "the weights are computed";
  if (x->axis >= 0) return "the left operand has several scales";
  if (w->axis >= 0 && w->axis != axis) return "the weights have scales along another axis";
  if (depth * reach(match, *x) * reach(match, *w) >= kMostOfSum) return "the sums may not fit into int32";
  return "";
}

std::string guard_conv(const Match& match) {
  const Shape& w = match.shape("w");
  // Kernels multiply four channels of a pixel at once: with one, three quarters of the work are for nothing.
  if (w[1] == 1 && match.attributes("conv").int_of("group") == 1 && w[0] > 1) return "a single input channel";
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
  const Tensor* integers = graph.constant(bias->operand);
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
  return rewriter.emit(op, {x.operand, w.operand, x.zero, w.zero}, std::move(attributes));
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
    if (sums && element_of(match, *sums) == ElementType::kInt32 && !match.graph().constant(sums->operand) &&
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
  const ValueId sum = add_integers(rewriter, sums.operand, bias_of(rewriter, names), axis);
  return rewriter.emit("DequantizeLinear", {sum, sums.scale}, rewriter.attributes(names.sums));
}

}  // namespace

const RuleTable& integer_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
    const auto integers = [](std::string_view name) { return op_of_any("DequantizeLinear", name).shared(); };
    return RuleTable{
        // Conv(DQ(x), DQ(w), b) -> DQ(ConvInteger(x, w) + b)
        {"conv-of-integers", tier, op("Conv", {integers("x"), integers("w"), any("b").optional()}, "conv"),
         guard_conv, build_conv},
        // DQ(x) DQ(w) -> DQ(x w)
        {"matmul-of-integers", tier, op("MatMul", {integers("x"), integers("w")}, "product"), guard_matmul,
         build_matmul},
        // DQ(x) + DQ(b) -> DQ(x + b), of sums and a bias of the same scale
        {"bias-of-integers", tier, op("Add", {integers("p"), integers("q")}), guard_bias, build_bias, true},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes
