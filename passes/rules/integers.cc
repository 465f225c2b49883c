// Quantised models as integer networks (DESIGN law 7). A model in QDQ form spells every layer in floats
// between DequantizeLinear and QuantizeLinear; here contractions become exact sums of integers.

#include <algorithm>
#include <cmath>

#include "ir/ops/window.h"
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

/// Whether the integers behind the DequantizeLinear that is bound to `name` are.
bool is_constant(const Match& match, std::string_view name) {
  return match.graph().constant(quantised(match, name)->operand) != nullptr;
}

/// Sums stay below it, so that a bias below it can be added.
constexpr std::int64_t kMostOfSum = std::int64_t{1} << 30;

/// Both operands are bytes of known scales, the right one scaled along `axis` or as a whole, and sums of
/// `depth` products fit.
std::string guard_products(const Match& match, int axis, std::int64_t depth) {
  const auto x = quantised(match, "x"), w = quantised(match, "w");
  if (!x || !w) return "a scale or zero point is computed, blocked or out of range";
  if (!is_byte(element_of(match, *x)) || !is_byte(element_of(match, *w)))
    return "an operand is not of 8 bits";
  if (x->axis >= 0) return "the left operand has several scales";
  if (w->axis >= 0 && w->axis != axis) return "the weights have scales along another axis";
  if (depth * reach(match, *x) * reach(match, *w) >= kMostOfSum) return "the sums may not fit into int32";
  return "";
}

/// Whether the target's kernels do `work` on the integers in no more time than on floats.
std::string guard_price(const Match& match, ir::Work work) {
  if (match.prices() == nullptr) return "";
  const Quantised x = *quantised(match, "x"), w = *quantised(match, "w");
  const auto price = [&](ElementType x_element, ElementType w_element, ElementType sums) {
    const auto operand = [](ElementType element, const Shape& shape) {
      return ir::ProblemOperand{true, element, shape, ir::row_major_strides(shape), {}};
    };
    ir::Problem problem;
    problem.work = work;
    problem.accumulator = sums;
    problem.operands = {operand(x_element, match.shape("x")), operand(w_element, match.shape("w"))};
    if (is_constant(match, "w")) problem.operands[1].constant = ir::ConstantFacts{};
    problem.results = {operand(sums, match.result_type().shape)};
    return match.prices()->price(problem).picoseconds;
  };
  const auto integers = price(element_of(match, x), element_of(match, w), ElementType::kInt32);
  const auto floats = price(ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat32);
  const bool is_slower = !integers || (floats && *integers > *floats);
  return is_slower ? "kernels of the target multiply floats faster than these integers" : "";
}

std::string guard_conv(const Match& match) {
  const Shape& w = match.shape("w");
  // Kernels multiply four channels of a pixel at once: with one, three quarters of the work are for nothing.
  if (w[1] == 1 && match.attributes("conv").int_of("group") == 1 && w[0] > 1) return "a single input channel";
  std::int64_t depth = 1;
  for (std::size_t i = 1; i < w.size(); ++i) depth *= w[i];
  const std::string reason = guard_products(match, 0, depth);
  if (!reason.empty()) return reason;
  return is_constant(match, "w") ? "" : "the weights are computed";
}

/// With the weights (C, M/group, kernel...) every output sums all input channels of its group, and some taps.
std::string guard_conv_transpose(const Match& match) {
  const Shape& w = match.shape("w");
  const std::int64_t groups = match.attributes("conv").int_of("group");
  std::int64_t depth = w[0] / groups;
  for (std::size_t i = 2; i < w.size(); ++i) depth *= w[i];
  const std::string reason = guard_products(match, 1, depth);
  if (!reason.empty()) return reason;
  const Quantised weights = *quantised(match, "w");
  if (!is_constant(match, "w")) return "the weights are computed";
  if (groups > 1 && weights.axis >= 0) return "several groups share the scales of the weights";
  const Shape& x = match.shape("x");
  if (x.size() > 4) return "three and more spatial axes";
  return guard_price(match, ir::ConvTransposeWork{ir::window_of(match.attributes("conv")), groups});
}

/// Kernels pack a matrix that is a constant, for all runs; any other they take where that is no slower than
/// the product of floats.
std::string guard_matmul(const Match& match) {
  const Shape& w = match.shape("w");
  const int columns = static_cast<int>(w.size()) - 1;
  const std::string reason = guard_products(match, columns, w[w.size() - 2]);
  if (!reason.empty() || (is_constant(match, "w") && w.size() == 2)) return reason;
  if (quantised(match, "w")->axis >= 0)
    return "the right operand is no constant matrix and has several scales";
  return guard_price(match, ir::ProductWork{});
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

/// A convolution to `channels` channels by `op`.
ValueId build_window(Rewriter& rewriter, std::string_view op, std::int64_t channels) {
  ValueId sums = emit_integer_product(rewriter, op, rewriter.attributes("conv"));
  const Tensor scales = product_scales(*quantised(rewriter, "x"), *quantised(rewriter, "w"));
  const ir::Graph& graph = rewriter.graph();
  if (!rewriter.has("b")) return dequantised(rewriter, sums, scales, 1);
  const ir::NodeId producer = graph.value(rewriter.value("b")).producer;
  Shape shape(rewriter.shape("w").size() - 1, 1);
  shape[0] = channels;
  if (producer.valid() && is_operator(graph.node(producer), "DequantizeLinear")) {
    const auto bias = integer_bias(graph, graph.node(producer), scales, {channels}, 0);
    if (!bias.empty()) return dequantised(rewriter, add_integers(rewriter, sums, bias, 1), scales, 1);
  }
  const ValueId addend = rewriter.emit("Reshape", {rewriter.value("b"), rewriter.add_ints(shape)});
  return rewriter.emit("Add", {dequantised(rewriter, sums, scales, 1), addend});
}

ValueId build_conv(Rewriter& rewriter) {
  return build_window(rewriter, "ConvInteger", rewriter.shape("w")[0]);
}

ValueId build_conv_transpose(Rewriter& rewriter) {
  const std::int64_t groups = rewriter.attributes("conv").int_of("group");
  return build_window(rewriter, "ConvTransposeInteger", rewriter.shape("w")[1] * groups);
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
        // ConvTranspose(DQ(x), DQ(w), b) -> DQ(ConvTransposeInteger(x, w) + b)
        {"conv-transpose-of-integers", tier,
         op("ConvTranspose", {integers("x"), integers("w"), any("b").optional()}, "conv"),
         guard_conv_transpose, build_conv_transpose},
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
