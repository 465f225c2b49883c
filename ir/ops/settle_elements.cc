// Operands that say which elements are taken, and need not be known for that: the model's declared shapes say
// how many, and each run checks that it is so.

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/ops/rewrite.h"
#include "ir/ops/settle.h"

namespace gcompile::ir {
namespace {

/// Positions beyond are as good as these: no axis is that long.
constexpr std::int64_t kFar = std::int64_t{1} << 40;

ValueId op(RewriteContext& context, std::string_view name, const std::vector<ValueId>& operands) {
  return context.emit(name, operands);
}

ValueId number(RewriteContext& context, std::int64_t value) {
  return context.constant_scalar(ElementType::kInt64, static_cast<double>(value));
}

ValueId select(RewriteContext& context, ValueId condition, ValueId a, ValueId b) {
  return context.emit("Where", {condition, a, b});
}

ValueId at_least(RewriteContext& context, ValueId x, ValueId low) { return context.emit("Max", {x, low}); }
ValueId at_most(RewriteContext& context, ValueId x, ValueId high) { return context.emit("Min", {x, high}); }

ValueId clamped(RewriteContext& context, ValueId x, ValueId low, ValueId high) {
  const ValueId below = at_most(context, x, high);
  return at_least(context, below, low);
}

ValueId sum_over(RewriteContext& context, ValueId x, std::int64_t axis) {
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  const ValueId axes = list_of(context, {axis});
  return context.emit("ReduceSum", {x, axes}, attributes);
}

Attributes along(std::int64_t axis) {
  Attributes attributes;
  attributes.set("axis", axis);
  return attributes;
}

/// Lists of one element for each named axis, as lists of one for each axis.
class PerAxis {
 public:
  PerAxis(RewriteContext& context, ValueId axes, std::int64_t rank)
      : context_(context), count_(context.type(axes).count()), same_(matches(context, axes, rank)) {
    named_ = sum_over(context, emit_cast(context, same_, ElementType::kInt64), 0);
  }
  /// `usual` where no axis is named.
  ValueId spread(ValueId list, const Numbers& usual) {
    const ValueId low = number(context_, -kFar), high = number(context_, kFar);
    const ValueId near = clamped(context_, list, low, high);
    const ValueId column = emit_reshape(context_, near, {count_, 1});
    const ValueId chosen = select(context_, same_, column, number(context_, 0));
    const ValueId sums = sum_over(context_, chosen, 0);
    const ValueId is_named = op(context_, "Less", {number(context_, 0), named_});
    return select(context_, is_named, sums, list_of(context_, usual));
  }
  /// Each is an axis, and none is named twice.
  ValueId are_axes() {
    const ValueId twice = op(context_, "Less", {named_, number(context_, 2)});
    const ValueId all = sum_over(context_, named_, 0);
    const ValueId is_each = op(context_, "Equal", {all, emit_number(context_, count_)});
    const ValueId once = all_of(context_, twice);
    return both(context_, once, all_of(context_, is_each));
  }

 private:
  RewriteContext& context_;
  Dim count_;
  ValueId same_, named_;
};

ValueId element(RewriteContext& context, ValueId list, std::int64_t k) {
  const ValueId at = number(context, k);
  return context.emit("Gather", {list, at}, along(0));
}

/// The node becomes one that gives `value`.
void become(RewriteContext& context, ValueId value) { context.replace_with("Identity", {value}); }

std::int64_t product_of(const Numbers& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// An operand that is known or may be settled.
bool may_settle(const SettleContext& context, int i) {
  return !context.has_operand(i) || context.constant(i) || context.is_open(i);
}

std::optional<Numbers> known(const SettleContext& context, int i) {
  if (!context.has_operand(i) || !context.constant(i)) return std::nullopt;
  return context.constant(i)->ints();
}

/// One number for each axis that is named.
struct Named {
  Numbers axes;  // of an example, where they are open
  bool are_open = false;
};

/// The axes of operand i, or all in order. Where they are open the example names those along which the shapes
/// differ; nullopt: they do along more axes, or an axis is named twice.
std::optional<Named> named_axes(const SettleContext& context, int i, std::size_t count, const Numbers& in,
                                const Numbers& out) {
  Named named;
  const auto rank = static_cast<std::int64_t>(in.size());
  if (!context.is_open(i)) {
    if (const std::optional<Numbers> axes = known(context, i)) {
      for (const std::int64_t axis : *axes) {
        if (axis < -rank || axis >= rank) return std::nullopt;
        named.axes.push_back(axis < 0 ? axis + rank : axis);
      }
    } else {
      named.axes.resize(count);
      std::iota(named.axes.begin(), named.axes.end(), 0);
    }
    const std::set<std::int64_t> unlike(named.axes.begin(), named.axes.end());
    const bool fits = unlike.size() == count && named.axes.size() == count && count <= in.size();
    return fits ? std::optional(named) : std::nullopt;
  }
  named.are_open = true;
  for (const bool differs : {true, false}) {
    for (std::int64_t axis = 0; axis < rank && named.axes.size() < count; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      if ((in[at] != out[at]) == differs) named.axes.push_back(axis);
    }
  }
  const bool fits =
      named.axes.size() == count && context.operand(i).count() == static_cast<std::int64_t>(count);
  if (!fits) return std::nullopt;
  for (std::size_t at = 0; at < in.size(); ++at) {
    const auto axis = static_cast<std::int64_t>(at);
    if (in[at] != out[at] && std::count(named.axes.begin(), named.axes.end(), axis) == 0) return std::nullopt;
  }
  return named;
}

Tensor tensor_of(const Numbers& numbers) {
  return Tensor::of_ints(numbers, {static_cast<std::int64_t>(numbers.size())});
}

/// How many elements of n a range holds.
std::int64_t length_of(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t n) {
  if (step == 0 || n == 0) return step == 0 ? -1 : 0;
  const auto wrapped = [n](std::int64_t at) { return at < 0 ? std::max(at, -kFar) + n : at; };
  const bool up = step > 0;
  const std::int64_t low = up ? 0 : -1, high = up ? n : n - 1;
  const std::int64_t from = std::clamp<std::int64_t>(wrapped(start), 0, high);
  const std::int64_t to = std::clamp(wrapped(end), low, high);
  const std::int64_t span = up ? to - from : from - to;
  const std::int64_t stride = std::min(up ? step : -std::max(step, -kFar), kFar);
  return span <= 0 ? 0 : (span - 1) / stride + 1;
}

}  // namespace

/// Positions are computed by each run: of each axis where it begins, and by which step it goes on.
void settle_slice(SettleContext& context) {
  const Numbers* declared = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  bool is_any_open = false;
  for (int i = 1; i <= 4; ++i) {
    if (!may_settle(context, i)) return;
    is_any_open = is_any_open || context.is_open(i);
  }
  if (!is_any_open || !declared || !in || declared->size() != in->size() || in->empty()) return;
  const Numbers out = *declared;
  const auto rank = static_cast<std::int64_t>(in->size());
  const auto count = static_cast<std::size_t>(std::int64_t{context.operand(1).count()});
  for (const int i : {2, 3, 4}) {
    if (context.has_operand(i) && context.operand(i).count() != static_cast<std::int64_t>(count)) return;
  }
  const std::optional<Named> named = named_axes(context, 3, count, *in, out);
  if (!named || count == 0) return;
  // An example of each operand that is open.
  const std::optional<Numbers> starts = known(context, 1), ends = known(context, 2),
                               steps = known(context, 4);
  Numbers start_example, end_example, step_example;
  for (std::size_t k = 0; k < count; ++k) {
    const auto axis = static_cast<std::size_t>(named->axes[k]);
    const std::int64_t n = (*in)[axis], wanted = out[axis];
    const std::int64_t step = steps ? (*steps)[k] : 1;
    const auto end_for = [&](std::int64_t start) {
      if (ends) return (*ends)[k];
      const std::int64_t last = start + (wanted - 1) * step;
      if (wanted == 0) return start;
      if (step > 0) return last + 1;
      return last == 0 ? -kFar : last - 1;
    };
    constexpr std::int64_t kMostTries = 1 << 16;
    std::int64_t start = starts ? (*starts)[k] : 0;
    const auto fits = [&](std::int64_t at) { return length_of(at, end_for(at), step, n) == wanted; };
    for (std::int64_t at = 0; !starts && !fits(start) && at < std::min(n, kMostTries); ++at) start = at;
    const std::int64_t from = start < 0 ? start + n : start;
    if (starts && !fits(start)) start = from;
    if (!fits(start)) return;
    start_example.push_back(starts ? (*starts)[k] : start);
    end_example.push_back(end_for(start));
    step_example.push_back(step);
  }
  PerAxis spread(
      context,
      context.has_operand(3) ? as_list(context, context.operand_id(3)) : list_of(context, named->axes), rank);
  const Numbers zeros(in->size(), 0), ones(in->size(), 1);
  ValueId from = spread.spread(as_list(context, context.operand_id(1)), zeros);
  ValueId to = spread.spread(as_list(context, context.operand_id(2)), *in);
  ValueId step = context.has_operand(4) ? spread.spread(as_list(context, context.operand_id(4)), ones)
                                        : list_of(context, ones);
  Numbers last = *in;
  for (std::int64_t& each : last) each = std::max<std::int64_t>(each - 1, 0);
  Numbers below = *in;
  for (std::int64_t& each : below) --each;
  const ValueId zero = number(context, 0), one = number(context, 1);
  const ValueId sizes = list_of(context, *in);
  const ValueId is_still = op(context, "Equal", {step, zero});
  step = select(context, is_still, one, step);
  const ValueId is_up = op(context, "Less", {zero, step});
  const auto wrapped = [&](ValueId at) {
    const ValueId is_negative = op(context, "Less", {at, zero});
    const ValueId behind = op(context, "Add", {at, sizes});
    return select(context, is_negative, behind, at);
  };
  const ValueId first_high = select(context, is_up, sizes, list_of(context, last));
  from = clamped(context, wrapped(from), zero, first_high);
  const ValueId high = select(context, is_up, sizes, list_of(context, below));
  const ValueId low = select(context, is_up, zero, number(context, -1));
  to = clamped(context, wrapped(to), low, high);
  const ValueId forwards = op(context, "Sub", {to, from}), backwards = op(context, "Sub", {from, to});
  const ValueId span = select(context, is_up, forwards, backwards);
  const ValueId stride = op(context, "Abs", {step});
  const ValueId before = op(context, "Div", {op(context, "Sub", {span, one}), stride});
  const ValueId is_some = op(context, "Less", {zero, span});
  const ValueId some = op(context, "Add", {before, one});
  const ValueId lengths = at_most(context, select(context, is_some, some, zero), sizes);
  ValueId holds = are(context, lengths, out);
  const ValueId moves = all_of(context, op(context, "Not", {is_still}));
  holds = both(context, holds, moves);
  holds = both(context, holds, spread.are_axes());
  SettleContext::Examples examples;
  if (context.is_open(1)) examples.emplace_back(1, tensor_of(start_example));
  if (context.is_open(2)) examples.emplace_back(2, tensor_of(end_example));
  if (context.is_open(3)) examples.emplace_back(3, tensor_of(named->axes));
  if (context.is_open(4)) examples.emplace_back(4, tensor_of(step_example));
  if (!context.check_all(examples, holds)) return;
  const TensorType type = {context.element(0), shape_of(out)};
  ValueId y = context.operand_id(0);
  if (product_of(out) == 0) y = context.constant(Tensor(type));
  for (std::int64_t axis = 0; product_of(out) > 0 && axis < rank; ++axis) {
    const bool is_named = named->are_open || std::count(named->axes.begin(), named->axes.end(), axis) > 0;
    if (!is_named) continue;
    const ValueId all = emit_counting(context, 0, {out[static_cast<std::size_t>(axis)]});
    const ValueId offsets = op(context, "Mul", {all, element(context, step, axis)});
    const ValueId positions = op(context, "Add", {offsets, element(context, from, axis)});
    y = context.emit("Gather", {y, positions}, along(axis));
  }
  become(context, y);
}

/// Where the input begins in the result is what each run computes positions by.
void settle_pad(SettleContext& context) {
  const Numbers* declared = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  const bool is_any_open = context.is_open(1) || context.is_open(3);
  if (!is_any_open || !may_settle(context, 1) || !may_settle(context, 3)) return;
  if (!declared || !in || declared->size() != in->size() || in->empty()) return;
  const Numbers out = *declared;
  if (product_of(*in) == 0 || product_of(out) == 0) return;
  const auto rank = static_cast<std::int64_t>(in->size());
  const std::int64_t count = std::int64_t{context.operand(1).count()} / 2;
  if (context.operand(1).count() != 2 * count || count == 0) return;
  const std::optional<Named> named = named_axes(context, 3, static_cast<std::size_t>(count), *in, out);
  if (!named) return;
  const std::string mode = context.attributes().string_of("mode");
  Numbers example(static_cast<std::size_t>(2 * count), 0);
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
    const auto axis = static_cast<std::size_t>(named->axes[k]);
    example[k + static_cast<std::size_t>(count)] = out[axis] - (*in)[axis];
  }
  if (const std::optional<Numbers> pads = known(context, 1)) example = *pads;
  PerAxis spread(
      context,
      context.has_operand(3) ? as_list(context, context.operand_id(3)) : list_of(context, named->axes), rank);
  const ValueId pads = as_list(context, context.operand_id(1));
  const Numbers zeros(in->size(), 0);
  const ValueId begin = spread.spread(emit_slice(context, pads, 0, 0, count), zeros);
  const ValueId end = spread.spread(emit_slice(context, pads, 0, count, 2 * count), zeros);
  const ValueId zero = number(context, 0), one = number(context, 1);
  const ValueId sizes = list_of(context, *in);
  const ValueId padded = op(context, "Add", {op(context, "Add", {sizes, begin}), end});
  ValueId holds = are(context, padded, out);
  holds = both(context, holds, spread.are_axes());
  // What negative pads leave.
  const ValueId cut_begin = at_most(context, begin, zero), cut_end = at_most(context, end, zero);
  const ValueId kept = op(context, "Add", {op(context, "Add", {sizes, cut_begin}), cut_end});
  const bool is_constant = mode == "constant";
  if (!is_constant) holds = both(context, holds, all_of(context, op(context, "Less", {zero, kept})));
  SettleContext::Examples examples;
  if (context.is_open(1)) examples.emplace_back(1, tensor_of(example));
  if (context.is_open(3)) examples.emplace_back(3, tensor_of(named->axes));
  if (!context.check_all(examples, holds)) return;
  ValueId y = context.operand_id(0), inside;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const bool is_named = named->are_open || std::count(named->axes.begin(), named->axes.end(), axis) > 0;
    if (!is_named) continue;
    const ValueId all = emit_counting(context, 0, {out[at]});
    const ValueId first = element(context, begin, axis);
    if (is_constant) {
      const ValueId place = op(context, "Sub", {all, first});
      const ValueId beyond = number(context, (*in)[at]);
      const ValueId is_behind = op(context, "Less", {number(context, -1), place});
      const ValueId is_inside = both(context, is_behind, op(context, "Less", {place, beyond}));
      Shape column(in->size() - at, 1);
      column[0] = out[at];
      const ValueId here = emit_reshape(context, is_inside, column);
      inside = inside.valid() ? both(context, inside, here) : here;
      const ValueId safe = clamped(context, place, zero, number(context, (*in)[at] - 1));
      y = context.emit("Gather", {y, safe}, along(axis));
      continue;
    }
    const ValueId left = element(context, kept, axis);
    const ValueId room = at_least(context, op(context, "Sub", {left, one}), zero);
    const ValueId place = op(context, "Sub", {all, at_least(context, first, zero)});
    ValueId source;
    if (mode == "edge") {
      source = clamped(context, place, zero, room);
    } else if (mode == "wrap") {
      source = op(context, "Mod", {place, at_least(context, left, one)});
    } else {
      const ValueId period = at_least(context, op(context, "Add", {room, room}), one);
      const ValueId turned = op(context, "Mod", {place, period});
      source = at_most(context, turned, op(context, "Sub", {period, turned}));
      source = at_most(context, source, room);
    }
    const ValueId shifted = op(context, "Sub", {source, element(context, cut_begin, axis)});
    const ValueId safe = clamped(context, shifted, zero, number(context, (*in)[at] - 1));
    y = context.emit("Gather", {y, safe}, along(axis));
  }
  if (inside.valid()) {
    const ElementType type = context.element(0);
    const ValueId fill = context.has_operand(2) ? emit_reshape(context, context.operand_id(2), {})
                                                : context.constant_scalar(type, 0);
    y = select(context, inside, y, fill);
  }
  become(context, y);
}

/// start + i * delta for as many i as are declared.
void settle_range(SettleContext& context) {
  const Numbers* declared = context.declared(0);
  bool is_any_open = false;
  for (int i = 0; i < 3; ++i) {
    if (!context.has_operand(i) || !may_settle(context, i) || context.operand(i).count() != 1) return;
    is_any_open = is_any_open || context.is_open(i);
  }
  if (!is_any_open || !declared || declared->size() != 1) return;
  const ElementType type = context.element(0);
  if (context.element(1) != type || context.element(2) != type) return;
  const std::int64_t count = (*declared)[0];
  constexpr std::int64_t kMostCounted = 1 << 20;
  if (count > kMostCounted) return;
  // In double, in which integers below the bound are exact.
  const auto wide = [&](int i) {
    return emit_reshape(context, emit_cast(context, context.operand_id(i), ElementType::kFloat64), {});
  };
  const auto real = [&](double value) { return context.constant_scalar(ElementType::kFloat64, value); };
  const ValueId start = wide(0), limit = wide(1), delta = wide(2);
  const ValueId span = op(context, "Sub", {limit, start});
  const ValueId steps = op(context, "Ceil", {op(context, "Div", {span, delta})});
  const ValueId is_empty = op(context, "Less", {steps, real(0.5)});
  const ValueId is_count = op(context, "Equal", {steps, real(static_cast<double>(count))});
  ValueId holds = count == 0 ? is_empty : is_count;
  holds = both(context, holds, op(context, "Not", {op(context, "Equal", {delta, real(0)})}));
  for (const ValueId each : {start, limit, delta}) {
    if (is_float(type)) continue;
    const ValueId size = op(context, "Abs", {each});
    holds = both(context, holds, op(context, "Less", {size, real(0x1p30)}));
  }
  const auto given = [&](int i, double usual) {
    return context.constant(i) ? context.constant(i)->real_at(0) : usual;
  };
  double step = given(2, 1), first = given(0, 0);
  const double end = given(1, first + step * static_cast<double>(count));
  if (context.constant(1) && !context.constant(0)) first = end - step * static_cast<double>(count);
  if (context.constant(1) && context.constant(0) && count > 0)
    step = (end - first) / static_cast<double>(count);
  const double numbers[] = {first, end, step};
  SettleContext::Examples examples;
  for (int i = 0; i < 3; ++i) {
    if (!context.is_open(i)) continue;
    const Scalar value = cast(Scalar::of_real(ElementType::kFloat64, numbers[i]), type);
    examples.emplace_back(i, Tensor::filled({type, context.shape(i)}, value));
  }
  if (!context.check_all(examples, holds)) return;
  if (count == 0) {
    become(context, context.constant(Tensor({type, Shape{0}})));
    return;
  }
  const ElementType compute = compute_type(type);
  const auto in_type = [&](int i) {
    return emit_reshape(context, emit_cast(context, context.operand_id(i), compute), {});
  };
  const ValueId all = emit_cast(context, emit_counting(context, 0, {count}), compute);
  const ValueId steps_up = op(context, "Mul", {all, in_type(2)});
  const ValueId sums = op(context, "Add", {in_type(0), steps_up});
  become(context, emit_cast(context, sums, type));
}

/// The place of the j-th element that is taken is how many conditions hold at most j - 1 of those before.
void settle_compress(SettleContext& context) {
  const Numbers* declared = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0), length = context.sizes(1);
  if (!declared || !in || !length || length->size() != 1 || context.constant(1)) return;
  if (context.element(1) != ElementType::kBool || declared->empty()) return;
  const bool has_axis = context.attributes().has("axis");
  const std::int64_t rank = has_axis ? static_cast<std::int64_t>(in->size()) : 1;
  std::int64_t axis = has_axis ? context.attributes().int_of("axis") : 0;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || static_cast<std::int64_t>(declared->size()) != rank) return;
  Numbers from = has_axis ? *in : Numbers{product_of(*in)};
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t taken = (*declared)[at], conditions = (*length)[0];
  Numbers rest = from;
  rest[at] = taken;
  constexpr std::int64_t kMostPairs = 1 << 20;
  if (rest != *declared || taken == 0 || conditions > from[at] || taken > conditions) return;
  if (taken * conditions > kMostPairs) return;
  const ValueId ones = emit_cast(context, context.operand_id(1), ElementType::kInt64);
  const ValueId sum = sum_over(context, ones, 0);
  const ValueId holds = op(context, "Equal", {sum, number(context, taken)});
  Tensor example({ElementType::kBool, Shape{conditions}});
  for (std::int64_t k = 0; k < taken; ++k) example.set(k, Scalar::of_integer(ElementType::kBool, 1));
  if (!context.check_all({{1, example}}, holds)) return;
  const ValueId so_far = op(context, "CumSum", {ones, number(context, 0)});
  const ValueId row = emit_reshape(context, so_far, {1, conditions});
  const ValueId column = emit_counting(context, 0, {taken, 1});
  const ValueId is_before = op(context, "LessOrEqual", {row, column});
  const ValueId places = sum_over(context, emit_cast(context, is_before, ElementType::kInt64), 1);
  const ValueId x = emit_reshape(context, context.operand_id(0), shape_of(from));
  become(context, context.emit("Gather", {x, places}, along(axis)));
}

}  // namespace gcompile::ir
