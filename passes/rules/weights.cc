// Scales, shifts and paddings around contractions go into their weights, biases and attributes: what batch
// normalisation, input normalisation and explicit padding leave behind. New weights are computed in double
// and rounded once; constants are values, so weights that another node shares stay as they are for it.

#include <cmath>

#include "ir/ops/window.h"
#include "ir/tensors/constant_range.h"
#include "ir/tensors/strided_nest.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using Factors = std::vector<double>;

constexpr std::string_view kNotPerChannel = "the constant is not a scalar or one value per channel";
constexpr std::string_view kNotFinite = "a folded weight would not be finite";
constexpr std::string_view kNotInRange = "a folded weight would not be finite, or lose its digits";

Pattern convolution() {
  return Pattern::node({"Conv", "ConvTranspose"}, {any("x"), constant("w"), constant("b").optional()},
                       "conv");
}

// Weights ---------------------------------------------------------------------------------------------------

enum class Side { kOutput, kInput };

/// Channel of the convolution's output or input that the weight at `position` belongs to.
class WeightChannels {
 public:
  WeightChannels(const Match& match, Side side) : side_(side) {
    const Shape& w = match.shape("w");
    transposed_ = match.is("conv", "ConvTranspose");
    taps_ = match.constant("w").count() / std::max<std::int64_t>(w[0] * w[1], 1);
    inner_ = w[1];
    const std::int64_t group = match.attributes("conv").int_of("group");
    outer_per_group_ = std::max<std::int64_t>(w[0] / group, 1);
  }

  /// Conv: W[oc, ic of the group, taps]. ConvTranspose: W[ic, oc of the group, taps].
  std::size_t operator()(std::int64_t position) const {
    const std::int64_t outer = position / taps_ / inner_;
    const std::int64_t inner = position / taps_ % inner_;
    const bool want_outer = (side_ == Side::kOutput) != transposed_;
    return static_cast<std::size_t>(want_outer ? outer : outer / outer_per_group_ * inner_ + inner);
  }
  /// Positions in a row that belong to one channel, from a multiple of it on.
  std::int64_t run() const { return (side_ == Side::kOutput) != transposed_ ? inner_ * taps_ : taps_; }

 private:
  Side side_;
  bool transposed_ = false;
  std::int64_t taps_ = 1, inner_ = 1, outer_per_group_ = 1;
};

template <class Channel>
Tensor scaled(const Tensor& w, const Factors& factors, Channel channel) {
  return computed(w.type(), [&](std::int64_t i) { return w.real_at(i) * factors[channel(i)]; });
}

/// Elements of float32 in runs: `factor_of(begin)` for each run that begins there.
template <class FactorOf>
Tensor scaled_runs(const Tensor& w, std::int64_t run, FactorOf factor_of) {
  Tensor out(w.type());
  const std::byte* from = w.bytes().data();
  std::byte* to = out.mutable_bytes().data();
  for (std::int64_t begin = 0; begin < w.count(); begin += run) {
    const double factor = factor_of(begin);
    for (std::int64_t i = begin; i < begin + run; ++i) {
      ir::write(to, i, static_cast<float>(static_cast<double>(ir::read<float>(from, i)) * factor));
    }
  }
  return out;
}

Tensor scaled(const Tensor& w, const Factors& factors, const WeightChannels& channels) {
  if (w.element() == ir::ElementType::kFloat32 && channels.run() > 0) {
    return scaled_runs(w, channels.run(), [&](std::int64_t begin) { return factors[channels(begin)]; });
  }
  return computed(w.type(), [&](std::int64_t i) { return w.real_at(i) * factors[channels(i)]; });
}

/// Whether weights multiplied with finite `factors`, of which element i takes that of channel(i), can stand
/// for both; element i goes into sum sum(i) of `sums`.
template <class Channel, class Sum>
bool keeps_range(const Tensor& w, const Tensor& product, const Factors& factors, Channel channel, Sum sum,
                 std::size_t sums) {
  if (!all_finite(factors)) return false;
  if (product.element() == ir::ElementType::kFloat32) {
    const std::byte* bytes = product.bytes().data();
    bool normal = true;
    for (std::int64_t i = 0; i < product.count(); ++i)
      normal &= std::isnormal(ir::read<float>(bytes, i)) != 0;
    if (normal) return true;
  }
  ir::ProductRange range(product.element(), sums);
  for (std::int64_t i = 0; i < product.count(); ++i) {
    const double weight = w.real_at(i);
    if (!std::isfinite(weight)) return false;
    range.add(product.real_at(i), weight, factors[channel(i)], sum(i));
  }
  return range.is_kept();
}

/// NaN for what is no normal number.
Factors inverted(Factors factors, ir::ElementType type) {
  for (double& factor : factors) {
    factor = 1 / factor;
    if (std::abs(factor) < ir::least_normal(type)) factor = std::nan("");
  }
  return factors;
}

/// What a product with "c", or a quotient by "divisor", multiplies positions of `axis` with.
std::optional<Factors> factors_along(const Match& match, const Shape& shape, int axis) {
  if (!match.has("divisor")) return along_axis(match.constant("c"), shape, axis);
  auto divisors = along_axis(match.constant("divisor"), shape, axis);
  return divisors ? std::optional(inverted(*std::move(divisors), match.type("divisor").element))
                  : std::nullopt;
}

bool real(const Match& match) { return ir::is_float(match.result_type().element); }

// Conv(x, W) * c + d -> Conv(x, W * c) + b * c + d ----------------------------------------------------------

std::optional<Factors> output_factors(const Match& match) {
  if (match.shape("conv") != match.result_type().shape) return std::nullopt;
  return factors_along(match, match.shape("conv"), 1);
}

Tensor scaled_bias(const Match& match, const Factors& factors) {
  const Tensor& b = match.constant("b");
  return scaled(b, factors, [](std::int64_t i) { return static_cast<std::size_t>(i); });
}

std::string guard_scale_output(const Match& match) {
  const auto factors = output_factors(match);
  if (!factors) return std::string(kNotPerChannel);
  const Tensor& w = match.constant("w");
  const WeightChannels output(match, Side::kOutput);
  const bool kept = keeps_range(w, scaled(w, *factors, output), *factors, output, output, factors->size()) &&
                    (!match.has("b") || all_finite(scaled_bias(match, *factors)));
  return kept ? "" : std::string(kNotInRange);
}

ValueId build_scale_output(Rewriter& rewriter) {
  const Factors factors = *output_factors(rewriter);
  std::vector<ValueId> operands = {
      rewriter.value("x"),
      rewriter.add_constant(scaled(rewriter.constant("w"), factors, WeightChannels(rewriter, Side::kOutput)),
                            "w")};
  if (rewriter.has("b")) operands.push_back(rewriter.add_constant(scaled_bias(rewriter, factors), "b"));
  return rewriter.emit(rewriter.node("conv").op->name, std::move(operands), rewriter.attributes("conv"));
}

/// The bias of "conv" (zero when it has none) plus `shifts`.
Tensor shifted_bias(const Match& match, const Factors& shifts) {
  const ir::TensorType type{match.type("w").element, {static_cast<std::int64_t>(shifts.size())}};
  const Tensor* bias = match.has("b") ? &match.constant("b") : nullptr;
  return computed(type, [&](std::int64_t i) { return shifts[i] + (bias ? bias->real_at(i) : 0); });
}

std::string guard_shift_output(const Match& match) {
  if (match.shape("conv") != match.result_type().shape) return "the addition enlarges the result";
  const auto shifts = along_axis(match.constant("c"), match.shape("conv"), 1);
  if (!shifts) return std::string(kNotPerChannel);
  return all_finite(shifted_bias(match, *shifts)) ? "" : std::string(kNotFinite);
}

/// "c" is the source of the shifts.
ValueId add_shifted_bias(Rewriter& rewriter, const Factors& shifts) {
  return rewriter.add_constant(shifted_bias(rewriter, shifts), rewriter.has("b") ? "b" : "c");
}

ValueId build_shift_output(Rewriter& rewriter) {
  const Factors shifts = *along_axis(rewriter.constant("c"), rewriter.shape("conv"), 1);
  return rewriter.emit(rewriter.node("conv").op->name,
                       {rewriter.value("x"), rewriter.value("w"), add_shifted_bias(rewriter, shifts)},
                       rewriter.attributes("conv"));
}

// Conv(x * c, W) -> Conv(x, W * c); zero padding stays zero -------------------------------------------------

std::optional<Factors> input_factors(const Match& match) {
  if (match.shape("x") != match.shape("scaled")) return std::nullopt;
  return factors_along(match, match.shape("x"), 1);
}

std::string guard_scale_input(const Match& match) {
  const auto factors = input_factors(match);
  if (!factors) return std::string(kNotPerChannel);
  const Tensor& w = match.constant("w");
  const WeightChannels input(match, Side::kInput), output(match, Side::kOutput);
  const bool kept = keeps_range(w, scaled(w, *factors, input), *factors, input, output,
                                static_cast<std::size_t>(match.shape("conv")[1]));
  return kept ? "" : std::string(kNotInRange);
}

ValueId build_scale_input(Rewriter& rewriter) {
  const Tensor w =
      scaled(rewriter.constant("w"), *input_factors(rewriter), WeightChannels(rewriter, Side::kInput));
  std::vector<ValueId> operands = {rewriter.value("x"), rewriter.add_constant(w, "w")};
  if (rewriter.has("b")) operands.push_back(rewriter.value("b"));
  return rewriter.emit(rewriter.node("conv").op->name, std::move(operands), rewriter.attributes("conv"));
}

// Conv(x + c, W) -> Conv(x, W) + sum over input channels and taps of W * c; only without padding, whose zeros
// the addition does not reach -------------------------------------------------------------------------------

/// What shifts of the input channels add to every output channel.
Factors summed_shifts(const Match& match, const Factors& shifts) {
  const Tensor& w = match.constant("w");
  const WeightChannels input(match, Side::kInput), output(match, Side::kOutput);
  Factors sums(static_cast<std::size_t>(w.shape()[0]), 0.0);
  for (std::int64_t i = 0; i < w.count(); ++i) sums[output(i)] += w.real_at(i) * shifts[input(i)];
  return sums;
}

std::string guard_shift_input(const Match& match) {
  for (const std::int64_t pad : match.attributes("conv").ints_of("pads")) {
    if (pad != 0) return "the convolution pads with zeros, which the shift does not reach";
  }
  if (match.shape("x") != match.shape("scaled")) return "the addition enlarges the operand";
  const auto shifts = along_axis(match.constant("c"), match.shape("x"), 1);
  if (!shifts) return std::string(kNotPerChannel);
  return all_finite(shifted_bias(match, summed_shifts(match, *shifts))) ? "" : std::string(kNotFinite);
}

ValueId build_shift_input(Rewriter& rewriter) {
  const Factors shifts = *along_axis(rewriter.constant("c"), rewriter.shape("x"), 1);
  return rewriter.emit(
      "Conv",
      {rewriter.value("x"), rewriter.value("w"), add_shifted_bias(rewriter, summed_shifts(rewriter, shifts))},
      rewriter.attributes("conv"));
}

// MatMul ----------------------------------------------------------------------------------------------------

int last_axis(const Shape& shape) { return static_cast<int>(shape.size()) - 1; }

/// W(..., K, N): the column or the row of a weight.
std::size_t column_of(const Shape& w, std::int64_t position) {
  return static_cast<std::size_t>(position % w.back());
}
std::size_t row_of(const Shape& w, std::int64_t position) {
  return static_cast<std::size_t>(position / w.back() % w[w.size() - 2]);
}

Tensor columns_scaled(const Tensor& w, const Factors& factors) {
  if (w.element() == ir::ElementType::kFloat32) {
    std::size_t next = 0;
    return scaled_runs(w, 1, [&](std::int64_t) {
      if (next == factors.size()) next = 0;
      return factors[next++];
    });
  }
  return scaled(w, factors, [&](std::int64_t i) { return column_of(w.shape(), i); });
}
Tensor rows_scaled(const Tensor& w, const Factors& factors) {
  if (w.element() == ir::ElementType::kFloat32 && w.count() > 0) {
    return scaled_runs(w, w.shape().back(),
                       [&](std::int64_t begin) { return factors[row_of(w.shape(), begin)]; });
  }
  return scaled(w, factors, [&](std::int64_t i) { return row_of(w.shape(), i); });
}

std::optional<Factors> column_factors(const Match& match) {
  if (match.shape("product") != match.result_type().shape) return std::nullopt;
  return factors_along(match, match.shape("product"), last_axis(match.shape("product")));
}

std::string guard_scale_columns(const Match& match) {
  if (!real(match)) return "the product is one of integers";
  const auto factors = column_factors(match);
  if (!factors) return "the constant is not a scalar or one value per column";
  const Tensor& w = match.constant("w");
  const auto column = [&](std::int64_t i) { return column_of(w.shape(), i); };
  const bool kept = keeps_range(w, columns_scaled(w, *factors), *factors, column, column, factors->size());
  return kept ? "" : std::string(kNotInRange);
}

ValueId build_scale_columns(Rewriter& rewriter) {
  const Tensor w = columns_scaled(rewriter.constant("w"), *column_factors(rewriter));
  return rewriter.emit("MatMul", {rewriter.value("x"), rewriter.add_constant(w, "w")});
}

Tensor scaled_addend(const Match& match, const Factors& factors) {
  const Shape& shape = match.shape("product");
  const Factors addends = *along_axis(match.constant("b"), shape, last_axis(shape));
  return computed({match.type("w").element, {shape.back()}},
                  [&](std::int64_t i) { return addends[i] * factors[i]; });
}

std::string guard_scale_past_bias(const Match& match) {
  const std::string reason = guard_scale_columns(match);
  if (!reason.empty()) return reason;
  if (match.shape("sum") != match.shape("product")) return "the addition enlarges the result";
  const Shape& shape = match.shape("product");
  if (!along_axis(match.constant("b"), shape, last_axis(shape)))
    return "the addend is not one value per column";
  return all_finite(scaled_addend(match, *column_factors(match))) ? "" : std::string(kNotFinite);
}

ValueId build_scale_past_bias(Rewriter& rewriter) {
  const Factors factors = *column_factors(rewriter);
  const Tensor w = columns_scaled(rewriter.constant("w"), factors);
  const Tensor b = scaled_addend(rewriter, factors);
  const ValueId product = rewriter.emit("MatMul", {rewriter.value("x"), rewriter.add_constant(w, "w")});
  return rewriter.emit("Add", {product, rewriter.add_constant(b, "b")});
}

std::optional<Factors> row_factors(const Match& match) {
  if (match.shape("x") != match.shape("scaled")) return std::nullopt;
  return factors_along(match, match.shape("x"), last_axis(match.shape("x")));
}

std::string guard_scale_rows(const Match& match) {
  if (!real(match)) return "the product is one of integers";
  const auto factors = row_factors(match);
  if (!factors) return "the constant is not a scalar or one value per row of the weights";
  const Tensor& w = match.constant("w");
  const auto row = [&](std::int64_t i) { return row_of(w.shape(), i); };
  const auto column = [&](std::int64_t i) { return column_of(w.shape(), i); };
  const bool kept = keeps_range(w, rows_scaled(w, *factors), *factors, row, column,
                                static_cast<std::size_t>(w.shape().back()));
  return kept ? "" : std::string(kNotInRange);
}

ValueId build_scale_rows(Rewriter& rewriter) {
  const Tensor w = rows_scaled(rewriter.constant("w"), *row_factors(rewriter));
  return rewriter.emit("MatMul", {rewriter.value("x"), rewriter.add_constant(w, "w")});
}

// Conv(Pad(x, zeros), W, pads p) -> Conv(x, W, pads p + zeros) ----------------------------------------------

/// Begin and end pads per spatial axis in ONNX order, or why the Pad cannot be absorbed.
struct SpatialPads {
  std::vector<std::int64_t> pads;
  std::string reason;
};

SpatialPads spatial_pads(const Match& match) {
  if (match.attributes("pad").string_of("mode") != "constant")
    return {{}, "the Pad does not fill with a constant"};
  if (match.has("value") && !all_equal(match.constant("value"), 0)) {
    return {{}, "the Pad fills with a number other than 0"};
  }
  const auto rank = match.shape("x").size();
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (match.has("axes")) axes = normalised(ints_of(match, "axes"), static_cast<int>(rank));
  const std::vector<std::int64_t> given = ints_of(match, "pads");
  SpatialPads out;
  out.pads.assign(2 * (rank - 2), 0);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i % axes.size()]);
    if (given[i] == 0) continue;
    if (given[i] < 0) return {{}, "the Pad removes elements"};
    if (axis < 2) return {{}, "the Pad is not along spatial axes only"};
    out.pads[axis - 2 + (i < axes.size() ? 0 : rank - 2)] += given[i];
  }
  return out;
}

std::string guard_pad(const Match& match) { return spatial_pads(match).reason; }

/// Zeros that are multiplied with an infinite weight are NaN; pads of a convolution are not multiplied.
std::string guard_finite_weights(const Match& match) {
  const ir::Graph& graph = match.graph();
  ValueId w = match.value("w");
  const ir::NodeId producer = graph.value(w).producer;
  // Integers are finite, and so are their multiples by a moderate scale.
  if (producer.valid() && is_operator(graph.node(producer), "DequantizeLinear"))
    w = graph.node(producer).operands[1];
  const Tensor* constant = graph.constant(w);
  if (!constant || !all_finite(*constant)) return "weights may be infinite";
  return guard_pad(match);
}

ir::Attributes with_more_pads(const Match& match, std::string_view window) {
  ir::Attributes attributes = match.attributes(window);
  std::vector<std::int64_t> pads = attributes.ints_of("pads");
  const std::vector<std::int64_t> more = spatial_pads(match).pads;
  for (std::size_t i = 0; i < pads.size(); ++i) pads[i] += more[i];
  attributes.set("pads", pads);
  return attributes;
}

ValueId build_pad_into_conv(Rewriter& rewriter) {
  std::vector<ValueId> operands = {rewriter.value("x"), rewriter.value("w")};
  if (rewriter.has("b")) operands.push_back(rewriter.value("b"));
  return rewriter.emit("Conv", std::move(operands), with_more_pads(rewriter, "conv"));
}

/// The mean over a window of an explicitly padded image counts the padding; so must the pool then, for its
/// own padding too.
std::string guard_pad_into_average(const Match& match) {
  const ir::Attributes& pool = match.attributes("pool");
  if (pool.flag("ceil_mode")) return "ceil_mode lets windows reach beyond the padding";
  if (!pool.flag("count_include_pad")) {
    for (const std::int64_t pad : pool.ints_of("pads")) {
      if (pad != 0) return "the pool does not count its own padding";
    }
  }
  return guard_pad(match);
}

ValueId build_pad_into_average(Rewriter& rewriter) {
  ir::Attributes attributes = with_more_pads(rewriter, "pool");
  attributes.set("count_include_pad", std::int64_t{1});
  return rewriter.emit("AveragePool", {rewriter.value("x")}, std::move(attributes));
}

}  // namespace

const RuleTable& padding_rules() {
  static const RuleTable rules = [] {
    const Pattern pad =
        op("Pad", {any("x"), constant("pads"), constant("value").optional(), constant("axes").optional()},
           "pad");
    const Pattern conv = op("Conv", {pad, any("w"), any("b").optional()}, "conv");
    return RuleTable{
        // Pad(x) of zeros, then Conv -> Conv with larger pads
        {"pad-into-conv", Tier::kExact, conv, guard_finite_weights, build_pad_into_conv, true},
        // Also where weights may be infinite, and zeros times them NaN
        {"pad-into-conv", Tier::kReassociate, conv, guard_pad, build_pad_into_conv},
        // Pad(x) of zeros, then AveragePool -> AveragePool that counts its padding
        {"pad-into-average-pool", Tier::kExact, op("AveragePool", {pad}, "pool"), guard_pad_into_average,
         build_pad_into_average},
    };
  }();
  return rules;
}

const RuleTable& weight_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
    const Pattern c = constant("c"), divisor = constant("divisor"), w = constant("w"), x = any("x");
    const Pattern scaled_x = op("Mul", {x, c}, "scaled"), divided_x = op("Div", {x, divisor}, "scaled");
    const Pattern shifted_x = op("Add", {x, c}, "scaled");
    const Pattern product = op("MatMul", {x, w}, "product");
    const Pattern sum = op("Add", {product, constant("b")}, "sum");
    const auto conv_of = [&](const Pattern& operand) {
      return one_of({"Conv", "ConvTranspose"}, {operand, w, any("b").optional()}, "conv");
    };
    return RuleTable{
        // Conv(x, W, b) * c -> Conv(x, W * c, b * c)
        {"scale-into-conv", tier, op("Mul", {convolution(), c}), guard_scale_output, build_scale_output},
        // Conv(x, W, b) / c -> Conv(x, W / c, b / c)
        {"divisor-into-conv", tier, op("Div", {convolution(), divisor}), guard_scale_output,
         build_scale_output},
        // Conv(x, W, b) + c -> Conv(x, W, b + c)
        {"shift-into-conv", tier, op("Add", {convolution(), c}), guard_shift_output, build_shift_output},
        // Conv(x * c, W, b) -> Conv(x, W * c, b)
        {"scale-before-conv", tier, conv_of(scaled_x), guard_scale_input, build_scale_input},
        // Conv(x / c, W, b) -> Conv(x, W / c, b)
        {"divisor-before-conv", tier, conv_of(divided_x), guard_scale_input, build_scale_input},
        // Conv(x + c, W, b) without padding -> Conv(x, W, b + sum(W * c))
        {"shift-before-conv", tier, op("Conv", {shifted_x, w, constant("b").optional()}, "conv"),
         guard_shift_input, build_shift_input},
        // (x W) * c -> x (W * c)
        {"scale-into-matmul", tier, op("Mul", {product, c}), guard_scale_columns, build_scale_columns},
        // (x W) / c -> x (W / c)
        {"divisor-into-matmul", tier, op("Div", {product, divisor}), guard_scale_columns,
         build_scale_columns},
        // (x W + b) * c -> x (W * c) + b * c
        {"scale-into-biased-matmul", tier, op("Mul", {sum, c}), guard_scale_past_bias, build_scale_past_bias},
        // (x W + b) / c -> x (W / c) + b / c
        {"divisor-into-biased-matmul", tier, op("Div", {sum, divisor}), guard_scale_past_bias,
         build_scale_past_bias},
        // (x * c) W -> x (c * W)
        {"scale-before-matmul", tier, op("MatMul", {scaled_x, w}), guard_scale_rows, build_scale_rows},
        // (x / c) W -> x (W / c)
        {"divisor-before-matmul", tier, op("MatMul", {divided_x, w}), guard_scale_rows, build_scale_rows},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes
