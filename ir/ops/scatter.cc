// ScatterND and ScatterElements: copies of data with some elements replaced or combined. Updates are applied
// in row-major order and rounded one by one, so that kernels can agree bit for bit. 16-bit floats are
// combined in float32 and rounded at the end: as running sums of float16, those of thousands of updates would
// stand still. Known indices that are those of a box make it an assignment to a slice, which is no kernel.

#include <fmt/format.h>

#include "base/interrupt.h"
#include "ir/ops/known_indices.h"

namespace gcompile::ir {
namespace {

void require_reduction(const NodeView& node) {
  const std::string& name = node.attributes().string_of("reduction");
  if (name != "none" && name != "add" && name != "mul" && name != "max" && name != "min") {
    operator_error(fmt::format("reduction '{}' is not known", printable(name)));
  }
  if (name != "none") require_computable(node, 0);
}

void require_operands(const NodeView& node) {
  require_computable(node, 0);
  if (node.element(0) != node.element(2)) operator_error("data and updates have different types");
  if (node.element(1) != ElementType::kInt64 && node.element(1) != ElementType::kInt32) {
    operator_error(fmt::format("indices must be int32 or int64, not {}", name_of(node.element(1))));
  }
  require_reduction(node);
}

ScatterCombine combine_of(const NodeView& node) {
  const std::string& name = node.attributes().string_of("reduction");
  return name == "add"   ? ScatterCombine::kAdd
         : name == "mul" ? ScatterCombine::kMul
         : name == "max" ? ScatterCombine::kMax
         : name == "min" ? ScatterCombine::kMin
                         : ScatterCombine::kReplace;
}

ScalarOp op_of(const std::string& reduction) {
  return reduction == "add"   ? ScalarOp::kAdd
         : reduction == "mul" ? ScalarOp::kMul
         : reduction == "max" ? ScalarOp::kMax
                              : ScalarOp::kMin;
}

Scalar combined(const std::string& reduction, const Scalar& old, const Scalar& update) {
  if (reduction == "none") return update;
  const Scalar pair[] = {old, update};
  const Scalar value = evaluate(op_of(reduction), pair);
  return is_float(value.type) ? Scalar::of_real(value.type, value.real) : value;
}

bool combines_halves(const NodeView& node) {
  const ElementType type = node.element(0);
  return combine_of(node) != ScatterCombine::kReplace && compute_type(type) != type;
}

Tensor converted(const Tensor& from, ElementType type) {
  if (from.element() == type) return from;
  Tensor out(TensorType{type, from.shape()});
  for (std::int64_t i = 0; i < out.count(); ++i) out.set(i, Scalar::of_real(type, from.real_at(i)));
  return out;
}

/// The type in which data and updates are combined.
ElementType combining_type(const NodeView& node) {
  return combines_halves(node) ? compute_type(node.element(0)) : node.element(0);
}

bool decompose(RewriteContext& context) {
  if (!combines_halves(context)) return false;
  const ElementType half = context.element(0), wide = combining_type(context);
  const std::vector<ValueId> operands = {emit_cast(context, context.operand_id(0), wide),
                                         context.operand_id(1),
                                         emit_cast(context, context.operand_id(2), wide)};
  const std::string name(context.node().op->name);
  context.replace_result(0, emit_cast(context, context.emit(name, operands, context.attributes()), half));
  return true;
}

/// Index in [0, extent), counted from the end when negative.
std::int64_t checked(std::int64_t index, std::int64_t extent) {
  if (index < -extent || index >= extent) {
    throw CompileError(ExitCode::kModel, fmt::format("index {} is outside [{}, {})", index, -extent, extent));
  }
  return index < 0 ? index + extent : index;
}

void infer_nd(InferContext& context) {
  require_operands(context);
  const Shape& data = context.shape(0);
  const Shape& indices = context.shape(1);
  if (indices.empty()) operator_error("indices must have rank 1 or more");
  const std::int64_t depth = indices.back();
  if (depth > static_cast<std::int64_t>(data.size())) {
    operator_error(fmt::format("indices address {} axes, data has {}", depth, data.size()));
  }
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + depth, data.end());
  if (context.shape(2) != expected) {
    operator_error(fmt::format("updates must have the shape {}, not {}", to_string(expected),
                               to_string(context.shape(2))));
  }
  context.set_result(0, context.operand(0));
}

std::vector<Tensor> evaluate_nd(const EvaluateContext& context) {
  Tensor y = converted(*context.value(0), combining_type(context));
  const Tensor& indices = *context.value(1);
  const Tensor updates = converted(*context.value(2), combining_type(context));
  const std::string& reduction = context.attributes().string_of("reduction");
  const Shape strides = row_major_strides(y.shape());
  const std::int64_t depth = indices.shape().back();
  std::int64_t slice = 1;
  for (auto axis = static_cast<std::size_t>(depth); axis < y.shape().size(); ++axis) slice *= y.shape()[axis];
  const std::int64_t tuples = slice == 0 ? 0 : updates.count() / slice;
  for (std::int64_t tuple = 0; tuple < tuples; ++tuple) {
    poll_interrupt();
    std::int64_t base = 0;
    for (std::int64_t i = 0; i < depth; ++i) {
      const auto axis = static_cast<std::size_t>(i);
      base += checked(indices.int_at(tuple * depth + i), y.shape()[axis]) * strides[axis];
    }
    for (std::int64_t i = 0; i < slice; ++i) {
      y.set(base + i, combined(reduction, y.at(base + i), updates.at(tuple * slice + i)));
    }
  }
  return {converted(y, context.element(0))};
}

/// Along an axis of the data: the positions that updates take, and which axis of the updates walks them,
/// perhaps backwards.
struct Taken {
  Range range;
  std::optional<std::size_t> walk = std::nullopt;
  bool is_reversed = false;
};

/// nullopt where the indices have gaps, or follow several axes of the updates.
std::optional<Taken> taken(const AffineIndices& indices, const Shape& positions) {
  std::optional<std::size_t> walk;
  for (std::size_t axis = 0; axis < positions.size(); ++axis) {
    if (indices.steps[axis] == 0) continue;
    if (walk || (indices.steps[axis] != 1 && indices.steps[axis] != -1)) return std::nullopt;
    walk = axis;
  }
  const Dim first = indices.first;
  if (!walk) return Taken{{first, first + 1}};
  if (indices.steps[*walk] == 1) return Taken{{first, first + positions[*walk]}, walk};
  return Taken{{first - positions[*walk] + 1, first + 1}, walk, true};
}

/// Data with a box of it replaced or combined: an assignment to a slice, as loops that fuse and check nothing.
/// The updates have `update_axes` axes of positions, then those of the data that no index addresses; each
/// position must be written once. nullopt where that is not so.
std::optional<LoopForm> box_form(const LowerContext& context, const std::vector<Taken>& axes,
                                 std::size_t update_axes) {
  LoopForm form = LoopForm::over(context.shape(0));
  const Shape& updates = context.shape(2);
  const std::vector<Index> own = form.identity();
  std::vector<Index> from(updates.size(), Index(0));
  std::vector<Range> box = form.ranges();
  std::vector<bool> walked(update_axes, false);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const Taken& it = axes[axis];
    box[axis] = it.range;
    if (!it.walk) continue;
    if (walked[*it.walk]) return std::nullopt;
    walked[*it.walk] = true;
    from[*it.walk] = it.is_reversed ? Index(it.range.high - 1) - own[axis] : own[axis] - Index(it.range.low);
  }
  for (std::size_t axis = 0; axis < update_axes; ++axis) {
    if (!walked[axis] && updates[axis] != 1) return std::nullopt;
  }
  for (std::size_t axis = axes.size(); axis < own.size(); ++axis) {
    from[update_axes + axis - axes.size()] = own[axis];
  }
  const ElementType type = context.element(0);
  const int data = form.dag.load(0, type, own);
  add_shell(form, box, data);
  int root = form.dag.load(2, type, std::move(from));
  if (combine_of(context) != ScatterCombine::kReplace) {
    root = form.dag.apply(op_of(context.attributes().string_of("reduction")), {data, root});
  }
  form.regions.push_back({std::move(box), root});
  return form;
}

/// Known indices that address a box.
std::optional<LoopForm> box_of_tuples(const LowerContext& context) {
  const Tensor* known = context.constant(1);
  if (!known) return std::nullopt;
  const Shape positions(known->shape().begin(), known->shape().end() - 1);
  std::vector<Taken> axes;
  for (std::int64_t k = 0; k < known->shape().back(); ++k) {
    const Dim extent = context.shape(0)[static_cast<std::size_t>(k)];
    const auto indices = affine_indices(*known, positions, k, extent);
    const auto along = indices ? taken(*indices, positions) : std::nullopt;
    if (!along) return std::nullopt;
    axes.push_back(*along);
  }
  return box_form(context, axes, positions.size());
}

std::optional<LoopForm> box_of_elements(const LowerContext& context, std::size_t axis) {
  const Tensor* known = context.constant(1);
  if (!known) return std::nullopt;
  const Shape& positions = known->shape();
  const auto indices = affine_indices(*known, positions, 0, context.shape(0)[axis]);
  if (!indices) return std::nullopt;
  std::vector<Taken> axes;
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const auto along = k == axis ? taken(*indices, positions) : Taken{{0, positions[k]}, k};
    if (!along) return std::nullopt;
    axes.push_back(*along);
  }
  return box_form(context, axes, positions.size());
}

Form lower_nd(const LowerContext& context) {
  if (auto box = box_of_tuples(context)) return *std::move(box);
  return LibraryForm{ScatterWork{true, 0, combine_of(context)}, 0};
}

void infer_elements(InferContext& context) {
  require_operands(context);
  const Shape& data = context.shape(0);
  const Shape& indices = context.shape(1);
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(data.size()));
  if (indices.size() != data.size()) operator_error("data and indices must have the same rank");
  if (context.shape(2) != indices) operator_error("indices and updates must have the same shape");
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (static_cast<int>(i) != axis && indices[i] > data[i]) {
      operator_error(fmt::format("indices of shape {} reach beyond data of shape {}", to_string(indices),
                                 to_string(data)));
    }
  }
  context.set_result(0, context.operand(0));
}

std::vector<Tensor> evaluate_elements(const EvaluateContext& context) {
  Tensor y = converted(*context.value(0), combining_type(context));
  const Tensor& indices = *context.value(1);
  const Tensor updates = converted(*context.value(2), combining_type(context));
  const std::string& reduction = context.attributes().string_of("reduction");
  const Shape strides = row_major_strides(y.shape());
  const Shape& box = indices.shape();
  const auto axis = static_cast<std::size_t>(
      normalise_axis(context.attributes().int_of("axis"), static_cast<int>(box.size())));
  for (std::int64_t i = 0; i < indices.count(); ++i) {
    poll_interrupt();
    std::int64_t rest = i, at = 0;
    for (std::size_t k = box.size(); k-- > 0;) {
      const std::int64_t coordinate =
          k == axis ? Dim(checked(indices.int_at(i), y.shape()[k])) : rest % box[k];
      at += coordinate * strides[k];
      rest /= box[k];
    }
    y.set(at, combined(reduction, y.at(at), updates.at(i)));
  }
  return {converted(y, context.element(0))};
}

Form lower_elements(const LowerContext& context) {
  const int axis = normalise_axis(context.attributes().int_of("axis"), context.operand(0).rank());
  if (auto box = box_of_elements(context, static_cast<std::size_t>(axis))) return *std::move(box);
  return LibraryForm{ScatterWork{false, axis, combine_of(context)}, 0};
}

/// Scatter is the deprecated name of ScatterElements.
void rename(RewriteContext& context) {
  const std::vector<ValueId> operands = context.node().operands;
  const Attributes attributes = context.attributes();
  context.replace_with("ScatterElements", operands, attributes);
}

Operator record(std::string_view name, std::vector<int> versions, std::string_view summary) {
  Operator o;
  o.name = name;
  o.versions = std::move(versions);
  o.operands = {3, 3};
  o.attributes = {{"reduction", AttributeKind::kString, std::string("none")}};
  o.summary = summary;
  o.decompose = decompose;
  return o;
}

}  // namespace

const Operator& operator_Scatter() {
  static const Operator op = [] {
    Operator o = record("Scatter", {9, 11}, "old name of ScatterElements");
    o.attributes.push_back({"axis", AttributeKind::kInt, std::int64_t{0}});
    o.normalise = rename;
    o.infer = infer_elements;
    o.evaluate = evaluate_elements;
    o.lower = lower_elements;
    return o;
  }();
  return op;
}

const Operator& operator_ScatterElements() {
  static const Operator op = [] {
    Operator o = record("ScatterElements", {11, 13, 16, 18}, "data with elements replaced along an axis");
    o.attributes.push_back({"axis", AttributeKind::kInt, std::int64_t{0}});
    o.infer = infer_elements;
    o.evaluate = evaluate_elements;
    o.lower = lower_elements;
    return o;
  }();
  return op;
}

const Operator& operator_ScatterND() {
  static const Operator op = [] {
    Operator o = record("ScatterND", {11, 13, 16, 18}, "data with slices replaced");
    o.infer = infer_nd;
    o.evaluate = evaluate_nd;
    o.lower = lower_nd;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
