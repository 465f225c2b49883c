// LpPool and GlobalLpPool: (sum |x|^p)^(1/p) over windows or all spatial axes, taken apart into element-wise
// operators around a mean or sum.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/ops/rewrite.h"
#include "ir/ops/window.h"

namespace gcompile::ir {
namespace {

/// p was a float in opset 1.
void normalise_power(RewriteContext& context) {
  Attributes& attributes = context.mutable_attributes();
  const auto at = attributes.all().find("p");
  if (at == attributes.all().end() || kind_of(at->second) != AttributeKind::kFloat) return;
  const float p = attributes.float_of("p");
  const auto whole = static_cast<std::int64_t>(p);
  if (static_cast<float>(whole) != p) operator_error(fmt::format("p = {} is not an integer", p));
  attributes.set("p", whole);
}

void normalise_pool(RewriteContext& context) {
  if (!context.attributes().has("kernel_shape")) operator_error("attribute 'kernel_shape' is missing");
  normalise_power(context);
  pad_open_axes(context, context.attributes().ints_of("kernel_shape"));
  normalise_window(context, {});
}

void require_power(const NodeView& node) {
  require_float(node, 0);
  if (node.attributes().int_of("p") < 1) operator_error("p must be 1 or more");
}

void infer_pool(InferContext& context) {
  require_power(context);
  const Window window = window_of(context.attributes());
  const Shape& x = context.shape(0);
  Shape y = {x[0], x[1]};
  for (int i = 0; i < window.spatial(); ++i) {
    y.push_back(window_count(window, i, x[i + 2], context.attributes().flag("ceil_mode")));
  }
  context.set_result(0, context.element(0), std::move(y));
}

void infer_global(InferContext& context) {
  require_power(context);
  Shape y = context.shape(0);
  if (y.size() < 3)
    operator_error(fmt::format("input 0 must have spatial axes, its shape is {}", to_string(y)));
  std::fill(y.begin() + 2, y.end(), 1);
  context.set_result(0, context.element(0), std::move(y));
}

ValueId to_power(RewriteContext& context, ValueId x, std::int64_t p) {
  if (p == 2) return context.emit("Mul", {x, x});
  x = context.emit("Abs", {x});
  if (p == 1) return x;
  return context.emit("Pow", {x, context.constant_scalar(context.type(x).element, static_cast<double>(p))});
}

ValueId root_of(RewriteContext& context, ValueId x, std::int64_t p) {
  if (p == 1) return x;
  if (p == 2) return context.emit("Sqrt", {x});
  const double exponent = 1 / static_cast<double>(p);
  return context.emit("Pow", {x, context.constant_scalar(context.type(x).element, exponent)});
}

/// The sum over a window is its mean times its taps: padding counts as 0, and ceil_mode becomes padding.
bool decompose_pool(RewriteContext& context) {
  const std::int64_t p = context.attributes().int_of("p");
  Window window = window_of(context.attributes());
  const Shape x = context.shape(0);
  const Shape y = context.result(0).shape;
  const auto spatial = static_cast<std::size_t>(window.spatial());
  ValueId powers = to_power(context, context.operand_id(0), p);
  Shape before(spatial + 2), behind(spatial + 2);  // where ceil_mode adds what only a run knows
  for (std::size_t i = 0; i < spatial; ++i) {
    const int axis = static_cast<int>(i);
    const Dim beyond = (y[i + 2] - 1) * window.strides[i] + window.span(axis) - window.begin(axis) - x[i + 2];
    if (beyond.is_constant()) {
      window.pads[i + spatial] = std::max<std::int64_t>(window.pads[i + spatial], beyond);
    } else {
      before[i + 2] = std::exchange(window.pads[i], 0);
      behind[i + 2] = beyond;
      window.pads[i + spatial] = 0;
    }
  }
  before.insert(before.end(), behind.begin(), behind.end());
  if (!are_constant(before)) powers = context.emit("Pad", {powers, context.constant_ints(before)});
  Attributes attributes;
  attributes.set("kernel_shape", window.kernel);
  attributes.set("strides", window.strides);
  attributes.set("dilations", window.dilations);
  attributes.set("pads", window.pads);
  attributes.set("count_include_pad", std::int64_t{1});
  const auto taps =
      std::accumulate(window.kernel.begin(), window.kernel.end(), std::int64_t{1}, std::multiplies<>());
  const ValueId mean = context.emit("AveragePool", {powers}, attributes);
  const ValueId sum = emit_scale(context, mean, static_cast<double>(taps));
  context.replace_result(0, root_of(context, sum, p));
  return true;
}

bool decompose_global(RewriteContext& context) {
  const std::int64_t p = context.attributes().int_of("p");
  std::vector<std::int64_t> axes;
  for (int axis = 2; axis < context.operand(0).rank(); ++axis) axes.push_back(axis);
  const ValueId powers = to_power(context, context.operand_id(0), p);
  const ValueId sum = context.emit("ReduceSum", {powers, context.constant_ints(axes)});
  context.replace_result(0, root_of(context, sum, p));
  return true;
}

Operator record(std::string_view name, std::vector<int> versions, std::string_view summary) {
  Operator o;
  o.name = name;
  o.versions = std::move(versions);
  o.attributes = {{"p", AttributeKind::kInt, std::int64_t{2}}};
  o.accuracy = Accuracy::kSum;
  o.summary = summary;
  return o;
}

}  // namespace

const Operator& operator_GlobalLpPool() {
  static const Operator op = [] {
    Operator o = record("GlobalLpPool", {1, 2, 22}, "p-norm over all spatial axes");
    o.normalise = normalise_power;
    o.infer = infer_global;
    o.decompose = decompose_global;
    return o;
  }();
  return op;
}

const Operator& operator_LpPool() {
  static const Operator op = [] {
    Operator o = record("LpPool", {1, 2, 11, 18, 22}, "p-norm over sliding windows");
    for (const AttributeSpec& spec : window_attributes()) o.attributes.push_back(spec);
    o.attributes.push_back({"ceil_mode", AttributeKind::kInt, std::int64_t{0}});
    o.normalise = normalise_pool;
    o.infer = infer_pool;
    o.decompose = decompose_pool;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
