// Operators whose result is as large as data says.

#include "ir/ops/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/count_context.h"

namespace gcompile::ir {
namespace {

/// Positions of what is true among `bools`, of one axis, in their order, and behind them those of the rest; and
/// how many are true.
struct Chosen {
  ValueId positions, count;
};

Chosen chosen_of(CountContext& context, ValueId bools) {
  const Dim size = context.type(bools).shape[0];
  if (lowest(size) < 1 && highest(size) < 1) {
    return {emit_zeros(context, {ElementType::kInt64, {size}}), context.number(0)};
  }
  const ValueId ones = context.as_integers(bools), so_far = context.running_sum(ones);
  const ValueId last = emit_slice(context, so_far, 0, size - 1, size);
  const ValueId count = emit_reshape(context, last, {});
  const ValueId all = context.counting(size);
  const ValueId place_of_true = context.op("Sub", {so_far, context.number(1)});
  const ValueId place_of_false = context.op("Add", {count, context.op("Sub", {all, so_far})});
  const ValueId places = context.select(bools, place_of_true, place_of_false);
  return {context.scattered(all, places, all), count};
}

std::optional<CountedResults> count_non_zero(CountContext& context) {
  if (context.constant(0)) return std::nullopt;
  require_computable(context, 0);
  const Shape shape = context.shape(0);
  if (shape.empty()) operator_error("of a scalar that only a run knows is not supported");
  ValueId holds = context.operand_id(0);
  if (context.element(0) != ElementType::kBool)
    holds = context.op("Not", {context.op("Equal", {holds, context.constant_scalar(context.element(0), 0)})});
  if (const CountedAxis* const axis = context.counted(0))
    holds = filled_or(context, holds, *axis, context.constant_scalar(ElementType::kBool, 0));
  const Dim size = element_count(shape);
  const Chosen chosen = chosen_of(context, emit_reshape(context, holds, {size}));
  const auto rank = static_cast<std::int64_t>(shape.size());
  const ValueId row = emit_reshape(context, chosen.positions, {1, size});
  const auto column = [&](const Shape& sizes) {
    return emit_reshape(context, context.constant_ints(sizes), {rank, 1});
  };
  const ValueId steps = context.op("Div", {row, column(row_major_strides(shape))});
  return CountedResults{{context.op("Mod", {steps, column(shape)}), CountedAxis{1, chosen.count}}};
}

std::optional<CountedResults> count_compress(CountContext& context) {
  if (context.constant(1)) return std::nullopt;
  if (context.element(1) != ElementType::kBool || context.shape(1).size() != 1)
    operator_error(
        fmt::format("the condition must be bool of one axis, it is {}", to_string(context.operand(1))));
  ValueId x = context.operand_id(0);
  std::int64_t axis = 0;
  if (context.attributes().has("axis")) {
    axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(context.shape(0).size()));
  } else {
    if (context.counted(0) && context.shape(0).size() > 1)
      operator_error("flattens an axis whose size only data knows");
    x = emit_reshape(context, x, {element_count(context.shape(0))});
  }
  // Conditions beyond the last element choose nothing.
  const Dim extent = context.type(x).shape[static_cast<std::size_t>(axis)], length = context.shape(1)[0];
  const bool is_longer = !always_less_equal(length, extent);
  if (is_longer && !always_less_equal(extent, length)) {
    operator_error(fmt::format("has {} conditions for {} elements", to_string(length), to_string(extent)),
                   "bounds of --dim by which one is at most the other");
  }
  const ValueId no = context.constant_scalar(ElementType::kBool, 0);
  const CountedAxis* const rows = context.counted(0);
  if (rows && rows->axis != axis) operator_error("has two axes whose sizes only data knows");
  ValueId all = context.filled(1, no);
  // Conditions behind the count of the data choose nothing either.
  if (rows) all = filled_or(context, all, {0, rows->count}, no);
  const Chosen chosen = chosen_of(context, is_longer ? emit_slice(context, all, 0, 0, extent) : all);
  return CountedResults{
      {context.gather(x, chosen.positions, axis), CountedAxis{static_cast<int>(axis), chosen.count}}};
}

/// The positions of elements, or slices, in ascending order, equal ones by position; and which of them, in that
/// order, begin a run of equal ones.
struct Sorted {
  ValueId positions, begins;
};

Sorted sorted_elements(CountContext& context, ValueId x) {
  const Dim size = context.type(x).shape[0];
  Attributes ascending = context.along(0);
  ascending.set("largest", std::int64_t{0});
  ascending.set("sorted", std::int64_t{1});
  const NodeId sort = context.emit_node("TopK", {x, context.constant_ints(Shape{size})}, ascending, 2);
  const ValueId values = context.graph().node(sort).results[0];
  const ValueId positions = context.graph().node(sort).results[1];
  const ValueId before = emit_slice(context, values, 0, 0, size - 1);
  const ValueId same = context.op("Equal", {emit_slice(context, values, 0, 1, size), before});
  const ValueId yes = context.constant(
      Tensor::filled({ElementType::kBool, Shape{1}}, Scalar::of_integer(ElementType::kBool, 1)));
  return {positions, emit_concat(context, {yes, context.op("Not", {same})}, 0)};
}

/// Each of `rows`, (count, width), is compared with each other one, by the first of their elements that differ.
Sorted sorted_rows(CountContext& context, ValueId rows) {
  constexpr std::int64_t kMostElements = 1 << 20;
  const Dim count = context.type(rows).shape[0], width = context.type(rows).shape[1];
  if (!always_less_equal(count * count * width, kMostElements))
    operator_error("of so many slices that only a run knows is not supported",
                   "without an axis there is no limit");
  const ValueId left = emit_reshape(context, rows, {count, 1, width});
  const ValueId right = emit_reshape(context, rows, {1, count, width});
  const ValueId differ = context.as_integers(context.op("Not", {context.op("Equal", {left, right})}));
  Attributes first = context.along(2);
  first.set("keepdims", std::int64_t{1});
  const ValueId at = context.op("ArgMax", {differ}, first);
  const ValueId shape = context.constant_ints(Shape{count, count, width});
  const auto deciding = [&](ValueId side) {
    const ValueId all = context.op("Expand", {side, shape});
    return emit_reshape(context, context.op("GatherElements", {all, at}, context.along(2)), {count, count});
  };
  const auto sum = [&](ValueId values, std::int64_t axis) {
    Attributes flat;
    flat.set("keepdims", std::int64_t{0});
    return context.op("ReduceSum", {values, context.constant_ints(std::vector<std::int64_t>{axis})}, flat);
  };
  const ValueId same = context.op("Equal", {sum(differ, 2), context.number(0)});
  const ValueId less = context.op("Less", {deciding(left), deciding(right)});
  const ValueId rises =
      context.op("Less", {emit_counting(context, 0, {count, 1}), emit_counting(context, 0, {1, count})});
  // How many rows come before each one, and how many of those are equal to it.
  const ValueId smaller = sum(context.as_integers(less), 0);
  const ValueId equal = sum(context.as_integers(context.op("And", {same, rises})), 0);
  const ValueId places = context.op("Add", {smaller, equal});
  const ValueId all = context.counting(count);
  const ValueId begins = context.as_integers(context.op("Equal", {equal, context.number(0)}));
  return {context.scattered(all, places, all),
          emit_cast(context, context.scattered(all, places, begins), ElementType::kBool)};
}

/// Results that nobody reads are none.
CountedResults read_results(const CountContext& context, CountedResults results) {
  results.resize(static_cast<std::size_t>(context.result_count()));
  for (int i = 0; i < context.result_count(); ++i) {
    if (!context.is_read(i)) results[static_cast<std::size_t>(i)] = {};
  }
  return results;
}

/// Slices without elements are all alike.
CountedResults unique_of_nothing(CountContext& context, std::int64_t axis, Dim size) {
  const std::int64_t count = size == 0 ? 0 : 1;
  const ValueId x = context.attributes().has("axis") ? context.operand_id(0)
                                                     : emit_reshape(context, context.operand_id(0), {size});
  const ValueId none = emit_zeros(context, {ElementType::kInt64, {count}});
  const ValueId often = context.constant_ints(count == 0 ? Shape{} : Shape{size});
  return read_results(context, {{emit_slice(context, x, axis, 0, count)},
                                {none},
                                {emit_zeros(context, {ElementType::kInt64, {size}})},
                                {often}});
}

std::optional<CountedResults> count_unique(CountContext& context) {
  if (context.constant(0)) return std::nullopt;
  require_computable(context, 0);
  if (context.counted(0)) operator_error("of a number of elements that only data knows is not supported");
  const Shape shape = context.shape(0);
  const bool has_axis = context.attributes().has("axis");
  const std::int64_t axis =
      has_axis ? normalise_axis(context.attributes().int_of("axis"), static_cast<int>(shape.size())) : 0;
  const Dim size = has_axis ? shape[static_cast<std::size_t>(axis)] : element_count(shape);
  if (element_count(shape) == 0) return unique_of_nothing(context, axis, size);
  if (lowest(element_count(shape)) < 1) operator_error("of what may have no elements is not supported");
  const ValueId x = has_axis ? context.operand_id(0) : emit_reshape(context, context.operand_id(0), {size});
  const bool has_rows = has_axis && shape.size() > 1;
  ValueId rows;
  if (has_rows) {
    std::vector<std::int64_t> perm = {axis};
    Dim width = 1;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(shape.size()); ++i) {
      if (i == axis) continue;
      perm.push_back(i);
      width = width * shape[static_cast<std::size_t>(i)];
    }
    rows = emit_reshape(context, emit_transpose(context, x, perm), {size, width});
  }
  const Sorted sorted = has_rows ? sorted_rows(context, rows) : sorted_elements(context, x);
  // The number of the run that each sorted element is in.
  const ValueId runs =
      context.op("Sub", {context.running_sum(context.as_integers(sorted.begins)), context.number(1)});
  const Chosen starts = chosen_of(context, sorted.begins);
  const ValueId first_of_run = context.gather(sorted.positions, starts.positions);
  const ValueId all = context.counting(size);
  const ValueId next = emit_concat(
      context, {emit_slice(context, starts.positions, 0, 1, size), context.constant_ints(Shape{size})}, 0);
  const ValueId is_last = context.op("Equal", {all, context.op("Sub", {starts.count, context.number(1)})});
  const ValueId ends = context.select(is_last, emit_number(context, size), next);
  const ValueId lengths = context.op("Sub", {ends, starts.positions});
  ValueId values = context.gather(x, first_of_run, axis), firsts = first_of_run, counts = lengths;
  ValueId inverse = context.scattered(all, sorted.positions, runs);
  if (!context.attributes().flag("sorted")) {
    // Runs in the order of their first elements.
    const ValueId is_first = context.scattered(all, sorted.positions, context.as_integers(sorted.begins));
    const Chosen order = chosen_of(context, emit_cast(context, is_first, ElementType::kBool));
    values = context.gather(x, order.positions, axis);
    firsts = order.positions;
    counts = context.gather(lengths, context.gather(inverse, order.positions));
    const ValueId place = context.op("Sub", {context.running_sum(is_first), context.number(1)});
    inverse = context.gather(place, context.gather(first_of_run, inverse));
  }
  const CountedAxis counted{0, starts.count};
  CountedResults results = {{values, CountedAxis{static_cast<int>(axis), starts.count}},
                            {firsts, counted},
                            {inverse, std::nullopt},
                            {counts, counted}};
  return read_results(context, std::move(results));
}

std::int64_t one_integer(const Tensor& tensor) {
  if (tensor.count() != 1 || tensor.element() != ElementType::kInt64)
    operator_error("max_output_boxes_per_class must be one int64");
  return tensor.int_at(0);
}

/// Boxes that no box with a higher score suppresses, class by class.
std::optional<CountedResults> count_non_max_suppression(CountContext& context) {
  constexpr int kScores = 1, kMost = 2;
  bool is_known = true;
  for (int i = 0; i < context.operand_count(); ++i)
    is_known = is_known && (!context.has_operand(i) || context.constant(i));
  if (is_known) return std::nullopt;
  std::vector<ValueId> operands(5);
  for (int i = 0; i < context.operand_count(); ++i)
    operands[static_cast<std::size_t>(i)] = context.operand_id(i);
  const CountedAxis *const boxes = context.counted(0), *const scores = context.counted(kScores);
  if (boxes || scores) {
    const bool is_along_boxes =
        boxes && scores && boxes->axis == 1 && scores->axis == 2 && boxes->count == scores->count;
    if (!is_along_boxes)
      operator_error("of a number of images, of classes, or of boxes or scores alone that only data knows");
    // A score that is no number selects nothing.
    operands[kScores] =
        filled_or(context, operands[kScores], *scores, context.constant_scalar(ElementType::kFloat32, NAN));
  }
  Attributes attributes = context.attributes();
  const Tensor* const most = context.constant(kMost);
  if (!context.has_operand(kMost) || most) {
    // Where the node does not say how many, there are none.
    attributes.set("most", most ? std::max<std::int64_t>(one_integer(*most), 0) : 0);
    operands[kMost] = {};
  }
  const NodeId node = context.emit_node("Suppress", operands, attributes, 2);
  const std::vector<ValueId> results = context.graph().node(node).results;
  return CountedResults{{results[0], CountedAxis{0, results[1]}}};
}

constexpr std::array kProducers = {
    CountRow{"Compress", count_compress},
    CountRow{"NonMaxSuppression", count_non_max_suppression},
    CountRow{"NonZero", count_non_zero},
    CountRow{"Unique", count_unique},
};

}  // namespace

std::optional<CountedResults> count_results(Graph& graph, NodeId id, const CountedFacts& facts) {
  const Node& node = graph.node(id);
  const auto row_in = [&](std::span<const CountRow> rows) -> const CountRow* {
    const auto at = std::find_if(rows.begin(), rows.end(),
                                 [&](const CountRow& each) { return each.name == node.op->name; });
    return at == rows.end() ? nullptr : &*at;
  };
  const CountRow* row = row_in(kProducers);
  if (!row) row = row_in(counted_readers());
  if (!row || !node.op->domain.empty()) return std::nullopt;
  // A node that lacks an operand, or has too many results, is refused where types are inferred.
  const auto least = static_cast<std::size_t>(std::max(1, node.op->operands.min));
  const auto exceeds = [](std::size_t count, const Arity& arity) {
    return arity.max >= 0 && count > static_cast<std::size_t>(arity.max);
  };
  if (node.operands.size() < least || exceeds(node.operands.size(), node.op->operands) ||
      exceeds(node.results.size(), node.op->results))
    return std::nullopt;
  for (std::size_t i = 0; i < least; ++i) {
    if (!node.operands[i].valid()) return std::nullopt;
  }
  CountContext context(graph, id, facts);
  return row->count(context);
}

}  // namespace gcompile::ir
