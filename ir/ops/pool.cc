// MaxPool and AveragePool: a maximum or mean over sliding windows. Where MaxPool's Indices are wanted, they
// are looked for once the maxima are known: MaxPoolPositions(X, maxima).

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/interrupt.h"
#include "ir/graph/plain_loops.h"
#include "ir/ops/convolution.h"

namespace gcompile::ir {
namespace {

std::vector<std::int64_t> kernel_of(const NodeView& node) {
  if (!node.attributes().has("kernel_shape")) operator_error("attribute 'kernel_shape' is missing");
  return node.attributes().ints_of("kernel_shape");
}

/// Less than anything else of the type.
ValueId lowest_of(RewriteContext& context, ElementType type) {
  if (is_float(type)) return context.constant_scalar(type, -std::numeric_limits<double>::infinity());
  return context.constant_scalar(type, static_cast<double>(integer_lowest(type)));
}

void normalise_max(RewriteContext& context) {
  const std::vector<std::int64_t> kernel = kernel_of(context);
  // Indices count the elements of what is not padded.
  if (!context.has_result(1)) {
    pad_open_axes(context, kernel, [&] { return lowest_of(context, context.element(0)); });
  }
  normalise_window(context, {});
}

/// Where the padding is a formula and does not count: means with zeros in it, over the shares of the windows
/// that are not padding, which are such means of ones.
void normalise_average(RewriteContext& context) {
  const std::vector<std::int64_t> kernel = kernel_of(context);
  const auto pads = open_padding(context, kernel);
  const bool counts_padding =
      context.attributes().has("count_include_pad") && context.attributes().flag("count_include_pad");
  if (counts_padding) pad_open_axes(context, kernel);
  if (pads) context.mutable_attributes().set("auto_pad", std::string("VALID"));
  normalise_window(context, {});
  if (!pads || counts_padding) return;
  Attributes attributes = context.attributes();
  attributes.set("ceil_mode", std::int64_t{0});
  const ValueId lengths = context.constant_ints(*pads);
  const auto mean = [&](ValueId x) {
    return context.emit("AveragePool", {context.emit("Pad", {x, lengths})}, attributes);
  };
  Shape plane = context.shape(0);
  plane[0] = plane[1] = 1;
  const ValueId one = context.constant_scalar(context.element(0), 1);
  const ValueId shares = mean(context.emit("Expand", {one, context.constant_ints(plane)}));
  context.replace_with("Div", {mean(context.operand_id(0)), shares}, {});
}

Shape pooled_shape(const NodeView& node) {
  const Window window = window_of(node.attributes());
  const Shape& x = node.shape(0);
  Shape y = {x[0], x[1]};
  for (int i = 0; i < window.spatial(); ++i) {
    y.push_back(window_count(window, i, x[i + 2], node.attributes().flag("ceil_mode")));
  }
  return y;
}

/// Calls tap(position in the plane) for every tap of the window whose result is at `at` (spatial coordinates)
/// that lies in the plane, in row-major order. Returns how many taps lie there or in the padding; those
/// beyond, which ceil_mode reaches, are not counted.
template <class Tap>
std::int64_t visit_window(const Window& window, const Shape& input, const Shape& at, Tap tap) {
  Shape begin, end, start;
  std::int64_t padded = 1, inside = 1;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const int axis = static_cast<int>(i);
    const std::int64_t dilation = window.dilations[i], kernel = window.kernel[i];
    start.push_back(at[i] * window.strides[i] - window.begin(axis));
    const auto taps_below = [&](std::int64_t coordinate) {
      return std::clamp<std::int64_t>(ceil_div(coordinate - start[i], dilation), 0, kernel);
    };
    begin.push_back(taps_below(0));
    end.push_back(taps_below(input[i]));
    padded *= taps_below(input[i] + window.end(axis));
    inside *= std::max<std::int64_t>(end[i] - begin[i], 0);
  }
  if (inside == 0) return padded;
  for (Shape k = begin;;) {
    std::int64_t position = 0;
    for (std::size_t i = 0; i < k.size(); ++i) {
      position = position * input[i] + start[i] + k[i] * window.dilations[i];
    }
    tap(position);
    std::size_t i = k.size();
    while (i > 0 && ++k[i - 1] == end[i - 1]) {
      --i;
      k[i] = begin[i];
    }
    if (i == 0) return padded;
  }
}

/// Calls plane(result position, plane's first input position, spatial coordinates) for every result.
template <class Each>
void visit_results(const Shape& x, const Shape& y, Each each) {
  const Shape spatial_out(y.begin() + 2, y.end());
  const std::int64_t outputs = element_count(spatial_out);
  const std::int64_t inputs = element_count(Shape(x.begin() + 2, x.end()));
  Shape at(spatial_out.size(), 0);
  for (std::int64_t plane = 0; plane < y[0] * y[1]; ++plane) {
    for (std::int64_t i = 0; i < outputs; ++i) {
      poll_interrupt();
      std::int64_t rest = i;
      for (std::size_t axis = at.size(); axis-- > 0;) {
        at[axis] = rest % spatial_out[axis];
        rest /= spatial_out[axis];
      }
      each(plane * outputs + i, plane * inputs, at);
    }
  }
}

void infer_max(InferContext& context) {
  require_computable(context, 0);
  const ElementType type = context.element(0);
  if (!is_float(type) && (!is_integer(type) || bits_of(type) < 8 || bits_of(type) > 16)) {
    operator_error(fmt::format("input 0 must be floating point or of 8 or 16 bits, not {}", name_of(type)));
  }
  const Shape y = pooled_shape(context);
  context.set_result(0, type, y);
  context.set_result(1, ElementType::kInt64, y);
}

/// Position in the whole tensor as Indices counts it: row-major, or with the first spatial axis fastest when
/// storage_order is 1.
std::int64_t reported_position(std::int64_t base, std::int64_t position, const Shape& input,
                               bool column_major) {
  if (!column_major) return base + position;
  std::int64_t out = 0;
  std::int64_t stride = element_count(input);
  for (std::size_t i = input.size(); i-- > 0;) {
    stride /= input[i];
    out += position % input[i] * stride;
    position /= input[i];
  }
  return base + out;
}

std::vector<Tensor> evaluate_max(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const Window window = window_of(context.attributes());
  const Shape shape = context.result(0).shape;
  const Shape input(x.shape().begin() + 2, x.shape().end());
  const bool column_major = context.attributes().flag("storage_order");
  Tensor y(TensorType{x.element(), shape});
  Tensor indices(TensorType{ElementType::kInt64, shape});
  visit_results(x.shape(), shape, [&](std::int64_t result, std::int64_t base, const Shape& at) {
    Scalar best = is_float(x.element())
                      ? Scalar::of_real(x.element(), -std::numeric_limits<double>::infinity())
                      : Scalar::of_integer(x.element(), integer_lowest(x.element()));
    std::int64_t best_position = -1;
    visit_window(window, input, at, [&](std::int64_t position) {
      const Scalar v = x.at(base + position);
      const bool better = is_float(v.type)
                              ? v.real > best.real || (std::isnan(v.real) && !std::isnan(best.real))
                              : v.integer > best.integer;
      if (!better && best_position >= 0) return;
      best = v;
      best_position = position;
    });
    y.set(result, best);
    const std::int64_t reported =
        best_position < 0 ? -1 : reported_position(base, best_position, input, column_major);
    indices.set(result, Scalar::of_integer(ElementType::kInt64, reported));
  });
  return {y, indices};
}

bool decompose_max(RewriteContext& context) {
  if (!context.has_result(1) || context.graph().use_count(context.node().results[1]) == 0) return false;
  const ValueId x = context.operand_id(0);
  Attributes attributes = context.attributes();
  const std::int64_t order = attributes.int_of("storage_order");
  attributes.erase("storage_order");
  const ValueId maxima = context.emit("MaxPool", {x}, attributes);
  attributes.erase("ceil_mode");
  attributes.set("storage_order", order);
  context.replace_result(1, context.emit("MaxPoolPositions", {x, maxima}, attributes));
  if (context.has_result(0)) context.replace_result(0, maxima);
  return true;
}

void infer_positions(InferContext& context) {
  same_type(context);
  if (context.shape(1).size() != context.shape(0).size())
    operator_error("the maxima must have the rank of X");
  context.set_result(0, ElementType::kInt64, context.shape(1));
}

Form lower_positions(const LowerContext& context) {
  return window_positions(window_of(context.attributes()), context.operand(0), context.result(0).shape,
                          context.attributes().flag("storage_order"));
}

Form lower_max(const LowerContext& context) {
  const TensorType& result = context.result(0);
  const PoolWork work{window_of(context.attributes()), true, false};
  return spatial_contract(work, result, compute_type(result.element), 1);
}

void infer_average(InferContext& context) {
  require_float(context, 0);
  context.set_result(0, context.element(0), pooled_shape(context));
}

std::vector<Tensor> evaluate_average(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const Window window = window_of(context.attributes());
  const Shape shape = context.result(0).shape;
  const Shape input(x.shape().begin() + 2, x.shape().end());
  const bool include_padding = context.attributes().flag("count_include_pad");
  Tensor y(TensorType{x.element(), shape});
  visit_results(x.shape(), shape, [&](std::int64_t result, std::int64_t base, const Shape& at) {
    double sum = 0;
    std::int64_t inside = 0;
    const std::int64_t padded = visit_window(window, input, at, [&](std::int64_t position) {
      sum += x.real_at(base + position);
      ++inside;
    });
    const std::int64_t count = include_padding ? padded : inside;
    // A window that lies in the padding alone has the mean 0.
    y.set(result, Scalar::of_real(x.element(), count == 0 ? 0 : sum / static_cast<double>(count)));
  });
  return {y};
}

Form lower_average(const LowerContext& context) {
  const TensorType& result = context.result(0);
  const Attributes& attributes = context.attributes();
  const PoolWork work{window_of(attributes), false, attributes.flag("count_include_pad")};
  return spatial_contract(work, result, compute_type(result.element), 1);
}

Operator record(std::string_view name, std::vector<int> versions, std::string_view summary) {
  Operator o;
  o.name = name;
  o.versions = std::move(versions);
  o.attributes = window_attributes();
  o.attributes.push_back({"ceil_mode", AttributeKind::kInt, std::int64_t{0}});
  o.summary = summary;
  o.traits.computed_in_float = true;
  return o;
}

}  // namespace

const Operator& operator_AveragePool() {
  static const Operator op = [] {
    Operator o = record("AveragePool", {1, 7, 10, 11, 19, 22}, "mean over sliding windows");
    o.attributes.push_back({"count_include_pad", AttributeKind::kInt, std::int64_t{0}});
    o.accuracy = Accuracy::kSum;
    o.normalise = normalise_average;
    o.infer = infer_average;
    o.evaluate = evaluate_average;
    o.lower = lower_average;
    return o;
  }();
  return op;
}

const Operator& operator_MaxPool() {
  static const Operator op = [] {
    Operator o = record("MaxPool", {1, 8, 10, 11, 12, 22}, "maximum over sliding windows");
    o.attributes.push_back({"storage_order", AttributeKind::kInt, std::int64_t{0}});
    o.results = {1, 2};
    o.normalise = normalise_max;
    o.infer = infer_max;
    o.decompose = decompose_max;
    o.evaluate = evaluate_max;
    o.lower = lower_max;
    return o;
  }();
  return op;
}

const Operator& operator_MaxPoolPositions() {
  static const Operator op = [] {
    Operator o;
    o.name = "MaxPoolPositions";
    o.domain = "gcompile";
    o.versions = {1};
    o.operands = {2, 2};
    o.attributes = window_attributes();
    o.attributes.push_back({"storage_order", AttributeKind::kInt, std::int64_t{0}});
    o.summary = "positions of the maxima of sliding windows";
    o.traits.decides = true;
    o.infer = infer_positions;
    o.lower = lower_positions;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
