// Reshape and its special cases Flatten, Squeeze and Unsqueeze: the same elements in row-major order.

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// ONNX Reshape: 0 copies the input's dim (unless allowzero), one -1 is what is left.
Shape target_shape(const NodeView& node) {
  const Shape& in = node.shape(0);
  Shape out = node.known_sizes(1, "the shape to reshape to");
  const bool allow_zero = node.attributes().flag("allowzero");
  Dim known = 1;
  int unknown = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && !allow_zero) {
      if (i >= in.size()) operator_error(fmt::format("dim {} copies a dim that the input has not", i));
      out[i] = in[i];
    }
    // A zero copies, -1 is the rest: what may be one of them at some runs only has no shape of its own.
    const bool is_plain =
        out[i].is_constant() || always_less(0, out[i]) ||
        (always_less_equal(0, out[i]) && (allow_zero || (i < in.size() && out[i] == in[i])));
    if (!is_plain) {
      operator_error(
          fmt::format("dim {}, {}, is 0 at some runs, where it would copy the input's", i, to_string(out[i])),
          "give the dimensions lower bounds by which it is not");
    }
    if (out[i].is_constant() && out[i] < -1) operator_error(fmt::format("the shape has the dim {}", out[i]));
    if (out[i] == -1) {
      if (unknown >= 0) operator_error("the shape has two dims of -1");
      unknown = static_cast<int>(i);
    } else {
      known *= out[i];
    }
  }
  const Dim count = element_count(in);
  if (unknown >= 0) {
    const std::optional<Dim> rest =
        known == 0 ? (count == 0 ? std::optional<Dim>(0) : std::nullopt) : exact_quotient(count, known);
    if (!rest)
      operator_error(fmt::format("{} elements do not fit the shape {}", to_string(count), to_string(out)));
    out[static_cast<std::size_t>(unknown)] = *rest;
  }
  if (!assume_equal(element_count(out), count)) {
    operator_error(fmt::format("{} elements do not fit the shape {}", to_string(count), to_string(out)));
  }
  return out;
}

void infer_reshape(InferContext& context) {
  context.set_result(0, context.element(0), target_shape(context));
}

std::vector<Tensor> evaluate_reshape(const EvaluateContext& context) {
  return {context.value(0)->reshaped(context.result(0).shape)};
}

Form lower_reshape(const LowerContext& context) {
  const Shape& out = context.result(0).shape;
  LoopForm form = LoopForm::over(out);
  const Index position = linearise(form.identity(), out);
  form.set_root(form.dag.load(0, context.element(0), delinearise(position, context.shape(0), form.ranges())));
  return form;
}

/// The shape became an input in opset 5.
void normalise_reshape(RewriteContext& context) { context.attribute_to_operand("shape", 1); }

/// Axes became an input in opset 13.
void normalise_axes_input(RewriteContext& context) { context.attribute_to_operand("axes", 1); }

Shape flattened(const NodeView& node) {
  const Shape& in = node.shape(0);
  const int rank = static_cast<int>(in.size());
  const std::int64_t given = node.attributes().int_of("axis");
  const int axis = given == rank ? rank : normalise_axis(given, rank);
  Shape out = {1, 1};
  for (int i = 0; i < rank; ++i) out[i < axis ? 0 : 1] *= in[i];
  return out;
}

Shape squeezed(const NodeView& node) {
  const Shape& in = node.shape(0);
  std::vector<int> axes;
  if (node.has_operand(1)) {
    axes = normalise_axes(node.constant_ints(1, "axes"), static_cast<int>(in.size()));
  } else {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::string trouble =
          fmt::format("no axes are named, and axis {} of {} is dropped only where {} is 1", i, to_string(in),
                      to_string(in[i]));
      if (is_one(in[i], trouble)) axes.push_back(static_cast<int>(i));
    }
  }
  Shape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int>(i))) {
      out.push_back(in[i]);
    } else if (!assume_equal(in[i], 1)) {
      operator_error(fmt::format("axis {} has {} elements and cannot be squeezed", i, to_string(in[i])));
    }
  }
  return out;
}

Shape unsqueezed(const NodeView& node) {
  const Shape& in = node.shape(0);
  const std::vector<std::int64_t> given = node.constant_ints(1, "axes");
  const std::size_t rank = in.size() + given.size();
  const std::vector<int> axes = normalise_axes(given, static_cast<int>(rank));
  Shape out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool added = std::binary_search(axes.begin(), axes.end(), static_cast<int>(i));
    out.push_back(added ? Dim(1) : in[next++]);
  }
  return out;
}

template <Shape (*kShape)(const NodeView&)>
void infer(InferContext& context) {
  context.set_result(0, context.element(0), kShape(context));
}

bool decompose(RewriteContext& context) {
  const Shape shape = context.result(0).shape;
  Attributes attributes;
  attributes.set("allowzero", std::int64_t{1});
  context.replace_result(
      0, context.emit("Reshape", {context.operand_id(0), context.constant_ints(shape)}, attributes));
  return true;
}

template <Shape (*kShape)(const NodeView&)>
Operator record(std::string_view name, std::vector<int> versions, Arity operands, std::string_view summary) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands;
  op.summary = summary;
  op.traits.keeps_elements = true;
  op.infer = infer<kShape>;
  op.decompose = decompose;
  op.evaluate = evaluate_reshape;
  op.lower = lower_reshape;
  return op;
}

}  // namespace

const Operator& operator_Reshape() {
  static const Operator op = {
      .name = "Reshape",
      .versions = {1, 5, 13, 14, 19, 21, 23, 24, 25},
      .operands = {2, 2},
      .attributes = {{"allowzero", AttributeKind::kInt, std::int64_t{0}}},
      .summary = "the same elements with other dims",
      .traits = {.keeps_elements = true},
      .normalise = normalise_reshape,
      .infer = infer_reshape,
      .evaluate = evaluate_reshape,
      .lower = lower_reshape,
  };
  return op;
}

const Operator& operator_Flatten() {
  static const Operator op = [] {
    Operator o = record<flattened>("Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, {1, 1}, "a matrix");
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{1}}};
    return o;
  }();
  return op;
}

const Operator& operator_Squeeze() {
  static const Operator op = [] {
    Operator o = record<squeezed>("Squeeze", {1, 11, 13, 21, 23, 24, 25}, {1, 2}, "removes axes of size 1");
    o.normalise = normalise_axes_input;
    return o;
  }();
  return op;
}

const Operator& operator_Unsqueeze() {
  static const Operator op = [] {
    Operator o = record<unsqueezed>("Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, {2, 2}, "adds axes of size 1");
    o.normalise = normalise_axes_input;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
