// RoiAlign and MaxRoiPool: a grid of cells over each region of an image; the mean or maximum of samples between
// elements, or the maximum of a cell's elements.

#include <fmt/format.h>

#include <limits>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr int kImage = 0, kRegions = 1, kBatch = 2;

void require_image(const NodeView& node) {
  require_float(node, kImage);
  const Shape& x = node.shape(kImage);
  if (x.size() != 4)
    operator_error(fmt::format("the image must be (N, C, H, W), its shape is {}", to_string(x)));
  if (!always_less(0, x[2]) || !always_less(0, x[3])) {
    operator_error("an image that may be empty has no elements to read");
  }
}

void require_regions(const NodeView& node, std::int64_t width) {
  if (node.element(kRegions) != node.element(kImage))
    operator_error("regions must have the type of the image");
  const Shape& regions = node.shape(kRegions);
  if (regions.size() == 2 && regions[1] == width) return;
  operator_error(fmt::format("the regions must be (R, {}), their shape is {}", width, to_string(regions)));
}

/// What the expressions of both operators are made of.
class RegionLoops {
 public:
  explicit RegionLoops(const LowerContext& context)
      : context(context),
        stored(context.element(kImage)),
        compute(compute_type(stored)),
        form(LoopForm::over(context.result(0).shape)),
        dag(form.dag) {}

  int number(double value) { return dag.constant(compute, value); }
  int size(Dim size) { return dag.size(compute, size); }
  int apply(ScalarOp op, int a, int b) { return dag.apply(op, {a, b}); }
  int either(int condition, int a, int b) { return dag.apply(ScalarOp::kSelect, {condition, a, b}); }
  int of_axis(int axis) { return dag.cast(dag.iota(Index::axis(axis)), compute); }
  int of_region(std::int64_t column) {
    return dag.cast(dag.load(kRegions, stored, {Index::axis(0), Index(column)}), compute);
  }
  /// Where a run names the image of a region, that is checked.
  Index image_at(int scalar, const Tensor* known) {
    const Range range{0, context.shape(kImage)[0]};
    const int image = dag.cast(scalar, ElementType::kInt64);
    if (!known || !range.high.is_constant()) form.checks.push_back({image, range});
    return Index::loaded(image, range);
  }
  /// A whole number as index along an axis of the image.
  Index place(int whole, Dim extent) {
    const int first = dag.constant(ElementType::kInt64, 0), last = dag.size(extent - 1);
    const int at = dag.cast(whole, ElementType::kInt64);
    return Index::loaded(apply(ScalarOp::kMin, apply(ScalarOp::kMax, at, first), last), Range{0, extent});
  }
  Form finished(int value) {
    form.set_root(dag.cast(value, stored));
    return std::move(form);
  }

  const LowerContext& context;
  const ElementType stored, compute;
  LoopForm form;
  Dag& dag;
};

// RoiAlign --------------------------------------------------------------------------------------------------

/// Before opset 16 there was one way to count coordinates.
void normalise_align(RewriteContext& context) {
  if (context.opset() >= 16) return;
  context.mutable_attributes().set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

void infer_align(InferContext& context) {
  require_image(context);
  require_regions(context, 4);
  const Attributes& attributes = context.attributes();
  require_one_of(attributes, "mode", {"avg", "max"});
  require_one_of(attributes, "coordinate_transformation_mode", {"half_pixel", "output_half_pixel"});
  if (!is_integer(context.element(kBatch))) operator_error("batch_indices must be integers");
  const Shape& images = context.shape(kBatch);
  if (images.size() != 1 || images[0] != context.shape(kRegions)[0]) {
    operator_error(fmt::format("batch_indices must have the shape ({}), not {}",
                               to_string(context.shape(kRegions)[0]), to_string(images)));
  }
  if (const Tensor* named = context.constant(kBatch); named && context.shape(kImage)[0].is_constant()) {
    for (const std::int64_t image : named->ints()) {
      if (image < 0 || image >= context.shape(kImage)[0])
        operator_error(fmt::format("there is no image {} of {}", image, to_string(context.shape(kImage)[0])));
    }
  }
  if (attributes.int_of("sampling_ratio") <= 0) {
    operator_error("the number of samples depends on the regions where sampling_ratio is 0",
                   "export the model with a sampling_ratio above 0");
  }
  for (const char* name : {"output_height", "output_width"}) {
    if (attributes.int_of(name) < 1) operator_error(fmt::format("attribute '{}' must be above 0", name));
  }
  context.set_result(0, context.element(kImage),
                     {images[0], context.shape(kImage)[1], attributes.int_of("output_height"),
                      attributes.int_of("output_width")});
}

/// Samples along one axis of the image: the two elements around each, their weights, and whether it counts.
struct Samples {
  Index low, high;
  int of_low, of_high, counts;
};

Samples samples_of(RegionLoops& loops, int axis) {
  const Attributes& attributes = loops.context.attributes();
  const bool is_half = attributes.string_of("coordinate_transformation_mode") == "half_pixel";
  const Dim extent = loops.context.shape(kImage)[static_cast<std::size_t>(axis)];
  const int scale = loops.number(static_cast<double>(attributes.float_of("spatial_scale")));
  const int shift = loops.number(is_half ? 0.5 : 0);
  const std::int64_t column = 3 - axis;  // of the region: x, y of its beginning, then of its end
  const int begin_at = loops.apply(ScalarOp::kMul, loops.of_region(column), scale);
  const int end_at = loops.apply(ScalarOp::kMul, loops.of_region(column + 2), scale);
  const int begin = loops.apply(ScalarOp::kSub, begin_at, shift),
            end = loops.apply(ScalarOp::kSub, end_at, shift);
  int length = loops.apply(ScalarOp::kSub, end, begin);
  const int one = loops.number(1), zero = loops.number(0);
  if (!is_half) length = loops.apply(ScalarOp::kMax, length, one);
  const auto cells = static_cast<double>(attributes.int_of(axis == 2 ? "output_height" : "output_width"));
  const auto ratio = static_cast<double>(attributes.int_of("sampling_ratio"));
  const int cell = loops.apply(ScalarOp::kDiv, length, loops.number(cells));
  const int cell_begin = loops.apply(ScalarOp::kMul, loops.of_axis(axis), cell);
  const int middle = loops.apply(ScalarOp::kAdd, loops.of_axis(axis + 2), loops.number(0.5));
  const int within =
      loops.apply(ScalarOp::kDiv, loops.apply(ScalarOp::kMul, middle, cell), loops.number(ratio));
  const int at = loops.apply(ScalarOp::kAdd, loops.apply(ScalarOp::kAdd, begin, cell_begin), within);
  Samples out{};
  const int is_above = loops.apply(ScalarOp::kLessEqual, loops.number(-1), at);
  const int is_below = loops.apply(ScalarOp::kLessEqual, at, loops.size(extent));
  out.counts = loops.apply(ScalarOp::kLogicalAnd, is_above, is_below);
  const int last = loops.size(extent - 1);
  const int inside = loops.apply(ScalarOp::kMin, loops.apply(ScalarOp::kMax, at, zero), last);
  const int low = loops.dag.apply(ScalarOp::kFloor, {inside});
  out.of_high = loops.apply(ScalarOp::kSub, inside, low);
  out.of_low = loops.apply(ScalarOp::kSub, one, out.of_high);
  out.low = loops.place(low, extent);
  out.high = loops.place(loops.apply(ScalarOp::kAdd, low, one), extent);
  return out;
}

Form lower_align(const LowerContext& context) {
  RegionLoops loops(context);
  Dag& dag = loops.dag;
  const std::int64_t ratio = context.attributes().int_of("sampling_ratio");
  loops.form.extents.push_back(ratio);
  loops.form.extents.push_back(ratio);
  const int named = dag.load(kBatch, context.element(kBatch), {Index::axis(0)});
  const Index image = loops.image_at(named, context.constant(kBatch));
  const Samples rows = samples_of(loops, 2), columns = samples_of(loops, 3);
  const bool is_mean = context.attributes().string_of("mode") == "avg";
  const ScalarOp combine = is_mean ? ScalarOp::kAdd : ScalarOp::kMax;
  int value = -1;
  for (const bool is_high : {false, true}) {
    for (const bool is_right : {false, true}) {
      const int element = dag.cast(dag.load(kImage, loops.stored,
                                            {image, Index::axis(1), is_high ? rows.high : rows.low,
                                             is_right ? columns.high : columns.low}),
                                   loops.compute);
      const int weight = loops.apply(ScalarOp::kMul, is_high ? rows.of_high : rows.of_low,
                                     is_right ? columns.of_high : columns.of_low);
      const int term = loops.apply(ScalarOp::kMul, weight, element);
      value = value < 0 ? term : loops.apply(combine, value, term);
    }
  }
  const int counts = loops.apply(ScalarOp::kLogicalAnd, rows.counts, columns.counts);
  value = loops.either(counts, value, loops.number(0));
  loops.form.stages = {{is_mean ? Combine::kSum : Combine::kMax, value}};
  const int all = dag.accumulator(0, loops.compute);
  if (!is_mean) return loops.finished(all);
  return loops.finished(loops.apply(ScalarOp::kDiv, all, loops.number(static_cast<double>(ratio * ratio))));
}

// MaxRoiPool ------------------------------------------------------------------------------------------------

void infer_pool(InferContext& context) {
  require_image(context);
  require_regions(context, 5);
  const std::vector<std::int64_t> cells = context.attributes().ints_of("pooled_shape");
  if (cells.size() != 2 || cells[0] < 1 || cells[1] < 1) {
    operator_error("attribute 'pooled_shape' must be two sizes above 0");
  }
  context.set_result(0, context.element(kImage),
                     {context.shape(kRegions)[0], context.shape(kImage)[1], cells[0], cells[1]});
}

/// Whether element `axis + 2` of the loops lies in the cell `axis` of the region.
int is_in_cell(RegionLoops& loops, int axis) {
  const Attributes& attributes = loops.context.attributes();
  Dag& dag = loops.dag;
  const auto cells =
      static_cast<double>(attributes.ints_of("pooled_shape")[static_cast<std::size_t>(axis - 2)]);
  const int scale = loops.number(static_cast<double>(attributes.float_of("spatial_scale")));
  const int half = loops.number(0.5), one = loops.number(1);
  const auto rounded = [&](std::int64_t column) {  // halves away from 0
    const int x = loops.apply(ScalarOp::kMul, loops.of_region(column), scale);
    const int whole =
        dag.apply(ScalarOp::kFloor, {loops.apply(ScalarOp::kAdd, dag.apply(ScalarOp::kAbs, {x}), half)});
    return loops.apply(ScalarOp::kMul, dag.apply(ScalarOp::kSign, {x}), whole);
  };
  const std::int64_t column = 4 - axis;
  const int begin = rounded(column), end = rounded(column + 2);
  const int steps = loops.apply(ScalarOp::kAdd, loops.apply(ScalarOp::kSub, end, begin), one);
  const int cell = loops.apply(ScalarOp::kDiv, loops.apply(ScalarOp::kMax, steps, one), loops.number(cells));
  const int low_edge = loops.apply(ScalarOp::kMul, loops.of_axis(axis), cell);
  const int next = loops.apply(ScalarOp::kAdd, loops.of_axis(axis), one);
  const int high_edge = loops.apply(ScalarOp::kMul, next, cell);
  const int low = loops.apply(ScalarOp::kAdd, dag.apply(ScalarOp::kFloor, {low_edge}), begin);
  const int high = loops.apply(ScalarOp::kAdd, dag.apply(ScalarOp::kCeil, {high_edge}), begin);
  const int at = loops.of_axis(axis + 2);
  const int is_above = loops.apply(ScalarOp::kLessEqual, low, at),
            is_below = loops.apply(ScalarOp::kLess, at, high);
  return loops.apply(ScalarOp::kLogicalAnd, is_above, is_below);
}

/// Each cell looks at the whole image: which elements are its own only a run knows.
Form lower_pool(const LowerContext& context) {
  RegionLoops loops(context);
  Dag& dag = loops.dag;
  for (const int axis : {2, 3})
    loops.form.extents.push_back(context.shape(kImage)[static_cast<std::size_t>(axis)]);
  const Index image = loops.image_at(loops.of_region(0), nullptr);
  const int rows = is_in_cell(loops, 2), columns = is_in_cell(loops, 3);
  const int counts = loops.apply(ScalarOp::kLogicalAnd, rows, columns);
  const int element = dag.cast(
      dag.load(kImage, loops.stored, {image, Index::axis(1), Index::axis(4), Index::axis(5)}), loops.compute);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int lowest = loops.number(-kInfinity);
  loops.form.stages = {{Combine::kMax, loops.either(counts, element, lowest)}};
  const int largest = dag.accumulator(0, loops.compute);
  const int is_empty = loops.apply(ScalarOp::kEqual, largest, lowest);
  return loops.finished(loops.either(is_empty, loops.number(0), largest));
}

}  // namespace

const Operator& operator_RoiAlign() {
  static const Operator op = {
      .name = "RoiAlign",
      .versions = {10, 16, 22},
      .operands = {3, 3},
      .attributes = {{"coordinate_transformation_mode", AttributeKind::kString, std::string("half_pixel")},
                     {"mode", AttributeKind::kString, std::string("avg")},
                     {"output_height", AttributeKind::kInt, std::int64_t{1}},
                     {"output_width", AttributeKind::kInt, std::int64_t{1}},
                     {"sampling_ratio", AttributeKind::kInt, std::int64_t{0}},
                     {"spatial_scale", AttributeKind::kFloat, 1.0f}},
      .accuracy = Accuracy::kSum,
      .summary = "means or maxima of samples in the cells of each region; sampling_ratio above 0",
      .traits = {.decides = true},  // samples more than an element outside of the image are 0
      .normalise = normalise_align,
      .infer = infer_align,
      .lower = lower_align,
  };
  return op;
}

const Operator& operator_MaxRoiPool() {
  static const Operator op = {
      .name = "MaxRoiPool",
      .versions = {1, 22},
      .operands = {2, 2},
      .attributes = {{"pooled_shape", AttributeKind::kInts, std::nullopt, true},
                     {"spatial_scale", AttributeKind::kFloat, 1.0f}},
      .summary = "maxima of the cells of each region",
      .traits = {.decides = true},
      .infer = infer_pool,
      .lower = lower_pool,
  };
  return op;
}

}  // namespace gcompile::ir
