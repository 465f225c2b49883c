// Quantised models as integer networks (DESIGN law 7). A model in QDQ form spells every layer in floats
// between DequantizeLinear and QuantizeLinear; here contractions become exact sums of integers.

#include <algorithm>
#include <cmath>

#include "ir/ops/window.h"
#include "passes/rules/integer_parts.h"
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

/// Sums of bytes stay below it, so that a bias below it can be added.
constexpr std::int64_t kMostOfSum = std::int64_t{1} << 30;

bool are_bytes(const Match& match) {
  return is_byte(element_of(match, *quantised(match, "x"))) &&
         is_byte(element_of(match, *quantised(match, "w")));
}

/// The input channels of each part in which sums of 16-bit integers and constant weights are exact; all where
/// bytes are multiplied. 0: they may not be exact in any.
std::int64_t exact_channels(const Match& match, const WeightAxes& axes) {
  if (are_bytes(match)) return axes.channels;
  const Quantised x = *quantised(match, "x"), w = *quantised(match, "w");
  const ElementType type = element_of(match, x);
  const auto zero = static_cast<std::int64_t>(zero_of(match.graph(), x));
  const auto zeros = w.zero.valid() ? match.graph().constant(w.zero)->ints() : std::vector<std::int64_t>{};
  return channels_of_exact_sums(
      *match.graph().constant(w.operand), zeros, axes,
      {ir::integer_lowest(type) - zero, static_cast<std::int64_t>(ir::integer_highest(type)) - zero});
}

/// Both operands are integers of known scales, the right one scaled along `axis` or as a whole, and the sums
/// fit, or do in parts of the channels if they `may_part`.
std::string guard_products(const Match& match, int axis, const WeightAxes& axes, bool may_part) {
  const auto x = quantised(match, "x"), w = quantised(match, "w");
  if (!x || !w) return "a scale or zero point is computed, blocked or out of range";
  if (!is_short(element_of(match, *x)) || !is_short(element_of(match, *w)))
    return "an operand is not of 8 or 16 bits";
  if (x->axis >= 0) return "the left operand has several scales";
  if (w->axis >= 0 && w->axis != axis) return "the weights have scales along another axis";
  const std::int64_t depth = axes.channels * axes.taps;
  const std::string reason = "the sums may not fit into int32";
  if (are_bytes(match)) return depth * reach(match, *x) * reach(match, *w) >= kMostOfSum ? reason : "";
  if (!is_constant(match, "w")) return "an operand of 16 bits beside one that only the run knows";
  const std::int64_t part = exact_channels(match, axes);
  return part == axes.channels || (part > 0 && may_part) ? "" : reason;
}

/// Whether the target's kernels do `work` on the integers in no more time than on floats. Of 16 bits in no
/// more than four times that: floats would move twice the bytes between layers and four times those of
/// weights, and plain loops take ten times as long.
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
  const bool is_slower = !integers || (floats && *integers > (are_bytes(match) ? 1 : 4) * *floats);
  return is_slower ? "kernels of the target multiply floats faster than these integers" : "";
}

std::int64_t taps_of(const Shape& weights) {
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < weights.size(); ++i) taps *= weights[i];
  return taps;
}

/// (M, C/group, kernel...).
WeightAxes conv_axes(const Match& match) {
  const Shape& w = match.shape("w");
  const std::int64_t taps = taps_of(w);
  return {w[0], w[1] * taps, w[1], taps, taps};
}

std::string guard_conv(const Match& match) {
  const Shape& w = match.shape("w");
  const std::int64_t groups = match.attributes("conv").int_of("group");
  const std::string reason = guard_products(match, 0, conv_axes(match), groups == 1);
  if (!reason.empty()) return reason;
  if (!is_constant(match, "w")) return "the weights are computed";
  // Vectors multiply four channels of a pixel at once: with one, three quarters of the work are for nothing.
  const bool is_single = w[1] == 1 && groups == 1 && w[0] > 1;
  if (is_single && match.prices() == nullptr) return "a single input channel";
  return are_bytes(match) && !is_single
             ? ""
             : guard_price(match, ir::ConvWork{ir::window_of(match.attributes("conv")), groups});
}

/// (C, M/group, kernel...): every output sums all input channels of its group, the first one's here,
/// and some taps.
WeightAxes transposed_axes(const Match& match) {
  const Shape& w = match.shape("w");
  const std::int64_t groups = match.attributes("conv").int_of("group"), taps = taps_of(w);
  return {w[1], taps, w[0] / groups, w[1] * taps, taps};
}

std::string guard_conv_transpose(const Match& match) {
  const std::int64_t groups = match.attributes("conv").int_of("group");
  const std::string reason = guard_products(match, 1, transposed_axes(match), groups == 1);
  if (!reason.empty()) return reason;
  const Quantised weights = *quantised(match, "w");
  if (!is_constant(match, "w")) return "the weights are computed";
  if (groups > 1 && weights.axis >= 0) return "several groups share the scales of the weights";
  if (groups > 1 && !are_bytes(match)) return "several groups beside 16 bits";
  const Shape& x = match.shape("x");
  if (x.size() > 4) return "three and more spatial axes";
  return guard_price(match, ir::ConvTransposeWork{ir::window_of(match.attributes("conv")), groups});
}

/// (..., K, N).
WeightAxes matrix_axes(const Match& match) {
  const Shape& w = match.shape("w");
  return {w.back(), 1, w[w.size() - 2], w.back(), 1};
}

/// Kernels pack a matrix that is a constant, for all runs; any other they take where that is no slower than
/// the product of floats.
std::string guard_matmul(const Match& match) {
  const Shape& w = match.shape("w");
  const int columns = static_cast<int>(w.size()) - 1;
  const std::string reason = guard_products(match, columns, matrix_axes(match), true);
  if (!reason.empty()) return reason;
  if (!are_bytes(match))
    return w.size() == 2 ? guard_price(match, ir::ProductWork{}) : "several matrices beside 16 bits";
  if (is_constant(match, "w") && w.size() == 2) return "";
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

bool stays_below(const std::vector<std::int64_t>& bias, std::int64_t most) {
  return std::all_of(bias.begin(), bias.end(), [=](std::int64_t b) { return std::abs(b) < most; });
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

/// The axes of the input channels, and in how large parts of them sums are exact.
struct Parts {
  int x_axis, w_axis;
  std::int64_t channels, part;
};

/// Sums of one part after the other, by `op`.
std::vector<ValueId> emit_integer_products(Rewriter& rewriter, std::string_view op, ir::Attributes attributes,
                                           const Parts& parts) {
  const Quantised x = *quantised(rewriter, "x"), w = *quantised(rewriter, "w");
  if (parts.part >= parts.channels)
    return {rewriter.emit(op, {x.operand, w.operand, x.zero, w.zero}, attributes)};
  std::vector<ValueId> sums;
  for (std::int64_t begin = 0; begin < parts.channels; begin += parts.part) {
    const std::int64_t end = std::min(parts.channels, begin + parts.part);
    const ValueId rows = rewriter.emit(
        "Slice",
        {x.operand, rewriter.add_ints({begin}), rewriter.add_ints({end}), rewriter.add_ints({parts.x_axis})});
    const Tensor weights = part_along(*rewriter.graph().constant(w.operand), parts.w_axis, begin, end);
    const ValueId columns = rewriter.add_constant(weights, "w");
    sums.push_back(rewriter.emit(op, {rows, columns, x.zero, w.zero}, attributes));
  }
  return sums;
}

/// The sum of all parts in float32, scaled along `axis`.
ValueId dequantised(Rewriter& rewriter, const std::vector<ValueId>& sums, const Tensor& scales,
                    std::int64_t axis) {
  ValueId total = dequantised(rewriter, sums[0], scales, axis);
  for (std::size_t i = 1; i < sums.size(); ++i)
    total = rewriter.emit("Add", {total, dequantised(rewriter, sums[i], scales, axis)});
  return total;
}

/// A convolution to `channels` channels by `op`.
ValueId build_window(Rewriter& rewriter, std::string_view op, std::int64_t channels, const Parts& parts) {
  std::vector<ValueId> sums = emit_integer_products(rewriter, op, rewriter.attributes("conv"), parts);
  const Tensor scales = product_scales(*quantised(rewriter, "x"), *quantised(rewriter, "w"));
  const ir::Graph& graph = rewriter.graph();
  if (!rewriter.has("b")) return dequantised(rewriter, sums, scales, 1);
  const ir::NodeId producer = graph.value(rewriter.value("b")).producer;
  Shape shape(rewriter.shape("w").size() - 1, 1);
  shape[0] = channels;
  if (producer.valid() && is_operator(graph.node(producer), "DequantizeLinear")) {
    const auto bias = integer_bias(graph, graph.node(producer), scales, {channels}, 0);
    if (!bias.empty() && stays_below(bias, are_bytes(rewriter) ? kMostOfSum : kMostOfShortBias)) {
      sums[0] = add_integers(rewriter, sums[0], bias, 1);
      return dequantised(rewriter, sums, scales, 1);
    }
  }
  const ValueId addend = rewriter.emit("Reshape", {rewriter.value("b"), rewriter.add_ints(shape)});
  return rewriter.emit("Add", {dequantised(rewriter, sums, scales, 1), addend});
}

ValueId build_conv(Rewriter& rewriter) {
  const WeightAxes axes = conv_axes(rewriter);
  return build_window(rewriter, "ConvInteger", axes.columns,
                      {1, 1, axes.channels, exact_channels(rewriter, axes)});
}

ValueId build_conv_transpose(Rewriter& rewriter) {
  const std::int64_t groups = rewriter.attributes("conv").int_of("group");
  const WeightAxes axes = transposed_axes(rewriter);
  return build_window(rewriter, "ConvTransposeInteger", axes.columns * groups,
                      {1, 0, axes.channels, exact_channels(rewriter, axes)});
}

ValueId build_matmul(Rewriter& rewriter) {
  const WeightAxes axes = matrix_axes(rewriter);
  const int depth_axis = rewriter.type("x").rank() - 1;
  const auto sums = emit_integer_products(rewriter, "MatMulInteger", {},
                                          {depth_axis, 0, axes.channels, exact_channels(rewriter, axes)});
  const Tensor scales = product_scales(*quantised(rewriter, "x"), *quantised(rewriter, "w"));
  return dequantised(rewriter, sums, scales, rewriter.type_of(sums[0]).rank() - 1);
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

/// The node that makes the values, wherever they are moved from there.
const ir::Node* maker_of(const ir::Graph& graph, ValueId value) {
  for (ir::NodeId id = graph.value(value).producer; id.valid();
       id = graph.value(graph.node(id).operands[0]).producer) {
    const ir::Node& node = graph.node(id);
    const auto is = [&](std::string_view name) { return is_operator(node, name); };
    const bool moves =
        is("Transpose") || is("Reshape") || is("Squeeze") || is("Unsqueeze") || is("Flatten") || is("Slice");
    if (!moves) return &node;
  }
  return nullptr;
}

/// What a bias of these sums stays below: those of products leave room, any other value of int32 does not.
/// Where sums of 16 bits have a bias already, there is room for no other.
std::int64_t most_of_bias(const ir::Graph& graph, ValueId sums, bool has_bias = false) {
  const ir::Node* maker = maker_of(graph, sums);
  if (!maker) return 0;
  const auto is = [&](std::string_view name) { return is_operator(*maker, name); };
  if (is("Add") && !has_bias) {
    const std::int64_t left = most_of_bias(graph, maker->operands[0], true);
    return std::max(left, most_of_bias(graph, maker->operands[1], true));
  }
  if (!is("ConvInteger") && !is("ConvTransposeInteger") && !is("MatMulInteger")) return 0;
  const bool is_wide = std::any_of(maker->operands.begin(), maker->operands.end(), [&](ValueId id) {
    return id.valid() && ir::bits_of(graph.value(id).type.element) == 16;
  });
  return !is_wide ? kMostOfSum : has_bias ? 0 : kMostOfShortBias;
}

std::string guard_bias(const Match& match) {
  const auto names = biased_sums(match);
  if (!names) return "neither operand is a sum of integers";
  const std::vector<std::int64_t> bias = bias_of(match, *names);
  if (bias.empty()) return "the bias is not a multiple of the scale of the sums";
  const std::int64_t most = most_of_bias(match.graph(), quantised(match, names->sums)->operand);
  return stays_below(bias, most) ? "" : "the bias and the sums may not fit into int32";
}

ValueId build_bias(Rewriter& rewriter) {
  const BiasedSums names = *biased_sums(rewriter);
  const Quantised sums = *quantised(rewriter, names.sums);
  const int axis = bias_axis(rewriter, names);
  const ValueId sum = add_integers(rewriter, sums.operand, bias_of(rewriter, names), axis);
  return rewriter.emit("DequantizeLinear", {sum, sums.scale}, rewriter.attributes(names.sums));
}

/// Elements of which each result is the mean; nothing where that is not the mean of all of an image of
/// constant size.
std::optional<std::int64_t> elements_of_mean(const Match& match) {
  const Shape& x = match.shape("x");
  if (x.size() < 3 || !ir::are_constant(x)) return std::nullopt;
  const Shape image(x.begin() + 2, x.end());
  if (match.is("mean", "ReduceMean")) {
    std::vector<std::int64_t> axes = normalised(ints_of(match, "axes"), static_cast<int>(x.size()));
    std::sort(axes.begin(), axes.end());
    // Along the last axis of three it may belong to a normalisation, which is a kernel of its own.
    if (x.size() < 4 || axes.size() != image.size() || axes[0] != 2) return std::nullopt;
  } else if (match.is("mean", "AveragePool")) {
    const ir::Window window = ir::window_of(match.attributes("mean"));
    const bool is_padded =
        std::any_of(window.pads.begin(), window.pads.end(), [](auto pad) { return pad != 0; });
    if (is_padded || !std::equal(image.begin(), image.end(), window.kernel.begin(), window.kernel.end()))
      return std::nullopt;
  }
  return ir::element_count(image);
}

std::string guard_mean(const Match& match) {
  const auto x = quantised(match, "x");
  if (!x || x->axis >= 0) return "several scales, or a scale or zero point that is computed or out of range";
  if (!is_short(element_of(match, *x))) return "the operand is not of 8 or 16 bits";
  const auto elements = elements_of_mean(match);
  if (!elements) return "not the mean of a whole image";
  const std::int64_t most = is_byte(element_of(match, *x)) ? 255 : 65535;
  return *elements <= kMostOfSum / most ? "" : "the sums may not fit into int32";
}

ValueId build_mean(Rewriter& rewriter) {
  const Quantised x = *quantised(rewriter, "x");
  const auto elements = *elements_of_mean(rewriter);
  const int rank = rewriter.type("x").rank();
  std::vector<std::int64_t> axes;
  for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
  ir::Attributes reduction;
  if (rewriter.is("mean", "ReduceMean")) reduction = rewriter.attributes("mean");
  ir::Attributes widening;
  widening.set("to", ir::onnx_number_of(ElementType::kInt32));
  const ValueId words = rewriter.emit("Cast", {x.operand}, std::move(widening));
  ValueId sum = rewriter.emit("ReduceSum", {words, rewriter.add_ints(axes)}, std::move(reduction));
  const double zero = zero_of(rewriter.graph(), x);
  if (zero != 0) {
    const auto moved =
        ir::Scalar::of_integer(ElementType::kInt32, -elements * static_cast<std::int64_t>(zero));
    sum = rewriter.emit("Add", {sum, rewriter.add_constant(Tensor::scalar(moved))});
  }
  const double scale = x.factor(0) / static_cast<double>(elements);
  return dequantised(rewriter, sum, Tensor::scalar(ir::Scalar::of_real(ElementType::kFloat32, scale)), 1);
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
        // Mean(DQ(x)) over all of an image -> DQ(Sum(x) - n z), with the scale of x over n
        {"mean-of-integers", tier,
         one_of({"GlobalAveragePool", "AveragePool", "ReduceMean"},
                {op_of_any("DequantizeLinear", "x"), constant("axes").optional()}, "mean"),
         guard_mean, build_mean, true},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes
