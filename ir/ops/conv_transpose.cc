// ConvTranspose: Y[n, g*M + m, i*stride + k*dilation - pad] += X[n, g*C + c, i] * W[g*C + c, m, k], plus B.
// auto_pad, output_shape and output_padding become plain pads: output_padding is subtracted from the end
// pads, which may then be negative (outputs there hold only the bias). By SAME the result has input * stride
// elements, and where the windows do not reach that far (stride > kernel) only those that they reach, as
// ONNX Runtime and ONNX's shape inference have it: no padding is negative.

#include <fmt/format.h>

#include "ir/ops/convolution.h"

namespace gcompile::ir {
namespace {

std::vector<std::int64_t> take_ints(Attributes& attributes, const char* name, std::size_t count) {
  std::vector<std::int64_t> values(count, 0);
  if (attributes.has(name)) values = attributes.ints_of(name);
  attributes.erase(name);
  return values;
}

void normalise(RewriteContext& context) {
  const Shape weights = context.shape(1);
  const Shape x = context.shape(0);
  if (weights.size() < 3) operator_error("input 1 must be (C, M/group, kernel...)");
  Attributes& attributes = context.mutable_attributes();
  const std::string mode = attributes.has("auto_pad") ? attributes.string_of("auto_pad") : "NOTSET";
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    operator_error(fmt::format("auto_pad '{}' is not known", printable(mode)));
  }
  if (mode != "NOTSET") attributes.erase("pads");
  attributes.erase("auto_pad");
  normalise_window(context, {weights.begin() + 2, weights.end()});
  Window window = window_of(attributes);
  const auto spatial = static_cast<std::size_t>(window.spatial());
  const std::vector<std::int64_t> extra = take_ints(attributes, "output_padding", spatial);
  check_sizes("output_padding", extra, spatial, 0);
  std::vector<std::int64_t> wanted = take_ints(attributes, "output_shape", 0);
  if (wanted.size() == spatial + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty()) check_sizes("output_shape", wanted, spatial, 0);
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (std::size_t i = 0; i < spatial; ++i) {
    if (wanted.empty() && !same) {
      window.pads[i + spatial] -= extra[i];
      continue;
    }
    const std::int64_t goal = wanted.empty() ? x[i + 2] * window.strides[i] : Dim(wanted[i]);
    const std::int64_t full =
        (x[i + 2] - 1) * window.strides[i] + extra[i] + window.span(static_cast<int>(i));
    const std::int64_t total = std::max<std::int64_t>(0, full - goal);
    window.pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    // Where the size is given, whatever is missing or too much is settled at the end.
    const std::int64_t behind = wanted.empty() ? total : full - goal;
    window.pads[i + spatial] = behind - window.pads[i] - extra[i];
  }
  attributes.set("pads", window.pads);
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(1);
  require_float(context, 0);
  same_type(context);
  const Window window = window_of(context.attributes());
  const std::int64_t group = context.attributes().int_of("group");
  if (w.size() != x.size()) operator_error("inputs 0 and 1 must have the same rank");
  if (!std::equal(window.kernel.begin(), window.kernel.end(), w.begin() + 2, w.end())) {
    operator_error("kernel_shape disagrees with the weight's shape");
  }
  if (group < 1 || w[0] % group != 0 || !assume_equal(x[1], w[0])) {
    operator_error(fmt::format("the weight does not fit the input channels: W[0] = {}, expected {}",
                               to_string(w[0]), to_string(x[1])),
                   "the weight must be (C, M/group, kernel...) and C a multiple of group");
  }
  Shape y = {x[0], w[1] * group};
  if (context.has_operand(2) && context.shape(2) != Shape{y[1]})
    operator_error("the bias must have M elements");
  for (int i = 0; i < window.spatial(); ++i) {
    y.push_back(transposed_count(window, i, x[i + 2]));
    if (y.back() < 0) operator_error(fmt::format("spatial axis {} would have the size {}", i, y.back()));
  }
  context.set_result(0, context.element(0), std::move(y));
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Attributes& attributes = context.attributes();
  const RealTensor sums = convolve_transposed(reals_of(*context.value(0)), reals_of(*context.value(1)),
                                              window_of(attributes), attributes.int_of("group"));
  return {with_bias(sums, context.value(0)->element(), context.value(2))};
}

Form lower(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  return biased_contract(ConvTransposeWork{window_of(attributes), attributes.int_of("group")}, context);
}

}  // namespace

const Operator& operator_ConvTranspose() {
  static const Operator op = [] {
    Operator o;
    o.name = "ConvTranspose";
    o.versions = {1, 11, 22};
    o.operands = {2, 3};
    o.attributes = window_attributes();
    o.attributes.push_back({"group", AttributeKind::kInt, std::int64_t{1}});
    o.attributes.push_back({"output_padding", AttributeKind::kInts, std::nullopt});
    o.attributes.push_back({"output_shape", AttributeKind::kInts, std::nullopt});
    o.accuracy = Accuracy::kSum;
    o.summary = "transposed convolution";
    o.traits.computed_in_float = true;
    o.normalise = normalise;
    o.infer = infer;
    o.evaluate = evaluate;
    o.lower = lower;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
