// TensorScatter: new rows written into a cache, of every sample from a place of its own on.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

constexpr int kUpdate = 1, kPlaces = 2;

void infer(InferContext& context) {
  require_computable(context, 0);
  const Shape& cache = context.shape(0);
  const Shape& update = context.shape(kUpdate);
  if (context.element(kUpdate) != context.element(0)) operator_error("cache and update have different types");
  if (cache.size() < 2) operator_error("the cache must have rank 2 or more");
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(cache.size()));
  if (axis == 0) operator_error("the axis must not be that of the batch");
  Shape expected = cache;
  const auto at = static_cast<std::size_t>(axis);
  if (update.size() == cache.size() && always_less_equal(update[at], cache[at])) expected[at] = update[at];
  if (update != expected) {
    operator_error(fmt::format("an update of shape {} does not fit into a cache of shape {}",
                               to_string(update), to_string(cache)));
  }
  const std::string& mode = context.attributes().string_of("mode");
  if (mode != "linear" && mode != "circular") {
    operator_error(fmt::format("mode '{}' is not known", printable(mode)));
  }
  if (context.has_operand(kPlaces) &&
      (context.element(kPlaces) != ElementType::kInt64 || context.shape(kPlaces) != Shape{cache[0]})) {
    operator_error("write_indices must be int64, one for each sample of the batch");
  }
  context.set_result(0, context.operand(0));
}

/// Where every row of the update goes, along the axis: (batch, 1..., rows, 1).
ValueId rows_of(RewriteContext& context, std::size_t axis) {
  Shape one(axis + 2, 1);
  one[axis] = context.shape(kUpdate)[axis];
  const ValueId counting = emit_counting(context, 0, one);
  one[axis] = 1;
  one[0] = context.shape(0)[0];
  const ValueId at = context.emit("Add", {emit_reshape(context, context.operand_id(kPlaces), one), counting});
  if (context.attributes().string_of("mode") == "linear") return at;
  return context.emit("Mod", {at, emit_number(context, context.shape(0)[axis])});
}

/// The coordinates before the axis, for every row of the update: (batch, ..., rows, axis).
ValueId coordinates_before(RewriteContext& context, std::size_t axis) {
  const Shape& update = context.shape(kUpdate);
  Shape shape(update.begin(), update.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  if (!are_constant(shape)) {
    shape.push_back(1);
    std::vector<ValueId> columns;
    for (std::size_t k = 0; k < axis; ++k) {
      Shape one(axis + 2, 1);
      one[k] = shape[k];
      columns.push_back(
          context.emit("Expand", {emit_counting(context, 0, one), context.constant_ints(shape)}));
    }
    return emit_concat(context, std::move(columns), static_cast<std::int64_t>(axis) + 1);
  }
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> at(axis + 1, 0);
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    values.insert(values.end(), at.begin(), at.end() - 1);
    for (std::size_t k = axis + 1; k-- > 0 && ++at[k] == shape[k];) at[k] = 0;
  }
  shape.push_back(static_cast<std::int64_t>(axis));
  return context.constant(Tensor::of_ints(values, shape));
}

bool decompose(RewriteContext& context) {
  const Shape cache = context.shape(0), update = context.shape(kUpdate);
  const auto axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(cache.size()));
  const auto at = static_cast<std::size_t>(axis);
  if (!context.has_operand(kPlaces)) {
    std::vector<ValueId> parts = {context.operand_id(kUpdate)};
    if (update[at] != cache[at]) {
      parts.push_back(emit_slice(context, context.operand_id(0), axis, update[at], cache[at]));
    }
    context.replace_result(0, emit_concat(context, std::move(parts), axis));
    return true;
  }
  Shape last(update.begin(), update.begin() + axis + 1);
  last.push_back(1);
  const ValueId rows = context.emit("Expand", {rows_of(context, at), context.constant_ints(last)});
  const ValueId indices = emit_concat(context, {coordinates_before(context, at), rows}, axis + 1);
  context.replace_result(
      0, context.emit("ScatterND", {context.operand_id(0), indices, context.operand_id(kUpdate)}));
  return true;
}

}  // namespace

const Operator& operator_TensorScatter() {
  static const Operator op = {
      .name = "TensorScatter",
      .versions = {24},
      .operands = {2, 3},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{-2}},
                     {"mode", AttributeKind::kString, std::string("linear")}},
      .summary = "a cache with rows replaced, of every sample from a place of its own on",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
