// Pad: every axis is cut into segments at compile time, in each of which the source index is affine; the
// regions are the products of the segments (constant mode: the centre and its shell). No per-element selects.

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/known_indices.h"

namespace gcompile::ir {
namespace {

constexpr std::size_t kRegionLimit = 4096;
constexpr std::int64_t kPadLimit = std::int64_t{1} << 31;  // no tensor has more elements

struct Pads {
  Shape begin, end;
};

Pads pads_of(const NodeView& node) {
  const int rank = node.operand(0).rank();
  const Shape pads = node.known_sizes(1, "pads");
  std::vector<int> axes;
  if (node.has_operand(3)) {
    const std::vector<std::int64_t> given = node.constant_ints(3, "axes");
    normalise_axes(given, rank);  // refuses repeated axes
    for (const std::int64_t axis : given) axes.push_back(normalise_axis(axis, rank));
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (pads.size() != 2 * axes.size()) {
    operator_error(fmt::format("{} pads given, {} expected", pads.size(), 2 * axes.size()));
  }
  Pads out{Shape(static_cast<std::size_t>(rank)), Shape(static_cast<std::size_t>(rank))};
  for (const Dim pad : pads) {
    if (!always_less_equal(-kPadLimit, pad) || !always_less_equal(pad, kPadLimit)) {
      operator_error(fmt::format("a pad is {}", to_string(pad)));
    }
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    out.begin[axes[i]] = pads[i];
    out.end[axes[i]] = pads[i + axes.size()];
  }
  return out;
}

/// pads and value became inputs in opset 11. Opset 1 called the pads `paddings`.
void normalise(RewriteContext& context) {
  if (context.attributes().has("value")) {
    const double value = static_cast<double>(context.attributes().float_of("value"));
    context.mutable_attributes().erase("value");
    context.set_operand(2, context.constant_scalar(context.element(0), value));
  }
  context.attribute_to_operand("paddings", 1);
  context.attribute_to_operand("pads", 1);
}

/// Whether sizes of an axis of n elements are known only when the model runs.
bool is_open(Dim n, const Pads& pads, std::size_t axis) {
  return !are_constant(Shape{n, pads.begin[axis], pads.end[axis]});
}

/// Elements of an axis of n that negative pads leave: what is padded with is taken from them.
Dim kept_of(Dim n, Dim begin, Dim end) { return n + min(begin, 0) + min(end, 0); }

struct Segment {
  Range range;
  Index source;
};

/// The parts of an axis whose size only a run knows: the input, and what is before and behind it, which
/// repeats it once at most.
std::vector<Segment> open_segments(const std::string& mode, int axis, Dim n, Dim begin, Dim end) {
  const Index i = Index::axis(axis);
  if (begin == 0 && end == 0) return {{{0, n}, i}};
  const Dim room = mode == "wrap" ? n : n - 1;
  for (const Dim pad : {begin, end}) {
    if (always_less_equal(0, pad) && (mode == "edge" || always_less_equal(pad, room))) continue;
    operator_error(fmt::format("a pad of {} on axis {}, of {} elements", to_string(pad), axis, to_string(n)),
                   fmt::format("bounds of --dim that keep it between 0 and {}",
                               mode == "edge" ? "any number" : to_string(room)));
  }
  const Segment inside{{begin, begin + n}, i - Index(begin)};
  const Range before{0, begin}, behind{begin + n, begin + n + end};
  if (mode == "edge") return {{before, Index(0)}, inside, {behind, Index(n - 1)}};
  if (mode == "wrap") return {{before, i + Index(n - begin)}, inside, {behind, i - Index(begin + n)}};
  return {{before, Index(begin) - i}, inside, {behind, Index(begin + 2 * (n - 1)) - i}};
}

void infer(InferContext& context) {
  const std::string& mode = context.attributes().string_of("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    operator_error(fmt::format("mode '{}' is not known", printable(mode)));
  }
  if (context.has_operand(2)) {
    require_scalar(context, 2, "the value to pad with");
    if (context.element(2) != context.element(0)) operator_error("the value to pad with has another type");
  }
  const Pads pads = pads_of(context);
  Shape out = context.shape(0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Dim size = out[i] + pads.begin[i] + pads.end[i];
    if (!always_less_equal(0, size)) {
      operator_error(fmt::format("axis {} would have {} elements", i, to_string(size)));
    }
    const Dim kept = kept_of(out[i], pads.begin[i], pads.end[i]);
    if (mode != "constant" && kept != size && !always_less(0, kept) && !always_less_equal(size, 0)) {
      if (kept.is_constant()) operator_error(fmt::format("axis {} has no elements to pad with", i));
      operator_error(fmt::format("axis {} of {} elements may have none to pad with", i, to_string(out[i])),
                     fmt::format("bounds of --dim that keep {} at 1 or more", to_string(kept)));
    }
    if (mode != "constant" && is_open(out[i], pads, i)) {
      open_segments(mode, static_cast<int>(i), out[i], pads.begin[i], pads.end[i]);
    }
    out[i] = size;
  }
  context.set_result(0, context.element(0), std::move(out));
}

/// Segments of one axis of `n` elements from `first` on seen through result[i] = extended[i - begin].
std::vector<Segment> segments_of(const std::string& mode, int axis, std::int64_t first, std::int64_t n,
                                 std::int64_t begin, std::int64_t size) {
  std::vector<Segment> out;
  const Index i = Index::axis(axis);
  std::int64_t at = 0;
  while (at < size) {
    const std::int64_t position = at - begin;
    Segment segment{{at, size}, i - Index(begin)};
    if (mode == "edge") {
      if (position < 0) {
        segment = {{at, std::min(size, begin)}, Index(0)};
      } else if (position >= n) {
        segment.source = Index(n - 1);
      } else {
        segment.range.high = std::min(size, begin + n);
      }
    } else if (mode == "wrap") {
      const std::int64_t turn = floor_div(position, n) * n;
      segment = {{at, std::min(size, begin + turn + n)}, i - Index(begin + turn)};
    } else if (n == 1) {
      segment.source = Index(0);
    } else {
      // The reflected sequence has the period 2 * (n - 1): up over [0, n), down over (n - 1, 2n - 2).
      const std::int64_t period = 2 * (n - 1);
      const std::int64_t turn = floor_div(position, period) * period;
      if (position - turn < n) {
        segment = {{at, std::min(size, begin + turn + n)}, i - Index(begin + turn)};
      } else {
        segment = {{at, std::min(size, begin + turn + period)}, Index(period + begin + turn) - i};
      }
    }
    at = segment.range.high;
    segment.source = segment.source + Index(first);
    out.push_back(std::move(segment));
  }
  return out;
}

void add_products(LoopForm& form, const std::vector<std::vector<Segment>>& segments, ElementType type) {
  std::size_t count = 1;
  for (const auto& axis : segments) {
    count *= axis.size();
    if (count > kRegionLimit) operator_error("the padding repeats the input too many times");
  }
  for (std::size_t product = 0; product < count; ++product) {
    Region region;
    std::vector<Index> index;
    std::size_t rest = product;
    std::size_t below = count;
    for (const auto& axis : segments) {
      below /= axis.size();
      const Segment& segment = axis[rest / below];
      rest %= below;
      region.box.push_back(segment.range);
      index.push_back(segment.source);
    }
    region.root = form.dag.load(0, type, std::move(index));
    form.regions.push_back(std::move(region));
  }
}

/// The box that the input fills, and the shell around it.
void add_filled(LoopForm& form, const Pads& pads, const Shape& in, int fill, ElementType type) {
  std::vector<Range> box;
  std::vector<Index> index = form.identity();
  bool is_empty = false;
  for (std::size_t axis = 0; axis < in.size(); ++axis) {
    const Dim low = min(max(pads.begin[axis], 0), form.extents[axis]);
    box.push_back({low, min(max(pads.begin[axis] + in[axis], low), form.extents[axis])});
    index[axis] = index[axis] - Index(pads.begin[axis]);
    is_empty |= always_less_equal(box[axis].high, low);
  }
  add_shell(form, box, fill);
  if (!is_empty) form.regions.push_back({box, form.dag.load(0, type, std::move(index))});
}

Form lower(const LowerContext& context) {
  const TensorType& result = context.result(0);
  const Shape& in = context.shape(0);
  const Pads pads = pads_of(context);
  const std::string& mode = context.attributes().string_of("mode");
  LoopForm form = LoopForm::over(result.shape);
  if (mode == "constant") {
    const int fill =
        context.has_operand(2)
            ? load_scalar(form.dag, context, 2)
            : form.dag.constant(ir::cast(Scalar::of_integer(ElementType::kInt64, 0), result.element));
    add_filled(form, pads, in, fill, result.element);
    return form;
  }
  std::vector<std::vector<Segment>> segments;
  for (std::size_t axis = 0; axis < in.size(); ++axis) {
    const Dim begin = pads.begin[axis], end = pads.end[axis];
    const auto at = static_cast<int>(axis);
    segments.push_back(is_open(in[axis], pads, axis)
                           ? open_segments(mode, at, in[axis], begin, end)
                           : segments_of(mode, at, max(-begin, 0), kept_of(in[axis], begin, end),
                                         max(begin, 0), result.shape[axis]));
  }
  add_products(form, segments, result.element);
  return form;
}

}  // namespace

const Operator& operator_Pad() {
  static const Operator op = {
      .name = "Pad",
      .versions = {1, 2, 11, 13, 18, 19, 21, 23, 24, 25},
      .operands = {2, 4},
      .attributes = {{"mode", AttributeKind::kString, std::string("constant")}},
      .summary = "elements before and after every axis: constant, reflect, edge or wrap; negative pads crop",
      .normalise = normalise,
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
