// Operands that are shapes, or say what is done to one.

#include <algorithm>
#include <numeric>

#include "ir/ops/settle.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr std::int64_t kNever = -2;  // no size, and no sign for one

std::int64_t product_of(const Numbers& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Tells of each element whether it is that of one of the lists.
ValueId is_one_of(RewriteContext& context, ValueId integers, const std::vector<Numbers>& lists) {
  ValueId any;
  for (const Numbers& list : lists) {
    const ValueId wanted = list_of(context, list);
    const ValueId same = context.emit("Equal", {integers, wanted});
    any = any.valid() ? either(context, any, same) : same;
  }
  return any;
}

std::int64_t count_of(const SettleContext& context, int i) { return context.operand(i).count(); }

void settle_exactly(SettleContext& context, int i, const Numbers& value) {
  if (count_of(context, i) != static_cast<std::int64_t>(value.size())) return;
  const ValueId holds = are(context, context.operand_id(i), value);
  context.assume(i, value, holds);
}

}  // namespace

/// A size may be written as 0 where it is the input's, and one of them as -1.
void settle_reshape(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (!context.is_open(1) || !out || !in || product_of(*out) != product_of(*in)) return;
  if (count_of(context, 1) != static_cast<std::int64_t>(out->size()) || out->empty()) return;
  const bool allow_zero = context.attributes().flag("allowzero");
  Numbers example = *out, plain = *out, copied = *out, rest(out->size(), -1);
  for (std::size_t k = 0; k < out->size(); ++k) {
    const bool copies = !allow_zero && k < in->size() && (*in)[k] == (*out)[k];
    copied[k] = copies ? 0 : kNever;
    Numbers others = *out;
    others[k] = 1;
    if (product_of(others) == 0) rest[k] = kNever;
    if ((*out)[k] != 0 || allow_zero || copies) continue;
    plain[k] = kNever;
    example[k] = -1;
  }
  if (std::count(example.begin(), example.end(), -1) > 1) return;
  const ValueId given = as_list(context, context.operand_id(1));
  const ValueId fits = is_one_of(context, given, {plain, copied, rest});
  const ValueId is_rest = context.emit("Equal", {given, list_of(context, {-1})});
  const ValueId each = emit_cast(context, is_rest, ElementType::kInt64);
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  const ValueId rests = context.emit("ReduceSum", {each}, attributes);
  const ValueId two = context.constant_scalar(ElementType::kInt64, 2);
  const ValueId is_one = context.emit("Less", {rests, two});
  const ValueId fit = all_of(context, fits);
  context.assume(1, example, both(context, fit, is_one));
}

/// What an axis keeps may be written as 1.
void settle_expand(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (!context.is_open(1) || !out || !in) return;
  const auto rank = static_cast<std::size_t>(count_of(context, 1));
  if (rank == 0 || out->size() != std::max(rank, in->size())) return;
  Numbers plain(rank), kept(rank);
  for (std::size_t k = 0; k < out->size(); ++k) {  // from the last one
    const std::int64_t size = (*out)[out->size() - 1 - k];
    const std::int64_t own = k < in->size() ? (*in)[in->size() - 1 - k] : 1;
    if (own != size && (own != 1 || k >= rank)) return;
    if (k >= rank) continue;
    plain[rank - 1 - k] = size;
    kept[rank - 1 - k] = own == size ? 1 : size;
  }
  const ValueId given = as_list(context, context.operand_id(1));
  const ValueId fits = is_one_of(context, given, {plain, kept});
  context.assume(1, plain, all_of(context, fits));
}

/// An axis without elements has none however often it is repeated.
void settle_tile(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (!context.is_open(1) || !out || !in || out->empty() || out->size() != in->size()) return;
  if (count_of(context, 1) != static_cast<std::int64_t>(out->size())) return;
  Numbers repeats(out->size(), 1);
  for (std::size_t k = 0; k < out->size(); ++k) {
    if ((*in)[k] == 0) return;
    if ((*out)[k] % (*in)[k] != 0) return;
    repeats[k] = (*out)[k] / (*in)[k];
  }
  settle_exactly(context, 1, repeats);
}

namespace {

/// All ways to choose `count` of `rank` axes.
std::vector<Numbers> choices_of(std::int64_t count, std::int64_t rank) {
  constexpr std::int64_t kMostAxes = 12;
  std::vector<Numbers> choices;
  if (rank > kMostAxes || count > rank) return choices;
  for (std::int64_t set = 0; set < (std::int64_t{1} << rank); ++set) {
    Numbers axes;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      if ((set >> axis) & 1) axes.push_back(axis);
    }
    if (static_cast<std::int64_t>(axes.size()) == count) choices.push_back(std::move(axes));
  }
  return choices;
}

Numbers without(const Numbers& shape, const Numbers& axes, bool keep) {
  Numbers out;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const bool is_named = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(k)) > 0;
    if (!is_named) out.push_back(shape[k]);
    if (is_named && keep) out.push_back(1);
  }
  return out;
}

/// Axes of size 1 that are dropped or added: which of them makes no difference.
void settle_ones(SettleContext& context, const Numbers& with, const Numbers& less) {
  constexpr std::size_t kMostWays = 16;
  const auto rank = static_cast<std::int64_t>(with.size());
  std::vector<Numbers> ways;
  for (Numbers& axes : choices_of(count_of(context, 1), rank)) {
    const auto is_one = [&](std::int64_t axis) { return with[static_cast<std::size_t>(axis)] == 1; };
    if (std::all_of(axes.begin(), axes.end(), is_one) && without(with, axes, false) == less)
      ways.push_back(std::move(axes));
  }
  if (ways.empty() || ways.size() > kMostWays) return;
  ValueId any;
  for (const Numbers& axes : ways) {
    const ValueId named = are_axes(context, context.operand_id(1), axes, rank);
    any = any.valid() ? either(context, any, named) : named;
  }
  context.assume(1, ways[0], any);
}

}  // namespace

void settle_squeeze(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (context.is_open(1) && out && in) settle_ones(context, *in, *out);
}

void settle_unsqueeze(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (context.is_open(1) && out && in) settle_ones(context, *out, *in);
}

void settle_reduce(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (!context.is_open(1) || count_of(context, 1) == 0 || !out || !in) return;
  const auto rank = static_cast<std::int64_t>(in->size());
  std::vector<Numbers> ways;
  for (Numbers& axes : choices_of(count_of(context, 1), rank)) {
    if (without(*in, axes, context.attributes().flag("keepdims")) == *out) ways.push_back(std::move(axes));
  }
  context.choose(1, ways, [rank](RewriteContext& inside, ValueId operand, const Numbers& axes) {
    return are_axes(inside, operand, axes, rank);
  });
}

/// Any axis: the shape stays.
void settle_cumulative(SettleContext& context) {
  const auto rank = static_cast<std::int64_t>(context.operand(0).rank());
  if (!context.is_open(1) || count_of(context, 1) != 1) return;
  std::vector<Numbers> ways;
  for (std::int64_t axis = 0; axis < rank; ++axis) ways.push_back({axis});
  context.choose(1, ways, [rank](RewriteContext& inside, ValueId operand, const Numbers& axes) {
    return are_axes(inside, operand, axes, rank);
  });
}

void settle_split(SettleContext& context) {
  const std::optional<Numbers> in = context.sizes(0);
  if (!context.is_open(1) || !in) return;
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(in->size()));
  Numbers lengths;
  for (int r = 0; r < context.result_count(); ++r) {
    const Numbers* out = context.declared(r);
    if (!out || out->size() != in->size()) return;
    lengths.push_back((*out)[static_cast<std::size_t>(axis)]);
  }
  settle_exactly(context, 1, lengths);
}

void settle_top_k(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (!out) out = context.declared(1);
  if (!context.is_open(1) || !out) return;
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(out->size()));
  settle_exactly(context, 1, {(*out)[static_cast<std::size_t>(axis)]});
}

void settle_one_hot(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (!context.is_open(1) || !out) return;
  const int axis = normalise_axis(context.attributes().int_of("axis"), static_cast<int>(out->size()));
  settle_exactly(context, 1, {(*out)[static_cast<std::size_t>(axis)]});
}

void settle_window(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (context.is_open(0) && out && out->size() == 1) settle_exactly(context, 0, *out);
}

void settle_constant_of_shape(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (context.is_open(0) && out && !out->empty()) settle_exactly(context, 0, *out);
}

void settle_crop(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (!context.is_open(1) || !out) return;
  Numbers wanted;
  if (context.attributes().has("axes")) {
    for (const std::int64_t axis : context.attributes().ints_of("axes"))
      wanted.push_back((*out)[static_cast<std::size_t>(normalise_axis(axis, static_cast<int>(out->size())))]);
  } else {
    wanted = *out;
  }
  settle_exactly(context, 1, wanted);
}

void settle_unpool(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (context.is_open(2) && out) settle_exactly(context, 2, *out);
}

/// The images have as many channels as they like.
void settle_grid(SettleContext& context) {
  const Numbers* out = context.declared(0);
  if (!context.is_open(1) || !out || out->size() != static_cast<std::size_t>(count_of(context, 1))) return;
  if (out->size() < 4) return;
  Numbers size(out->begin(), out->end() - 1), places = {0}, wanted = size;
  for (std::size_t k = 2; k < out->size(); ++k) places.push_back(static_cast<std::int64_t>(k));
  size.insert(size.begin() + 1, 1);
  const ValueId given = as_list(context, context.operand_id(1));
  const ValueId places_of_sizes = list_of(context, places);
  const ValueId but_channels = context.emit("Gather", {given, places_of_sizes});
  context.assume(1, size, are(context, but_channels, wanted));
}

}  // namespace gcompile::ir
