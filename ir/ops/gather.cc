// Gather, GatherElements and GatherND: reads at indices held in a tensor. Known ones that are affine in their
// position become an affine view; those of a run wrap when negative and are checked before the kernel runs.

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/known_indices.h"

namespace gcompile::ir {
namespace {

void require_index(const NodeView& node, int i) {
  const ElementType type = node.element(i);
  if (type != ElementType::kInt32 && type != ElementType::kInt64) {
    operator_error(fmt::format("indices must be int32 or int64, not {}", name_of(type)));
  }
}

/// Known indices must lie in [-extent, extent).
void require_inside(const Tensor* indices, Dim extent) {
  if (!indices) return;
  for (std::int64_t i = 0; i < indices->count(); ++i) {
    const std::int64_t index = indices->int_at(i);
    if (!always_less_equal(-extent, index) || !always_less(index, extent)) {
      operator_error(
          fmt::format("index {} is outside [{}, {})", index, to_string(-extent), to_string(extent)));
    }
  }
}

/// Wraps the loaded scalar, adds the bounds check unless every value is known, and makes an index of it.
Index checked_index(LoopForm& form, int scalar, Dim extent, const Tensor* known) {
  Dag& dag = form.dag;
  bool negative = !known;
  for (std::int64_t i = 0; known && i < known->count() && !negative; ++i) negative = known->int_at(i) < 0;
  const int wrapped = negative ? wrap_index(dag, scalar, extent) : dag.cast(scalar, ElementType::kInt64);
  const Range range{0, extent};
  if (!known) form.checks.push_back({wrapped, range});
  return Index::loaded(wrapped, range);
}

/// The index that known ones are at the positions; nullopt where they are no formula, or not known.
std::optional<Index> known_index(const Tensor* known, const Shape& positions, std::int64_t component,
                                 Dim extent, const std::vector<Index>& position) {
  if (!known) return std::nullopt;
  const auto affine = affine_indices(*known, positions, component, extent);
  return affine ? std::optional(affine->at(position)) : std::nullopt;
}

// Gather ----------------------------------------------------------------------------------------------------

void infer_gather(InferContext& context) {
  require_index(context, 1);
  const Shape& x = context.shape(0);
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(x.size()));
  require_inside(context.constant(1), x[axis]);
  Shape out(x.begin(), x.begin() + axis);
  out.insert(out.end(), context.shape(1).begin(), context.shape(1).end());
  out.insert(out.end(), x.begin() + axis + 1, x.end());
  context.set_result(0, context.element(0), std::move(out));
}

Form lower_gather(const LowerContext& context) {
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(x.size()));
  const Dim extent = x[axis];
  LoopForm form = LoopForm::over(context.result(0).shape);
  const std::vector<Index> axes = form.identity();
  const auto first = axes.begin() + axis;
  const auto last = first + static_cast<std::ptrdiff_t>(indices.size());
  const std::vector<Index> position(first, last);
  const Tensor* known = context.constant(1);
  std::optional<Index> gathered = known_index(known, indices, 0, extent, position);
  if (!gathered) {
    const int scalar = form.dag.load(1, context.element(1), position);
    gathered = checked_index(form, scalar, extent, known);
  }
  std::vector<Index> index(axes.begin(), first);
  index.push_back(*gathered);
  index.insert(index.end(), last, axes.end());
  form.set_root(form.dag.load(0, context.element(0), std::move(index)));
  return form;
}

// GatherElements --------------------------------------------------------------------------------------------

void infer_gather_elements(InferContext& context) {
  require_index(context, 1);
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(x.size()));
  if (indices.size() != x.size()) operator_error("the indices must have the rank of the data");
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int>(i) != axis && !assume_less_equal(indices[i], x[i])) {
      operator_error(fmt::format("the indices have {} elements along axis {}, the data {}",
                                 to_string(indices[i]), i, to_string(x[i])));
    }
  }
  require_inside(context.constant(1), x[axis]);
  context.set_result(0, context.element(0), indices);
}

Form lower_gather_elements(const LowerContext& context) {
  const Shape& x = context.shape(0);
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(x.size()));
  const auto at = static_cast<std::size_t>(axis);
  LoopForm form = LoopForm::over(context.result(0).shape);
  std::vector<Index> index = form.identity();
  const Tensor* known = context.constant(1);
  std::optional<Index> gathered = known_index(known, context.shape(1), 0, x[at], index);
  if (!gathered) {
    const int scalar = form.dag.load(1, context.element(1), index);
    gathered = checked_index(form, scalar, x[at], known);
  }
  index[at] = *gathered;
  form.set_root(form.dag.load(0, context.element(0), std::move(index)));
  return form;
}

// GatherND --------------------------------------------------------------------------------------------------

void infer_gather_nd(InferContext& context) {
  require_index(context, 1);
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  const std::int64_t batch = context.attributes().int_of("batch_dims");
  const auto smaller = static_cast<std::int64_t>(std::min(x.size(), indices.size()));
  if (x.empty() || indices.empty()) operator_error("scalars have nothing to gather");
  if (batch < 0 || batch >= smaller) {
    operator_error(fmt::format("batch_dims = {} must be in [0, {})", batch, smaller));
  }
  if (!assume_equal_shapes(std::span(x).first(static_cast<std::size_t>(batch)),
                           std::span(indices).first(static_cast<std::size_t>(batch)))) {
    operator_error("the batch axes of data and indices differ");
  }
  const std::int64_t depth = indices.back();
  if (depth < 1 || depth > static_cast<std::int64_t>(x.size()) - batch) {
    operator_error(fmt::format("index tuples of {} do not fit {} axes", depth, x.size()));
  }
  Shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), x.begin() + batch + depth, x.end());
  context.set_result(0, context.element(0), std::move(out));
}

Form lower_gather_nd(const LowerContext& context) {
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  const std::int64_t batch = context.attributes().int_of("batch_dims");
  LoopForm form = LoopForm::over(context.result(0).shape);
  const std::vector<Index> axes = form.identity();
  std::vector<Index> index(axes.begin(), axes.begin() + batch);
  std::vector<Index> position(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(indices.size()) - 1);
  const Tensor* known = context.constant(1);
  const Shape tuples(indices.begin(), indices.end() - 1);
  position.emplace_back(0);
  for (std::int64_t k = 0; k < indices.back(); ++k) {
    const Dim extent = x[index.size()];
    std::optional<Index> gathered = known_index(known, tuples, k, extent, position);
    if (!gathered) {
      position.back() = Index(k);
      const int scalar = form.dag.load(1, context.element(1), position);
      gathered = checked_index(form, scalar, extent, nullptr);
    }
    index.push_back(*gathered);
  }
  index.insert(index.end(), axes.begin() + static_cast<std::ptrdiff_t>(indices.size()) - 1, axes.end());
  form.set_root(form.dag.load(0, context.element(0), std::move(index)));
  return form;
}

Operator record(std::string_view name, std::vector<int> versions, std::string_view attribute,
                std::string_view summary, void (*infer)(InferContext&), Form (*lower)(const LowerContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = {2, 2};
  op.attributes = {{attribute, AttributeKind::kInt, std::int64_t{0}}};
  op.summary = summary;
  op.infer = infer;
  op.lower = lower;
  return op;
}

}  // namespace

const Operator& operator_Gather() {
  static const Operator op = record("Gather", {1, 11, 13}, "axis", "slices of one axis at given indices",
                                    infer_gather, lower_gather);
  return op;
}

const Operator& operator_GatherElements() {
  static const Operator op =
      record("GatherElements", {11, 13}, "axis", "elements at given indices of one axis",
             infer_gather_elements, lower_gather_elements);
  return op;
}

const Operator& operator_GatherND() {
  static const Operator op = record("GatherND", {11, 12, 13}, "batch_dims", "slices at given index tuples",
                                    infer_gather_nd, lower_gather_nd);
  return op;
}

}  // namespace gcompile::ir
