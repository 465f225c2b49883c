// Operators that read across a counted axis, by others that do not see what lies behind the count.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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

/// The first elements of one axis, up to a count.
std::optional<CountedResults> count_front(CountContext& context) {
  const CountedSizes& ends = *context.sizes(2);
  const auto is_one = [&](int i, std::int64_t number) {
    return !context.has_operand(i) || (context.constant(i) && context.constant(i)->count() == 1 &&
                                       context.constant(i)->int_at(0) == number);
  };
  if (ends.size() != 1 || !is_one(1, 0) || !is_one(4, 1) || (context.has_operand(3) && !context.constant(3)))
    operator_error("cuts elsewhere than at the front of one axis by a size that only data knows");
  const std::int64_t named = context.has_operand(3) ? context.constant(3)->int_at(0) : 0;
  const int axis = normalise_axis(named, context.operand(0).rank());
  const Dim size = context.shape(0)[static_cast<std::size_t>(axis)];
  const bool is_shorter = always_less(ends[0].size, size);
  const ValueId x = is_shorter ? emit_slice(context, context.operand_id(0), axis, 0, ends[0].size)
                               : context.op("Identity", {context.operand_id(0)});
  const bool fits = always_less_equal(ends[0].size, size);
  const ValueId count = fits ? ends[0].count : context.op("Min", {ends[0].count, emit_number(context, size)});
  return CountedResults{{x, CountedAxis{axis, count}}};
}

/// The first elements: as many as there are of those.
std::optional<CountedResults> count_slice(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted && context.sizes(2)) return count_front(context);
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
    const bool cuts = !always_less_equal(size, ends[i]);
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
    const ValueId count =
        cuts ? context.op("Min", {counted->count, context.number(ends[i])}) : counted->count;
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
  std::vector<ValueId> parts;
  CountedResult result;
  for (std::int64_t axis = begin; axis < end; ++axis) {
    const Dim size = context.shape(0)[static_cast<std::size_t>(axis)];
    const bool is_counted = axis == counted->axis;
    result.sizes.push_back({size, is_counted ? counted->count : ValueId{}});
    parts.push_back(is_counted ? emit_reshape(context, counted->count, {1})
                               : context.constant_ints(Shape{size}));
  }
  if (parts.empty()) return std::nullopt;
  result.value = parts.size() == 1 ? context.op("Identity", parts) : emit_concat(context, parts, 0);
  return CountedResults{result};
}

std::optional<CountedResults> count_size(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted) return std::nullopt;
  Dim others = 1;
  for (int axis = 0; axis < context.operand(0).rank(); ++axis) {
    if (axis != counted->axis) others = others * context.shape(0)[static_cast<std::size_t>(axis)];
  }
  const ValueId size = context.op("Mul", {counted->count, emit_number(context, others)});
  CountedResult result{size};
  if (others == 1)
    result.sizes = {{context.shape(0)[static_cast<std::size_t>(counted->axis)], counted->count}};
  return CountedResults{result};
}

/// A shape with room for what is counted, and the axis that is.
struct RoomyShape {
  ValueId sizes;
  std::size_t rank = 0;
  CountedAxis counted;
};

RoomyShape roomy_shape(CountContext& context, int operand) {
  const CountedSizes& sizes = *context.sizes(operand);
  RoomyShape out;
  Shape shape;
  for (const CountedSize& size : sizes) {
    shape.push_back(size.size);
    if (!size.count.valid()) continue;
    if (out.counted.count.valid()) operator_error("takes a shape of two sizes that only data knows");
    out.counted = {static_cast<int>(shape.size()) - 1, size.count};
  }
  out.sizes = context.constant_ints(shape);
  out.rank = shape.size();
  return out;
}

std::optional<CountedResults> count_constant_of_shape(CountContext& context) {
  if (!context.sizes(0)) return std::nullopt;
  const RoomyShape shape = roomy_shape(context, 0);
  return CountedResults{{context.op("ConstantOfShape", {shape.sizes}, context.attributes()), shape.counted}};
}

/// Sizes of operands that are as large as data says are those of the shape, or 1.
std::optional<CountedResults> count_expand(CountContext& context) {
  if (!context.sizes(1)) return std::nullopt;
  RoomyShape shape = roomy_shape(context, 1);
  const Shape& own = context.shape(0);
  const auto rank = static_cast<int>(std::max(own.size(), shape.rank));
  shape.counted.axis += rank - static_cast<int>(shape.rank);
  const int here = shape.counted.axis - (rank - static_cast<int>(own.size()));
  const CountedAxis* const counted = context.counted(0);
  const bool is_one = here < 0 || own[static_cast<std::size_t>(here)] == 1;
  if (counted ? counted->count != shape.counted.count || counted->axis != here : !is_one)
    operator_error("has another size along the axis that only data knows");
  return CountedResults{{context.op("Expand", {context.operand_id(0), shape.sizes}), shape.counted}};
}

/// To a shape that has the count of the operand where the operand's elements come to lie.
std::optional<CountedResults> count_reshape(CountContext& context) {
  if (!context.sizes(1)) return std::nullopt;
  const RoomyShape shape = roomy_shape(context, 1);
  const CountedAxis* const counted = context.counted(0);
  const ValueId y = context.op("Reshape", {context.operand_id(0), shape.sizes}, context.attributes());
  Dim before = 1, left = 1;
  for (int i = 0; counted && i < counted->axis; ++i)
    before = before * context.shape(0)[static_cast<std::size_t>(i)];
  for (int i = 0; i < shape.counted.axis; ++i)
    left = left * context.type(y).shape[static_cast<std::size_t>(i)];
  const auto size_at = [](const Shape& sizes, int axis) { return sizes[static_cast<std::size_t>(axis)]; };
  const bool fits =
      counted && counted->count == shape.counted.count && before == left &&
      size_at(context.shape(0), counted->axis) == size_at(context.type(y).shape, shape.counted.axis);
  if (!fits) operator_error("does not keep the axis whose size only data knows where its elements lie");
  return CountedResults{{y, shape.counted}};
}

/// From 0 up to a count.
std::optional<CountedResults> count_range(CountContext& context) {
  const CountedSizes* const limit = context.sizes(1);
  if (!limit) return std::nullopt;
  const std::optional<Scalar> start = constant_scalar(context, 0), step = constant_scalar(context, 2);
  if (!start || !step || start->integer != 0 || step->integer != 1)
    operator_error("counts otherwise than from 0 in steps of 1 up to what only data knows");
  return CountedResults{{context.counting(limit->at(0).size), CountedAxis{0, limit->at(0).count}}};
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

/// The operands where the operator folds a counted axis: behind the count is what changes nothing.
std::vector<ValueId> folded_operands(CountContext& context, Neutral neutral) {
  std::vector<ValueId> operands = {
      context.filled(0, context.constant(Tensor::scalar(neutral(context.element(0)))))};
  if (context.has_operand(1)) operands.push_back(context.operand_id(1));
  return operands;
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
  return CountedResults{
      {context.op(context.node().op->name, folded_operands(context, neutral), context.attributes())}};
}

/// The sum, divided by how many there are.
std::optional<CountedResults> count_mean(CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  if (!counted || !folds(context, counted->axis)) return std::nullopt;
  const ElementType type = context.element(0);
  const ValueId sum = context.op("ReduceSum", folded_operands(context, zero_of), context.attributes());
  Dim others = 1;
  for (int axis = 0; axis < context.operand(0).rank(); ++axis) {
    if (axis != counted->axis && folds(context, axis))
      others = others * context.shape(0)[static_cast<std::size_t>(axis)];
  }
  // The mean of nothing is 0, as ONNX Runtime has it.
  const ValueId rows = context.op("Max", {counted->count, context.number(1)});
  const ValueId terms = context.op("Mul", {rows, emit_number(context, others)});
  return CountedResults{{context.op("Div", {sum, emit_cast(context, terms, type)})}};
}

/// The counted axis where it is the one that the attribute names; null elsewhere.
const CountedAxis* counted_along(const CountContext& context) {
  const CountedAxis* const counted = context.counted(0);
  const int axis = normalise_axis(context.attributes().int_of("axis"), context.operand(0).rank());
  return counted && counted->axis == axis ? counted : nullptr;
}

/// Shares of what is filled: the rest has none.
std::optional<CountedResults> count_softmax(CountContext& context) {
  const CountedAxis* const counted = counted_along(context);
  if (!counted) return std::nullopt;
  const std::vector<ValueId> operands = folded_operands(context, lowest_of);
  return CountedResults{{context.op(context.node().op->name, operands, context.attributes()), *counted}};
}

/// The first of several as large as each other: what lies behind the count comes after all of them.
template <Neutral neutral>
std::optional<CountedResults> count_position(CountContext& context) {
  if (!counted_along(context)) return std::nullopt;
  if (context.attributes().flag("select_last_index"))
    operator_error("takes the last of several, which may lie behind those that data has chosen");
  return CountedResults{
      {context.op(context.node().op->name, folded_operands(context, neutral), context.attributes())}};
}

/// How many are asked for; more than `most` end the run with a status, as less than none do.
ValueId checked_number(CountContext& context, ValueId number, ValueId most, Dim room) {
  const ValueId one = emit_reshape(context, emit_cast(context, number, ElementType::kInt64), {});
  const ValueId is_negative = context.op("Less", {one, context.number(0)});
  const ValueId is_bad = context.op("Or", {is_negative, context.op("Less", {most, one})});
  return context.gather(context.counting(room + 1),
                        context.select(is_bad, emit_number(context, room + 1), one));
}

/// A k that the run gives: room for all, of which the first are counted. Of a counted axis what is filled is ranked: what
/// lies behind it ranks last, as the later one of equal elements does.
std::optional<CountedResults> count_top_k(CountContext& context) {
  const bool is_known = context.constant(1) || context.knows_sizes(1) || !context.has_operand(1);
  const int axis =
      normalise_axis(context.attributes().int_of("axis"), static_cast<int>(context.shape(0).size()));
  const CountedAxis* const counted = context.counted(0);
  const bool is_ranked = counted && counted->axis == axis;
  if (!is_ranked && (is_known || counted)) return std::nullopt;
  if (!context.has_operand(1) || context.operand(1).count() != 1 || is_float(context.element(1)))
    return std::nullopt;
  const Dim extent = context.shape(0)[static_cast<std::size_t>(axis)];
  const CountedSizes* const sizes = context.sizes(1);
  const Dim room = is_known ? context.known_sizes(1, "k")[0]
                   : sizes  ? min(sizes->at(0).size, extent)
                            : extent;
  const ValueId most = is_ranked ? counted->count : emit_number(context, extent);
  ValueId x = context.operand_id(0);
  if (is_ranked) {
    require_computable(context, 0);
    const ElementType type = context.element(0);
    const bool is_first_largest = context.attributes().flag("largest");
    const Scalar last = is_first_largest ? lowest_of(type)
                        : is_float(type) ? Scalar::of_real(type, std::nan(""))
                                         : highest_of(type);
    x = context.filled(0, context.constant(Tensor::scalar(last)));
  }
  const NodeId all =
      context.emit_node("TopK", {x, context.constant_ints(Shape{room})}, context.attributes(), 2);
  ValueId count;
  if (!is_known) {
    const bool is_within = sizes && (is_ranked ? sizes->at(0).count == counted->count
                                               : always_less_equal(sizes->at(0).size, extent));
    count = is_within ? sizes->at(0).count : checked_number(context, context.operand_id(1), most, room);
  }
  CountedResults results;
  for (int i = 0; i < context.result_count(); ++i) {
    ValueId value = context.graph().node(all).results[static_cast<std::size_t>(i)];
    if (!context.is_read(i)) {
      results.emplace_back();
    } else if (is_known) {
      // The result has as many as the model says, or the run ends with a status.
      const ValueId is_missing = context.op("Less", {most, emit_number(context, room)});
      const ValueId places = context.select(is_missing, emit_number(context, room), context.counting(room));
      results.push_back({context.gather(value, places, axis)});
    } else {
      results.push_back({value, CountedAxis{axis, count}});
    }
  }
  return results;
}

constexpr std::array kReaders = {
    CountRow{"ArgMax", count_position<lowest_of>},
    CountRow{"ArgMin", count_position<highest_of>},
    CountRow{"Concat", count_concat},
    CountRow{"ConstantOfShape", count_constant_of_shape},
    CountRow{"Expand", count_expand},
    CountRow{"Gather", count_gather},
    CountRow{"LogSoftmax", count_softmax},
    CountRow{"MatMul", count_matmul},
    CountRow{"Range", count_range},
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
    CountRow{"Reshape", count_reshape},
    CountRow{"ScatterElements", count_scatter_elements},
    CountRow{"ScatterND", count_scatter_nd},
    CountRow{"Shape", count_shape},
    CountRow{"Size", count_size},
    CountRow{"Slice", count_slice},
    CountRow{"Softmax", count_softmax},
    CountRow{"TopK", count_top_k},
};

}  // namespace

std::span<const CountRow> counted_readers() { return kReaders; }

}  // namespace gcompile::ir
