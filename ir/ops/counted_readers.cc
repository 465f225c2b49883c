// Operators that read across a counted axis, by others that do not see what lies behind the count.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/ops/count_context.h"

namespace gcompile::ir {
namespace {

/// The first elements of each operand in turn.
std::optional<CountedResults> count_concat(CountContext& context) {
  const int rank = context.operand(0).rank();
  const int axis = normalise_axis(context.attributes().int_of("axis"), rank);
  bool is_across = false;
  for (int i = 0; i < context.operand_count(); ++i) {
    const CountedAxis* const counted = context.counted(i);
    is_across = is_across || (counted && counted->axis == axis);
  }
  if (!is_across) return std::nullopt;
  std::vector<ValueId> parts;
  ValueId positions, count;
  Dim room = 0;
  Dim whole = 0;
  for (int i = 0; i < context.operand_count(); ++i)
    whole = whole + context.shape(i)[static_cast<std::size_t>(axis)];
  const ValueId all = context.counting(whole);
  for (int i = 0; i < context.operand_count(); ++i) {
    const CountedAxis* const counted = context.counted(i);
    if (counted && counted->axis != axis) operator_error("joins results of two sizes that only data knows");
    const Dim size = context.shape(i)[static_cast<std::size_t>(axis)];
    const ValueId own = counted ? counted->count : emit_number(context, size);
    if (!positions.valid()) {
      positions = all;
    } else {
      // From `count` on it is the next operand, which begins at `room`.
      const ValueId shift = context.op("Sub", {emit_number(context, room), count});
      const ValueId is_here = context.op("Less", {all, count});
      const ValueId there =
          context.op("Min", {context.op("Add", {all, shift}), emit_number(context, whole - 1)});
      positions = context.select(is_here, positions, there);
    }
    count = count.valid() ? context.op("Add", {count, own}) : own;
    room = room + size;
    parts.push_back(context.operand_id(i));
  }
  const ValueId joined = emit_concat(context, parts, axis);
  return CountedResults{{context.gather(joined, positions, axis), CountedAxis{axis, count}}};
}

/// The first elements: as many as there are of those.
std::optional<CountedResults> count_slice(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted) return std::nullopt;
  if (!context.constant(1) || !context.constant(2)) operator_error("cuts at positions that only a run knows");
  const std::vector<std::int64_t> starts = context.constant_ints(1, "starts"),
                                  ends = context.constant_ints(2, "ends");
  std::vector<std::int64_t> axes(starts.size()), steps(starts.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (context.has_operand(3)) axes = context.constant_ints(3, "axes");
  if (context.has_operand(4)) steps = context.constant_ints(4, "steps");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (normalise_axis(axes[i], context.operand(0).rank()) != counted->axis) continue;
    if (steps[i] != 1 || starts[i] != 0 || ends[i] < 0)
      operator_error("cuts elsewhere than at the front of an axis whose size only data knows");
    const Dim size = context.shape(0)[static_cast<std::size_t>(counted->axis)];
    const ValueId x = emit_slice(context, context.operand_id(0), counted->axis, 0,
                                 always_less(ends[i], size) ? Dim(ends[i]) : size);
    std::vector<ValueId> operands = {x, {}, {}, {}, {}};
    std::vector<std::int64_t> others[4];
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (k == i) continue;
      others[0].push_back(starts[k]), others[1].push_back(ends[k]);
      others[2].push_back(axes[k]), others[3].push_back(steps[k]);
    }
    for (std::size_t k = 0; k < 4; ++k) operands[k + 1] = context.constant_ints(others[k]);
    const ValueId y = others[0].empty() ? x : context.op("Slice", operands);
    const ValueId count = context.op("Min", {counted->count, context.number(ends[i])});
    return CountedResults{{y, CountedAxis{counted->axis, count}}};
  }
  return std::nullopt;
}

/// Positions among the elements that are there; others end the run.
std::optional<CountedResults> count_gather(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  const int axis =
      normalise_axis(context.attributes().int_of("axis"), static_cast<int>(context.shape(0).size()));
  if (!counted || counted->axis != axis) return std::nullopt;
  if (context.counted(1)) require_computable(context, 1);
  const Dim size = context.shape(0)[static_cast<std::size_t>(axis)];
  ValueId index = emit_cast(context, context.operand_id(1), ElementType::kInt64);
  if (const CountedAxis* const filled = context.counted(1))
    index = filled_or(context, index, *filled, context.number(0));
  const ValueId is_negative = context.op("Less", {index, context.number(0)});
  index = context.select(is_negative, context.op("Add", {index, counted->count}), index);
  const ValueId is_there = context.op("Less", {index, counted->count});
  const ValueId is_behind = context.op("Less", {context.number(-1), index});
  ValueId is_good = context.op("And", {is_there, is_behind});
  if (const CountedAxis* const filled = context.counted(1))
    is_good = filled_or(context, is_good, *filled, context.constant_scalar(ElementType::kBool, 1));
  const ValueId safe = context.select(is_good, index, emit_number(context, size));
  CountedResult result{context.gather(context.operand_id(0), safe, axis)};
  if (const CountedAxis* const filled = context.counted(1))
    result.counted = CountedAxis{axis + filled->axis, filled->count};
  return CountedResults{result};
}

/// Rows that are not there go behind the data, and nowhere.
std::optional<CountedResults> count_scatter_nd(CountContext& context) {
  const CountedAxis* const rows = context.counted(1);
  const CountedAxis* const updates = context.counted(2);
  if (!rows && !updates) return std::nullopt;
  if (context.counted(0) || !rows || rows->axis + 1 >= context.operand(1).rank())
    operator_error("scatters a number of elements that only data knows over others of that kind");
  if (updates ? updates->axis != rows->axis || updates->count != rows->count
              : context.shape(2)[static_cast<std::size_t>(rows->axis)] != 1)
    operator_error("has as many updates as there is room for indices, not as many as data chooses");
  Shape padding = context.shape(0);
  const Dim behind = padding[0];
  padding[0] = 1;
  const ValueId data =
      emit_concat(context, {context.operand_id(0), emit_zeros(context, {context.element(0), padding})}, 0);
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

std::optional<CountedResults> count_shape(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted) return std::nullopt;
  const std::int64_t rank = context.operand(0).rank();
  std::int64_t begin = 0, end = rank;
  if (context.attributes().has("start")) begin = context.attributes().int_of("start");
  if (context.attributes().has("end")) end = context.attributes().int_of("end");
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  begin = clamped(begin), end = clamped(end);
  std::vector<ValueId> sizes;
  for (std::int64_t axis = begin; axis < end; ++axis) {
    sizes.push_back(axis == counted->axis
                        ? emit_reshape(context, counted->count, {1})
                        : context.constant_ints(Shape{context.shape(0)[static_cast<std::size_t>(axis)]}));
  }
  if (sizes.empty()) return std::nullopt;
  return CountedResults{{sizes.size() == 1 ? context.op("Identity", sizes) : emit_concat(context, sizes, 0)}};
}

std::optional<CountedResults> count_size(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted) return std::nullopt;
  Dim others = 1;
  for (int axis = 0; axis < context.operand(0).rank(); ++axis) {
    if (axis != counted->axis) others = others * context.shape(0)[static_cast<std::size_t>(axis)];
  }
  return CountedResults{{context.op("Mul", {counted->count, emit_number(context, others)})}};
}

/// The contracted axis: zeros on both sides, for what lies there may be no number.
std::optional<CountedResults> count_matmul(CountContext& context) {
  const CountedAxis* const left = context.counted(0);
  const CountedAxis* const right = context.counted(1);
  if (!left || !right || left->count != right->count) return std::nullopt;
  const int left_rank = context.operand(0).rank(), right_rank = context.operand(1).rank();
  if (left->axis != left_rank - 1 || right->axis != std::max(0, right_rank - 2)) return std::nullopt;
  const ValueId zero = context.constant_scalar(context.element(0), 0);
  return CountedResults{{context.op("MatMul", {context.filled(0, zero), context.filled(1, zero)})}};
}

using Neutral = Scalar (*)(ElementType);
Scalar zero_of(ElementType type) { return cast(Scalar::of_real(ElementType::kFloat64, 0), type); }
Scalar one_of(ElementType type) { return cast(Scalar::of_real(ElementType::kFloat64, 1), type); }
Scalar lowest_of(ElementType type) {
  if (is_float(type)) return Scalar::of_real(type, -std::numeric_limits<double>::infinity());
  return Scalar::of_integer(type, type == ElementType::kBool ? 0 : integer_lowest(type));
}
Scalar highest_of(ElementType type) {
  if (is_float(type)) return Scalar::of_real(type, std::numeric_limits<double>::infinity());
  return Scalar::of_integer(
      type, type == ElementType::kBool ? 1 : static_cast<std::int64_t>(integer_highest(type)));
}

/// Where the operator folds a counted axis, its operand with what changes nothing behind the count.
ValueId folded_operand(CountContext& context, Neutral neutral) {
  return context.filled(0, context.constant(Tensor::scalar(neutral(context.element(0)))));
}

/// Whether a node with axes as operand 1, or none, folds the axis.
bool folds(const CountContext& context, int axis) {
  if (!context.has_operand(1)) return !context.attributes().flag("noop_with_empty_axes");
  const std::vector<std::int64_t> axes = context.constant_ints(1, "axes");
  if (axes.empty()) return !context.attributes().flag("noop_with_empty_axes");
  return std::any_of(axes.begin(), axes.end(), [&](std::int64_t each) {
    return normalise_axis(each, context.operand(0).rank()) == axis;
  });
}

template <Neutral neutral>
std::optional<CountedResults> count_reduce(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted || !folds(context, counted->axis)) return std::nullopt;
  std::vector<ValueId> operands = {folded_operand(context, neutral)};
  if (context.has_operand(1)) operands.push_back(context.operand_id(1));
  return CountedResults{{context.op(context.node().op->name, operands, context.attributes())}};
}

/// The sum, divided by how many there are.
std::optional<CountedResults> count_mean(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted || !folds(context, counted->axis)) return std::nullopt;
  const ElementType type = context.element(0);
  std::vector<ValueId> operands = {folded_operand(context, zero_of)};
  if (context.has_operand(1)) operands.push_back(context.operand_id(1));
  const ValueId sum = context.op("ReduceSum", operands, context.attributes());
  Dim others = 1;
  for (int axis = 0; axis < context.operand(0).rank(); ++axis) {
    if (axis != counted->axis && folds(context, axis))
      others = others * context.shape(0)[static_cast<std::size_t>(axis)];
  }
  const ValueId terms = context.op("Mul", {counted->count, emit_number(context, others)});
  return CountedResults{{context.op("Div", {sum, emit_cast(context, terms, type)})}};
}

/// Along one axis, which the attribute names.
template <Neutral neutral>
std::optional<CountedResults> count_along(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  const int axis = normalise_axis(context.attributes().int_of("axis"), context.operand(0).rank());
  if (!counted || counted->axis != axis) return std::nullopt;
  const ValueId x = folded_operand(context, neutral);
  CountedResult result{context.op(context.node().op->name, {x}, context.attributes())};
  if (context.type(result.value).shape == context.shape(0)) result.counted = *counted;
  return CountedResults{result};
}

constexpr std::array kReaders = {
    CountRow{"ArgMax", count_along<lowest_of>},
    CountRow{"ArgMin", count_along<highest_of>},
    CountRow{"Concat", count_concat},
    CountRow{"Gather", count_gather},
    CountRow{"LogSoftmax", count_along<lowest_of>},
    CountRow{"MatMul", count_matmul},
    CountRow{"ReduceL1", count_reduce<zero_of>},
    CountRow{"ReduceL2", count_reduce<zero_of>},
    CountRow{"ReduceLogSum", count_reduce<zero_of>},
    CountRow{"ReduceLogSumExp", count_reduce<lowest_of>},
    CountRow{"ReduceMax", count_reduce<lowest_of>},
    CountRow{"ReduceMean", count_mean},
    CountRow{"ReduceMin", count_reduce<highest_of>},
    CountRow{"ReduceProd", count_reduce<one_of>},
    CountRow{"ReduceSum", count_reduce<zero_of>},
    CountRow{"ReduceSumSquare", count_reduce<zero_of>},
    CountRow{"ScatterND", count_scatter_nd},
    CountRow{"Shape", count_shape},
    CountRow{"Size", count_size},
    CountRow{"Slice", count_slice},
    CountRow{"Softmax", count_along<lowest_of>},
};

}  // namespace

std::span<const CountRow> counted_readers() { return kReaders; }

}  // namespace gcompile::ir
