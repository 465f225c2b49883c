// Convolutions that are summed or follow each other, as one: branches of a network that was trained with more
// of them (RepVGG: https://arxiv.org/abs/2101.03697), and windows of one pixel in front of or behind others.

#include <algorithm>

#include "ir/ops/window.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using ir::Window;

constexpr std::string_view kLeaveRange = "the weights together leave their range";

std::int64_t groups_of(const Match& match, std::string_view conv) {
  return match.attributes(conv).int_of("group");
}

bool is_one_pixel(const Window& window) {
  const auto all = [](const std::vector<std::int64_t>& values, std::int64_t number) {
    return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == number; });
  };
  return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads, 0);
}

// Sums of convolutions of one operand -----------------------------------------------------------------------

/// Weights (M, C / groups, taps...) with their window.
struct Branch {
  Tensor weights;
  Window window;
};

Branch branch_of(const Match& match, std::string_view conv, std::string_view weights) {
  return {match.constant(weights), ir::window_of(match.attributes(conv))};
}

/// The operand itself, each channel times its factor, as weights of one pixel beside those of "first".
Branch operand_branch(const Match& match, const std::vector<double>& factors) {
  Window window = ir::window_of(match.attributes("first"));
  std::fill(window.kernel.begin(), window.kernel.end(), 1);
  std::fill(window.pads.begin(), window.pads.end(), 0);
  Shape shape = match.shape("w");
  std::fill(shape.begin() + 2, shape.end(), Dim{1});
  const std::int64_t each = shape[1];
  const Tensor weights = computed({match.type("w").element, shape}, [&](std::int64_t i) {
    return i / each % each == i % each ? factors[static_cast<std::size_t>(i / each)] : 0.0;
  });
  return {weights, std::move(window)};
}

/// Where the taps of `part` lie among those of `whole`: its first one, and how far apart they are.
struct Inset {
  std::int64_t first = 0, step = 1;
};

/// Nothing where a tap of the part is none of the whole.
std::optional<std::vector<Inset>> insets(const Window& whole, const Window& part) {
  std::vector<Inset> out;
  for (int i = 0; i < whole.spatial(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    const std::int64_t apart = whole.dilations[axis], shift = whole.begin(i) - part.begin(i);
    const std::int64_t step = part.kernel[axis] == 1 ? apart : part.dilations[axis];
    if (whole.strides[axis] != part.strides[axis] || shift % apart != 0 || step % apart != 0)
      return std::nullopt;
    const Inset inset{shift / apart, step / apart};
    const std::int64_t last = inset.first + (part.kernel[axis] - 1) * inset.step;
    if (inset.first < 0 || last >= whole.kernel[axis]) return std::nullopt;
    out.push_back(inset);
  }
  return out;
}

/// The weights of `whole` and, at their taps, those of `part`.
Tensor united(const Branch& whole, const Branch& part, const std::vector<Inset>& insets) {
  const Shape &to = whole.weights.shape(), &from = part.weights.shape();
  std::vector<double> more(static_cast<std::size_t>(whole.weights.count()), 0.0);
  for (std::int64_t i = 0; i < part.weights.count(); ++i) {
    std::int64_t rest = i, position = 0, stride = 1;
    for (std::size_t axis = from.size(); axis-- > 2;) {
      const Inset& inset = insets[axis - 2];
      position += (inset.first + rest % from[axis] * inset.step) * stride;
      rest /= from[axis];
      stride *= to[axis];
    }
    more[static_cast<std::size_t>(rest * stride + position)] = part.weights.real_at(i);
  }
  return computed(whole.weights.type(), [&](std::int64_t i) {
    return whole.weights.real_at(i) + more[static_cast<std::size_t>(i)];
  });
}

/// Two branches as one: the weights, and whether the window is that of the first.
struct United {
  Tensor weights;
  bool in_first = true;
};

std::optional<United> unite(const Branch& first, const Branch& second) {
  if (const auto at = insets(first.window, second.window)) return United{united(first, second, *at), true};
  if (const auto at = insets(second.window, first.window)) return United{united(second, first, *at), false};
  return std::nullopt;
}

std::optional<United> unite_convolutions(const Match& match) {
  return unite(branch_of(match, "first", "w"), branch_of(match, "second", "v"));
}

bool biases_meet(const Match& match) {
  if (!match.has("b") || !match.has("c")) return true;
  return all_finite(sum_of(match.constant("b"), match.constant("c")));
}

std::string guard_branches(const Match& match) {
  const Shape &w = match.shape("w"), &v = match.shape("v");
  if (groups_of(match, "first") != groups_of(match, "second") || w[0] != v[0] || w[1] != v[1])
    return "the convolutions have unlike groups";
  if (match.shape("first") != match.shape("second")) return "the results are of unlike shapes";
  const std::optional<United> both = unite_convolutions(match);
  if (!both) return "the windows do not lie in each other";
  return all_finite(both->weights) && biases_meet(match) ? "" : std::string(kLeaveRange);
}

/// The sum of the biases that there are.
void add_biases(Rewriter& rewriter, std::vector<ValueId>& operands) {
  const bool has_b = rewriter.has("b"), has_c = rewriter.has("c");
  if (has_b && has_c) {
    const Tensor sum = sum_of(rewriter.constant("b"), rewriter.constant("c"));
    operands.push_back(rewriter.add_constant(sum, "b"));
  } else if (has_b || has_c) {
    operands.push_back(rewriter.value(has_b ? "b" : "c"));
  }
}

ValueId build_branches(Rewriter& rewriter) {
  const United both = *unite_convolutions(rewriter);
  std::vector<ValueId> operands = {rewriter.value("x"),
                                   rewriter.add_constant(both.weights, both.in_first ? "w" : "v")};
  add_biases(rewriter, operands);
  return rewriter.emit("Conv", std::move(operands), rewriter.attributes(both.in_first ? "first" : "second"));
}

// Conv(x, W) + x -> Conv(x, W + 1) --------------------------------------------------------------------------

std::optional<std::vector<double>> channel_factors(const Match& match) {
  if (match.has("factor")) return along_axis(match.constant("factor"), match.shape("x"), 1);
  return std::vector<double>(static_cast<std::size_t>(std::int64_t{match.shape("x")[1]}), 1.0);
}

std::optional<United> unite_operand(const Match& match) {
  const Branch conv = branch_of(match, "first", "w");
  const auto factors = channel_factors(match);
  if (!factors) return std::nullopt;
  const Branch operand = operand_branch(match, *factors);
  const auto at = insets(conv.window, operand.window);
  return at ? std::optional(United{united(conv, operand, *at)}) : std::nullopt;
}

std::string guard_operand(const Match& match) {
  if (match.type("x") != match.type("first") || !keeps_type(match, "x"))
    return "the operand has another shape than the result";
  for (const std::int64_t stride : match.attributes("first").ints_of("strides")) {
    if (stride != 1) return "the convolution has strides";
  }
  if (match.has("shift") && !is_small_addend(match.constant("shift"))) return std::string(kLeaveRange);
  const std::optional<United> both = unite_operand(match);
  if (!both) return "the window takes no pixel in its own place, or factors are not one per channel";
  return all_finite(both->weights) ? "" : std::string(kLeaveRange);
}

ValueId build_operand(Rewriter& rewriter) {
  const ValueId weights = rewriter.add_constant(unite_operand(rewriter)->weights, "w");
  std::vector<ValueId> operands = {rewriter.value("x"), weights};
  if (rewriter.has("b")) operands.push_back(rewriter.value("b"));
  const ValueId conv = rewriter.emit("Conv", std::move(operands), rewriter.attributes("first"));
  return rewriter.has("shift") ? rewriter.emit("Add", {conv, rewriter.value("shift")}) : conv;
}

// Conv(x, W) + Conv(z, W) -> Conv(x + z, W) -----------------------------------------------------------------

std::string guard_one_weight(const Match& match) {
  if (match.type("x") != match.type("z") || match.type("first") != match.type("second"))
    return "what is multiplied has unlike shapes";
  if (!match.attributes("first").identical(match.attributes("second"))) return "unlike windows";
  if (!biases_meet(match)) return std::string(kLeaveRange);
  return match.result_type().element == ir::ElementType::kFloat16 ? "float16 may overflow in another order"
                                                                  : "";
}

ValueId build_one_weight(Rewriter& rewriter) {
  const ValueId sum = rewriter.emit("Add", {rewriter.value("x"), rewriter.value("z")});
  std::vector<ValueId> operands = {sum, rewriter.value("w")};
  add_biases(rewriter, operands);
  return rewriter.emit("Conv", std::move(operands), rewriter.attributes("first"));
}

// Conv(Conv(x, W), V) ---------------------------------------------------------------------------------------

/// Weights as a matrix of (outputs, the rest).
Tensor as_matrix(const Tensor& weights) {
  const std::int64_t outputs = weights.shape()[0];
  return weights.reshaped({outputs, outputs == 0 ? 0 : weights.count() / outputs});
}

/// Weights (M, C, taps...) as (C, M * taps) and back.
Tensor with_inputs_first(const Tensor& weights) {
  const std::int64_t outputs = weights.shape()[0], inputs = weights.shape()[1];
  const std::int64_t taps = weights.count() / std::max<std::int64_t>(outputs * inputs, 1);
  return computed({weights.element(), {inputs, outputs * taps}}, [&](std::int64_t i) {
    const std::int64_t input = i / (outputs * taps), output = i / taps % outputs;
    return weights.real_at((output * inputs + input) * taps + i % taps);
  });
}

Dim work_of(const Match& match, std::string_view conv, std::string_view weights) {
  const Tensor& w = match.constant(weights);
  return match.type(conv).count() * (w.count() / std::max<std::int64_t>(w.shape()[0], 1));
}

/// "v" takes one pixel: (outputs, channels) of it times (channels, the rest) of "w".
Tensor joined_behind(const Match& match) {
  Shape shape = match.shape("w");
  shape[0] = match.shape("v")[0];
  return product_of(as_matrix(match.constant("v")), as_matrix(match.constant("w"))).reshaped(shape);
}

/// "w" takes one pixel: for each tap of "v", (outputs, channels) of it times (channels, inputs) of "w".
Tensor joined_before(const Match& match) {
  const Tensor& v = match.constant("v");
  Shape shape = v.shape();
  const std::int64_t outputs = shape[0], inputs = match.shape("w")[1];
  shape[1] = inputs;
  // (inputs, channels) times (channels, outputs * taps).
  const Tensor turned =
      with_inputs_first(as_matrix(match.constant("w")).reshaped({match.shape("w")[0], inputs}));
  const Tensor all = product_of(turned, with_inputs_first(v));
  const std::int64_t taps = all.count() / std::max<std::int64_t>(outputs * inputs, 1);
  return computed({v.element(), shape}, [&](std::int64_t i) {
    const std::int64_t output = i / taps / inputs, input = i / taps % inputs;
    return all.real_at((input * outputs + output) * taps + i % taps);
  });
}

bool is_behind(const Match& match) { return is_one_pixel(ir::window_of(match.attributes("second"))); }

Tensor joined_weights(const Match& match) {
  return is_behind(match) ? joined_behind(match) : joined_before(match);
}

/// What the bias of "first" adds to every output of "second", and the bias of that.
Tensor joined_bias(const Match& match) {
  const Tensor& v = match.constant("v");
  const std::int64_t outputs = v.shape()[0], taps = v.count() / (outputs * v.shape()[1]);
  std::vector<double> sums(static_cast<std::size_t>(outputs), 0.0);
  for (std::int64_t i = 0; match.has("b") && i < v.count(); ++i)
    sums[static_cast<std::size_t>(i / taps / v.shape()[1])] +=
        v.real_at(i) * match.constant("b").real_at(i / taps % v.shape()[1]);
  return computed({v.element(), {outputs}}, [&](std::int64_t i) {
    return sums[static_cast<std::size_t>(i)] + (match.has("c") ? match.constant("c").real_at(i) : 0.0);
  });
}

/// Multiplications for one output of the joined convolution.
std::int64_t taken_together(const Match& match) {
  const Tensor &w = match.constant("w"), &v = match.constant("v");
  if (is_behind(match)) return w.count() / w.shape()[0];
  return v.count() / (v.shape()[0] * v.shape()[1]) * w.shape()[1];
}

/// Zeros that the outer convolution is padded with know nothing of the inner one's bias.
bool pads_beside_bias(const Match& match) {
  const std::vector<std::int64_t>& pads = match.attributes("second").ints_of("pads");
  const bool is_padded = std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad != 0; });
  return is_padded && match.has("b") && !all_equal(match.constant("b"), 0);
}

std::string guard_chain(const Match& match) {
  const Tensor &w = match.constant("w"), &v = match.constant("v");
  if (groups_of(match, "first") != 1 || groups_of(match, "second") != 1) return "groups of channels";
  if (w.count() == 0 || v.count() == 0) return "weights without elements";
  if (!is_behind(match) && !is_one_pixel(ir::window_of(match.attributes("first"))))
    return "neither window is one pixel";
  if (!is_behind(match) && pads_beside_bias(match))
    return "the convolution pads with zeros, which the bias does not reach";
  const std::int64_t outputs = v.shape()[0], channels = w.shape()[0], each = taken_together(match);
  const Dim before = work_of(match, "first", "w") + work_of(match, "second", "v");
  if (outputs * each > w.count() + v.count() || !ir::always_less(match.type("second").count() * each, before))
    return "one convolution would not be cheaper";
  if (!is_affordable(outputs, channels, each)) return "the product of the weights takes too long";
  // The weights of one output are a column.
  const Tensor both = with_inputs_first(as_matrix(joined_weights(match)));
  const bool kept = keeps_columns(both, as_matrix(w), with_inputs_first(as_matrix(v)));
  return kept && all_finite(joined_bias(match)) ? "" : std::string(kLeaveRange);
}

ValueId build_chain(Rewriter& rewriter) {
  const bool behind = is_behind(rewriter);
  std::vector<ValueId> operands = {rewriter.value("x"),
                                   rewriter.add_constant(joined_weights(rewriter), behind ? "w" : "v")};
  if (rewriter.has("b") || rewriter.has("c"))
    operands.push_back(rewriter.add_constant(joined_bias(rewriter), rewriter.has("c") ? "c" : "b"));
  return rewriter.emit("Conv", std::move(operands), rewriter.attributes(behind ? "first" : "second"));
}

// Conv(x, 1) -> x -------------------------------------------------------------------------------------------

std::string guard_identity(const Match& match) {
  if (!keeps_type(match, "x") || !is_one_pixel(ir::window_of(match.attributes("first"))))
    return "the window takes more than one pixel, or another one";
  const std::vector<double> ones(static_cast<std::size_t>(std::int64_t{match.shape("w")[0]}), 1.0);
  const Tensor identity = operand_branch(match, ones).weights;
  const Tensor& w = match.constant("w");
  for (std::int64_t i = 0; i < w.count(); ++i) {
    if (w.real_at(i) != identity.real_at(i)) return "the weights are not the identity";
  }
  return "";
}

ValueId build_identity(Rewriter& rewriter) { return rewriter.value("x"); }

// -Conv(x, W) -> Conv(x, -W) --------------------------------------------------------------------------------

ValueId build_opposite(Rewriter& rewriter, bool with_bias) {
  std::vector<ValueId> operands = {rewriter.value("x"),
                                   rewriter.add_constant(negated(rewriter.constant("w")), "w")};
  if (rewriter.has("b") && with_bias)
    operands.push_back(rewriter.add_constant(negated(rewriter.constant("b")), "b"));
  if (rewriter.has("b") && !with_bias) operands.push_back(rewriter.value("b"));
  return rewriter.emit(rewriter.node("conv").op->name, std::move(operands), rewriter.attributes("conv"));
}
ValueId build_opposite_operand(Rewriter& rewriter) { return build_opposite(rewriter, false); }
ValueId build_opposite_result(Rewriter& rewriter) { return build_opposite(rewriter, true); }

}  // namespace

const RuleTable& convolution_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
    const Pattern x = any("x"), w = constant("w"), v = constant("v");
    const Pattern b = constant("b").optional(), c = constant("c").optional();
    const Pattern first = op("Conv", {x, w, b}, "first");
    const Pattern scaled = op("Mul", {x, constant("factor")});
    const std::vector<std::string_view> either = {"Conv", "ConvTranspose"};
    return RuleTable{
        // Conv(x, W, b) + Conv(x, V, c) -> Conv(x, W + V, b + c), where one window lies in the other
        {"convolutions-of-one-operand", tier, op("Add", {first, op("Conv", {x, v, c}, "second")}),
         guard_branches, build_branches},
        // Conv(x, W, b) + x -> Conv(x, W + 1, b)
        {"operand-into-conv", tier, op("Add", {first, x}), guard_operand, build_operand, true},
        // Conv(x, W, b) + x * f -> Conv(x, W + f, b)
        {"operand-into-conv", tier, op("Add", {first, scaled}), guard_operand, build_operand, true},
        // Conv(x, W, b) + (x * f + s) -> Conv(x, W + f, b) + s
        {"operand-into-conv", tier, op("Add", {first, op("Add", {scaled, constant("shift")})}), guard_operand,
         build_operand, true},
        // Conv(x, W, b) + Conv(z, W, c) -> Conv(x + z, W, b + c)
        {"convolutions-of-one-weight", tier,
         op("Add", {op("Conv", {x, any("w"), b}, "first"), op("Conv", {any("z"), any("w"), c}, "second")}),
         guard_one_weight, build_one_weight},
        // Conv(Conv(x, W, b), V, c) -> Conv(x, V W, V b + c), where W or V takes one pixel
        {"conv-of-conv", tier, op("Conv", {first, v, c}, "second"), guard_chain, build_chain, true},
        // Conv(x, 1) -> x; the model multiplies what is infinite by zeros too
        {"identity-weights", tier, op("Conv", {x, w}, "first"), guard_identity, build_identity, true},
        // Conv(-x, W, b) -> Conv(x, -W, b)
        {"neg-before-conv", Tier::kExact, one_of(either, {op("Neg", {x}), w, any("b").optional()}, "conv"),
         nullptr, build_opposite_operand},
        // -Conv(x, W, b) -> Conv(x, -W, -b), but for the sign of zero
        {"neg-of-conv", tier, op("Neg", {one_of(either, {x, w, b}, "conv")}), nullptr, build_opposite_result},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes
