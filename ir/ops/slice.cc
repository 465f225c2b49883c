// Slice: result[i] = x[start + i * step] per axis, an affine view. Split is one Slice per output.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

struct AxisSlice {
  Dim start = 0;
  std::int64_t step = 1;
  Dim count = 0;
};

/// ONNX Slice-13: negative positions count from the end, then clamp to [0, n] for a positive step and to
/// [0, n - 1] (start) and [-1, n - 1] (end) for a negative one.
AxisSlice slice_axis(Dim start, Dim end, std::int64_t step, Dim n) {
  if (step == 0) operator_error("a step is 0");
  const auto clamped = [](Dim position, Dim low, Dim high) {
    // Models write "to the end" as the largest number.
    if (position.is_constant() && position.constant() >= highest(high)) return high;
    return max(low, min(position, high));
  };
  const auto from_start = [&](Dim position) {
    if (always_less_equal(0, position)) return position;
    if (position.is_constant() && position.constant() < -highest(n)) return Dim(-1);  // before the first one
    if (always_less(position, 0)) return position + n;
    operator_error(fmt::format("the position {} counts from the end of {} in some runs only",
                               to_string(position), to_string(n)),
                   "give the dimensions lower bounds by which it does in all or none");
  };
  start = from_start(start);
  end = from_start(end);
  AxisSlice slice;
  slice.step = step;
  if (step > 0) {
    slice.start = clamped(start, 0, n);
    slice.count = ceil_div(max(0, clamped(end, 0, n) - slice.start), step);
  } else {
    slice.start = clamped(start, 0, max(n - 1, 0));
    const Dim span = max(0, slice.start - clamped(end, -1, n - 1));
    // -INT64_MIN overflows; it is as far as any.
    slice.count = ceil_div(span, step == std::numeric_limits<std::int64_t>::min() ? kDimLimit : -step);
    if (!always_less(0, n)) slice.count = min(slice.count, n);  // of no elements, none
  }
  if (always_less_equal(slice.count, 1)) slice.step = 1;
  return slice;
}

std::vector<AxisSlice> slices_of(const NodeView& node) {
  const Shape& shape = node.shape(0);
  std::vector<AxisSlice> slices;
  for (const Dim n : shape) slices.push_back({0, 1, n});
  const Shape starts = node.known_sizes(1, "starts");
  const Shape ends = node.known_sizes(2, "ends");
  std::vector<std::int64_t> axes, steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (node.has_operand(3)) axes = node.constant_ints(3, "axes");
  if (node.has_operand(4)) steps = node.constant_ints(4, "steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    operator_error("starts, ends, axes and steps must have equal lengths");
  }
  const int rank = static_cast<int>(shape.size());
  normalise_axes(axes, rank);  // refuses repeated axes
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalise_axis(axes[i], rank));
    slices[axis] = slice_axis(starts[i], ends[i], steps[i], shape[axis]);
  }
  return slices;
}

/// starts, ends and axes became inputs in opset 10.
void normalise_slice(RewriteContext& context) {
  context.attribute_to_operand("starts", 1);
  context.attribute_to_operand("ends", 2);
  context.attribute_to_operand("axes", 3);
}

void infer_slice(InferContext& context) {
  Shape out;
  for (const AxisSlice& slice : slices_of(context)) out.push_back(slice.count);
  context.set_result(0, context.element(0), std::move(out));
}

Form lower_slice(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  std::vector<Index> index;
  for (const AxisSlice& slice : slices_of(context)) {
    const int axis = static_cast<int>(index.size());
    index.push_back(Index::axis(axis) * slice.step + Index(slice.start));
  }
  form.set_root(form.dag.load(0, context.element(0), std::move(index)));
  return form;
}

/// Lengths became an input in opset 13.
void normalise_split(RewriteContext& context) {
  context.attribute_to_operand("split", 1);
  // Required from opset 18 on when no lengths are given.
  if (context.has_operand(1) || context.attributes().has("num_outputs")) return;
  context.mutable_attributes().set("num_outputs", std::int64_t{context.result_count()});
}

Shape split_lengths(const NodeView& node) {
  const int axis = normalise_axis(node.attributes().int_of("axis"), node.operand(0).rank());
  const Dim n = node.shape(0)[axis];
  const std::int64_t parts = node.result_count();
  Shape lengths;
  if (node.has_operand(1)) {
    lengths = node.known_sizes(1, "split");
  } else {
    // Equal chunks; the last one is smaller when they do not come out even (opset 18).
    const Dim chunk = ceil_div(n, parts);
    const auto cut = [&](std::int64_t i) { return min(i * chunk, n); };
    for (std::int64_t i = 0; i < parts; ++i) lengths.push_back(cut(i + 1) - cut(i));
  }
  Dim sum = 0;
  for (const Dim length : lengths) {
    if (!always_less_equal(0, length))
      operator_error(fmt::format("a part has the length {}", to_string(length)));
    sum += length;
  }
  if (static_cast<std::int64_t>(lengths.size()) != parts || !assume_equal(sum, n)) {
    operator_error(fmt::format("lengths {} do not split {} elements into {} outputs", to_string(lengths),
                               to_string(n), parts));
  }
  return lengths;
}

void infer_split(InferContext& context) {
  const Attributes& attributes = context.attributes();
  if (attributes.has("num_outputs") && attributes.int_of("num_outputs") != context.result_count()) {
    operator_error("num_outputs disagrees with the number of outputs");
  }
  const Shape lengths = split_lengths(context);
  const int axis = normalise_axis(attributes.int_of("axis"), context.operand(0).rank());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    TensorType type = context.operand(0);
    type.shape[axis] = lengths[i];
    context.set_result(static_cast<int>(i), std::move(type));
  }
}

bool decompose_split(RewriteContext& context) {
  const Shape lengths = split_lengths(context);
  const std::vector<std::int64_t> axis = {context.attributes().int_of("axis")};
  Dim start = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Shape from = {start}, to = {start + lengths[i]};
    start += lengths[i];
    if (!context.has_result(static_cast<int>(i))) continue;
    const ValueId part = context.emit("Slice", {context.operand_id(0), context.constant_ints(from),
                                                context.constant_ints(to), context.constant_ints(axis)});
    context.replace_result(static_cast<int>(i), part);
  }
  return true;
}

/// Copies whole blocks: shapes are often split while the model computes them.
std::vector<Tensor> evaluate_split(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const auto axis =
      static_cast<std::size_t>(normalise_axis(context.attributes().int_of("axis"), x.type().rank()));
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < x.shape().size(); ++i) inner *= x.shape()[i];
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t length : split_lengths(context)) {
    TensorType type = x.type();
    type.shape[axis] = length;
    Tensor part(type);
    const std::int64_t block = length * inner;
    for (std::int64_t i = 0; i < part.count(); ++i) {
      part.set(i, x.at((i / block * x.shape()[axis] + start) * inner + i % block));
    }
    parts.push_back(std::move(part));
    start += length;
  }
  return parts;
}

}  // namespace

const Operator& operator_Slice() {
  static const Operator op = {
      .name = "Slice",
      .versions = {1, 10, 11, 13},
      .operands = {3, 5},
      .summary = "a range of every axis",
      .normalise = normalise_slice,
      .infer = infer_slice,
      .lower = lower_slice,
  };
  return op;
}

const Operator& operator_Split() {
  static const Operator op = {
      .name = "Split",
      .versions = {1, 2, 11, 13, 18},
      .operands = {1, 2},
      .results = {1, -1},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{0}},
                     {"num_outputs", AttributeKind::kInt, std::nullopt}},
      .summary = "consecutive parts along an axis",
      .normalise = normalise_split,
      .infer = infer_split,
      .decompose = decompose_split,
      .evaluate = evaluate_split,
  };
  return op;
}

}  // namespace gcompile::ir
