// Col2Im: images of which each element is the sum of what the columns, one for each window, hold of it.

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace gcompile::ir {
namespace {

struct Columns {
  Shape image;
  Window window;
  Shape counts;  // windows along each axis
};

Columns columns_of(const NodeView& node) {
  Columns out;
  out.image = node.known_sizes(1, "image_shape");
  const std::size_t axes = out.image.size();
  if (axes == 0) operator_error("image_shape has no sizes");
  const auto listed = [&](const char* name, std::size_t count, std::int64_t value) {
    const Attributes& attributes = node.attributes();
    const std::vector<std::int64_t> list =
        attributes.has(name) ? attributes.ints_of(name) : std::vector<std::int64_t>(count, value);
    check_sizes(name, list, count, value);
    return list;
  };
  out.window.kernel = node.constant_ints(2, "block_shape");
  check_sizes("block_shape", out.window.kernel, axes, 1);
  out.window.strides = listed("strides", axes, 1);
  out.window.dilations = listed("dilations", axes, 1);
  out.window.pads = listed("pads", 2 * axes, 0);
  for (std::size_t i = 0; i < axes; ++i) {
    out.counts.push_back(window_count(out.window, static_cast<int>(i), out.image[i], false));
  }
  return out;
}

void infer(InferContext& context) {
  require_computable(context, 0);
  const Columns columns = columns_of(context);
  const Shape& x = context.shape(0);
  const std::int64_t taps = columns.window.taps();
  if (x.size() != 3 || !x[1].is_constant() || x[1] % taps != 0) {
    operator_error(
        fmt::format("the columns must have the shape (N, C * {}, windows), not {}", taps, to_string(x)));
  }
  if (x[2] != element_count(columns.counts)) {
    operator_error(fmt::format("the columns must have the shape (N, C * {}, {}), not {}", taps,
                               to_string(element_count(columns.counts)), to_string(x)));
  }
  Shape y = {x[0], x[1] / taps};
  y.insert(y.end(), columns.image.begin(), columns.image.end());
  context.set_result(0, context.element(0), std::move(y));
}

/// Sums over the taps k of a window: the window whose tap an element is begins at element + pad - k * dilation.
Form lower(const LowerContext& context) {
  const Columns columns = columns_of(context);
  const TensorType& type = context.result(0);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const ElementType compute = compute_type(type.element);
  const int axes = columns.window.spatial();
  for (const std::int64_t taps : columns.window.kernel) form.extents.push_back(taps);
  const std::vector<Range> ranges = form.ranges();
  const auto number = [&](Dim value) { return dag.size(value); };
  int counts = -1;
  const auto require = [&](int condition) {
    counts = counts < 0 ? condition : dag.apply(ScalarOp::kLogicalAnd, {counts, condition});
  };
  Index tap(0), window(0);
  for (int i = 0; i < axes; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Index k = Index::axis(type.rank() + i);
    const std::int64_t stride = columns.window.strides[at];
    const Dim count = columns.counts[at];
    const Index begin =
        Index::axis(i + 2) + Index(columns.window.begin(i)) - k * columns.window.dilations[at];
    const int place = dag.iota(floor_div(begin, stride, ranges)), zero = number(0), last = number(count - 1);
    require(dag.apply(ScalarOp::kLessEqual, {zero, place}));
    require(dag.apply(ScalarOp::kLessEqual, {place, last}));
    if (stride > 1) require(dag.apply(ScalarOp::kEqual, {dag.iota(modulo(begin, stride, ranges)), zero}));
    const int inside = dag.apply(ScalarOp::kMin, {dag.apply(ScalarOp::kMax, {place, zero}), last});
    tap = tap * columns.window.kernel[at] + k;
    window = window * count + Index::loaded(inside, Range{0, count});
  }
  std::vector<Index> index = {Index::axis(0), Index::axis(1) * columns.window.taps() + tap, window};
  if (element_count(columns.counts) == 0) {
    form.extents.resize(static_cast<std::size_t>(type.rank()));
    form.set_root(dag.constant(type.element, 0));
    return form;
  }
  const int value = dag.cast(dag.load(0, type.element, std::move(index)), compute);
  form.stages = {{Combine::kSum, dag.apply(ScalarOp::kSelect, {counts, value, dag.constant(compute, 0)})}};
  form.set_root(dag.cast(dag.accumulator(0, compute), type.element));
  return form;
}

}  // namespace

const Operator& operator_Col2Im() {
  static const Operator op = {
      .name = "Col2Im",
      .versions = {18},
      .operands = {3, 3},
      .attributes = {{"dilations", AttributeKind::kInts, std::nullopt},
                     {"pads", AttributeKind::kInts, std::nullopt},
                     {"strides", AttributeKind::kInts, std::nullopt}},
      .accuracy = Accuracy::kSum,
      .summary = "images whose elements are sums over the windows that hold them",
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
