// Scatters of as many updates as data says: those that are not there go behind the data, and nowhere.

#include "ir/ops/count_context.h"

namespace gcompile::ir {
namespace {

/// The data with room for one more along an axis, where updates go that are not there.
ValueId with_place_behind(CountContext& context, std::int64_t axis) {
  Shape padding = context.shape(0);
  padding[static_cast<std::size_t>(axis)] = 1;
  return emit_concat(context, {context.operand_id(0), emit_zeros(context, {context.element(0), padding})},
                     axis);
}

}  // namespace

std::optional<CountedResults> count_scatter_nd(CountContext& context) {
  const CountedAxis* const rows = context.counted(1);
  const CountedAxis* const updates = context.counted(2);
  if (!rows && !updates) return std::nullopt;
  if (context.counted(0) || !rows || rows->axis + 1 >= context.operand(1).rank())
    operator_error("scatters a number of elements that only data knows over others of that kind");
  if (updates ? updates->axis != rows->axis || updates->count != rows->count
              : context.shape(2)[static_cast<std::size_t>(rows->axis)] != 1)
    operator_error("has as many updates as there is room for indices, not as many as data chooses");
  const Dim behind = context.shape(0)[0];
  const ValueId data = with_place_behind(context, 0);
  const ValueId index = emit_cast(context, context.operand_id(1), ElementType::kInt64);
  const std::int64_t depth = context.shape(1).back().constant();
  const ValueId negative = context.op("Less", {index, context.number(0)});
  Shape sizes(context.shape(0).begin(), context.shape(0).begin() + depth);
  const ValueId wrapped =
      context.select(negative, context.op("Add", {index, context.constant_ints(sizes)}), index);
  Shape outside(static_cast<std::size_t>(depth), 0);
  outside[0] = behind;
  const ValueId safe = filled_or(context, wrapped, *rows, context.constant_ints(outside));
  const ValueId y = context.op("ScatterND", {data, safe, context.operand_id(2)}, context.attributes());
  return CountedResults{{emit_slice(context, y, 0, 0, behind)}};
}

std::optional<CountedResults> count_scatter_elements(CountContext& context) {
  const CountedAxis *const data = context.counted(0), *const indices = context.counted(1),
                           *const updates = context.counted(2);
  if (!indices && !updates) return std::nullopt;
  const int axis = normalise_axis(context.attributes().int_of("axis"), context.operand(0).rank());
  if (!indices || (updates && (updates->axis != indices->axis || updates->count != indices->count)))
    operator_error("has as many updates as there is room for indices, not as many as data chooses");
  const bool is_across = data && data->axis == axis;
  if (data && !is_across && (data->axis != indices->axis || data->count != indices->count))
    operator_error("scatters a number of elements that only data knows over others of that kind");
  const Dim behind = context.shape(0)[static_cast<std::size_t>(axis)];
  const ValueId size = is_across ? data->count : emit_number(context, behind);
  const ValueId index = emit_cast(context, context.operand_id(1), ElementType::kInt64);
  const ValueId is_negative = context.op("Less", {index, context.number(0)});
  const ValueId wrapped = context.select(is_negative, context.op("Add", {index, size}), index);
  const ValueId is_good = context.op(
      "And", {context.op("Less", {wrapped, size}), context.op("Less", {context.number(-1), wrapped})});
  // An index outside of what is filled ends the run.
  const ValueId checked = context.select(is_good, wrapped, emit_number(context, behind + 1));
  const ValueId safe = filled_or(context, checked, *indices, emit_number(context, behind));
  const ValueId y =
      context.op("ScatterElements", {with_place_behind(context, axis), safe, context.operand_id(2)},
                 context.attributes());
  CountedResult result{emit_slice(context, y, axis, 0, behind)};
  if (data) result.counted = *data;
  return CountedResults{result};
}

}  // namespace gcompile::ir
