// Resize and Upsample: decomposed into Resample, whose axes read at floor((m * i + c) / d) where such a
// formula exists, and at positions and weights from constant tables where not. Sizes that only a run knows
// have tables of the phases that repeat themselves; what is copied is read where a kernel computes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/resize_plan.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr std::int64_t kMostTaps = 16;  // per element; beyond, axes are resized one after another

/// Known float elements of operand i; empty when it is absent or empty (exporters pass empty tensors).
std::vector<double> floats_of(const NodeView& node, int i, std::string_view what) {
  if (!node.has_operand(i) || element_count(node.shape(i)) == 0) return {};
  const Tensor* tensor = node.constant(i);
  if (!tensor) {
    operator_error(fmt::format("{} must be known at compile time", what),
                   "bind the value with --set, or simplify the part of the model that computes it");
  }
  std::vector<double> values;
  for (std::int64_t k = 0; k < tensor->count(); ++k) values.push_back(tensor->real_at(k));
  return values;
}

void apply_sizes(const NodeView& node, const std::vector<int>& axes, std::vector<ResizeAxis>& plan) {
  const Shape sizes = node.known_sizes(3, "sizes");
  if (sizes.size() != axes.size()) operator_error("sizes must have one entry per axis");
  const std::string& policy = node.attributes().string_of("keep_aspect_ratio_policy");
  double kept = policy == "not_larger" ? HUGE_VAL : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = plan[axes[i]];
    axis.out = sizes[i];
    if (axis.is_open()) {
      const std::optional<Fraction> times = fraction_of(axis.out, axis.in);
      axis.scale.reset();
      if (times) axis.scale = static_cast<double>(times->numerator) / static_cast<double>(times->denominator);
      if (!times && !always_less(0, axis.in)) operator_error("an axis that may be empty cannot be resized");
      continue;
    }
    if (sizes[i] < 0) operator_error(fmt::format("a size is {}", sizes[i]));
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    kept = policy == "not_larger" ? std::min(kept, *axis.scale) : std::max(kept, *axis.scale);
  }
  if (policy == "stretch") return;
  if (std::any_of(plan.begin(), plan.end(), [](const ResizeAxis& axis) { return axis.is_open(); })) {
    operator_error("an aspect ratio that only a run knows");
  }
  for (const int i : axes) {
    ResizeAxis& axis = plan[i];
    axis.scale = kept;
    axis.is_scaled = true;
    axis.out = static_cast<std::int64_t>(std::floor(kept * static_cast<double>(axis.in) + 0.5));
  }
}

/// Whether a run reads the scales, and checks that they give the sizes, which are known: so Resize is settled.
bool reads_scales(const NodeView& node) {
  return node.has_operand(kScales) && node.has_operand(3) && !node.constant(kScales) &&
         element_count(node.shape(kScales)) != 0;
}

/// Whether a run reads the region of interest: of the operator that Resize then is.
bool reads_region(const NodeView& node) {
  return !node.node().op->domain.empty() && node.has_operand(kRegion) && !node.constant(kRegion);
}

std::vector<ResizeAxis> plan_of(const NodeView& node) {
  const Shape& shape = node.shape(0);
  const int rank = static_cast<int>(shape.size());
  std::vector<ResizeAxis> plan;
  for (const Dim n : shape) {
    ResizeAxis& axis = plan.emplace_back();
    axis.in = axis.out = n;
  }
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  if (node.attributes().has("axes")) {
    axes.clear();
    normalise_axes(node.attributes().ints_of("axes"), rank);  // refuses repeated axes
    for (const std::int64_t axis : node.attributes().ints_of("axes"))
      axes.push_back(normalise_axis(axis, rank));
  }
  if (reads_scales(node)) {
    const Shape sizes = node.known_sizes(3, "sizes");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = plan[axes[i]];
      axis.out = sizes.at(i);
      axis.is_scaled = true;
      axis.scale.reset();
      axis.scale_element = static_cast<int>(i);
    }
    return plan;
  }
  const std::vector<double> scales = floats_of(node, kScales, "scales");
  if (!scales.empty()) {
    if (scales.size() != axes.size()) operator_error("scales must have one entry per axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = plan[axes[i]];
      if (!(scales[i] > 0) || scales[i] > 1 << 20) operator_error(fmt::format("a scale is {}", scales[i]));
      axis.scale = scales[i];
      axis.is_scaled = true;
      if (axis.is_open()) {
        axis.out = scaled_size(axis.in, scales[i]);
        continue;
      }
      // The product in float32, as ONNX's shape inference has it.
      axis.out =
          static_cast<std::int64_t>(std::floor(static_cast<float>(axis.in) * static_cast<float>(scales[i])));
    }
  } else if (node.has_operand(3)) {
    apply_sizes(node, axes, plan);
  } else {
    operator_error("neither scales nor sizes are given");
  }
  if (node.attributes().string_of("coordinate_transformation_mode") == "tf_crop_and_resize") {
    if (reads_region(node)) {
      for (std::size_t i = 0; i < axes.size(); ++i) {
        plan[axes[i]].begin_element = static_cast<int>(i);
        plan[axes[i]].end_element = static_cast<int>(i + axes.size());
      }
      return plan;
    }
    const std::vector<double> roi = floats_of(node, kRegion, "roi");
    if (roi.size() != 2 * axes.size()) operator_error("roi must have two entries per axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      plan[axes[i]].roi_begin = roi[i];
      plan[axes[i]].roi_end = roi[i + axes.size()];
    }
  }
  return plan;
}

/// Resize-10 has scales as input 1, reads at x / scale and knows no other attribute than the mode.
void normalise(RewriteContext& context) {
  if (context.operand_count() != 2 || context.opset() >= 11) return;
  const ValueId scales = context.operand_id(1);
  context.set_operand(1, ValueId{});
  context.set_operand(2, scales);
  context.mutable_attributes().set("coordinate_transformation_mode", std::string("asymmetric"));
  context.mutable_attributes().set("nearest_mode", std::string("simple"));
}

ResizeMethod method_of(const Attributes& attributes) {
  ResizeMethod method;
  method.mode = attributes.string_of("mode");
  method.coordinates = attributes.string_of("coordinate_transformation_mode");
  method.nearest = attributes.string_of("nearest_mode");
  method.cubic_a = static_cast<double>(attributes.float_of("cubic_coeff_a"));
  method.exclude_outside = attributes.flag("exclude_outside");
  method.antialias = attributes.flag("antialias");
  return method;
}

bool all_copy(const std::vector<ResizeAxis>& plan, const ResizeMethod& method) {
  return std::all_of(plan.begin(), plan.end(), [&](const ResizeAxis& axis) { return copies(axis, method); });
}

/// Whether a run computes what is read: of sizes that only it knows, where elements are copied, or weights do
/// not repeat themselves.
bool computes_reads(const std::vector<ResizeAxis>& plan, const ResizeMethod& method) {
  const auto has_none = [&](const ResizeAxis& axis) {
    return axis.is_open() && !copies(axis, method) && !has_phases(axis, method);
  };
  const bool is_open =
      std::any_of(plan.begin(), plan.end(), [](const ResizeAxis& axis) { return axis.is_open(); });
  if (!is_open || all_copy(plan, method)) return is_open;
  std::int64_t taps = 1;
  for (const ResizeAxis& axis : plan) taps *= copies(axis, method) ? 1 : method.mode == "cubic" ? 4 : 2;
  return sums_anywhere(method) && taps <= kMostTaps && std::any_of(plan.begin(), plan.end(), has_none);
}

/// How a Resample reads one axis.
struct AxisReads {
  bool keeps = false;  // as it lies
  AxisTable table = {};
  /// The scale where only a run knows the sizes; the table then has one row for each phase.
  std::optional<Fraction> scale = std::nullopt;
};

AxisReads open_reads(const ResizeAxis& axis, const ResizeMethod& method) {
  if (keeps(axis, method)) return {.keeps = true};
  AxisPhases phases = axis_phases(axis, method);
  return {.table = std::move(phases.table), .scale = phases.scale};
}

AxisReads reads_of(const ResizeAxis& axis, const ResizeMethod& method) {
  if (axis.is_open()) return open_reads(axis, method);
  AxisTable table = axis_table(axis, method);
  bool keeps = table.taps == 1 && table.rows == axis.in;
  for (std::int64_t i = 0; keeps && i < table.rows; ++i) {
    keeps = table.positions[i] == i;
  }
  return {.keeps = keeps, .table = std::move(table)};
}

void infer(InferContext& context) {
  require_computable(context, 0);
  const Attributes& attributes = context.attributes();
  require_one_of(attributes, "mode", {"nearest", "linear", "cubic"});
  require_one_of(attributes, "coordinate_transformation_mode",
                 {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                  "tf_crop_and_resize", "tf_half_pixel_for_nn"});  // the last in opset 11 alone
  require_one_of(attributes, "nearest_mode",
                 {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"});
  require_one_of(attributes, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
  const ResizeMethod method = method_of(context.attributes());
  Shape out;
  const std::vector<ResizeAxis> plan = plan_of(context);
  for (const ResizeAxis& axis : plan) {
    if (axis.in == 0 && axis.out > 0) operator_error("an empty axis cannot be resized");
    if (axis.is_open() && !computes_reads(plan, method)) open_reads(axis, method);  // refuses what has none
    out.push_back(axis.out);
  }
  context.set_result(0, context.element(0), std::move(out));
}

/// A Resample of the axes in `chosen`; the others stay as they are.
ValueId emit_resample(RewriteContext& context, ValueId x, const std::vector<AxisReads>& reads,
                      const std::vector<bool>& chosen) {
  const TensorType type = context.type(x);
  std::vector<std::int64_t> sizes;
  for (const Dim size : type.shape) sizes.push_back(size.is_constant() ? size.constant() : -1);
  std::vector<std::int64_t> multipliers(sizes.size(), 1), offsets(sizes.size(), 0), divisors(sizes.size(), 1);
  std::vector<std::int64_t> table_axes;
  std::vector<ValueId> operands = {x};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!chosen[i] || (reads[i].keeps && sizes[i] < 0)) continue;
    const AxisTable& table = reads[i].table;
    if (reads[i].scale) {
      multipliers[i] = reads[i].scale->denominator;
      divisors[i] = reads[i].scale->numerator;
    } else {
      sizes[i] = table.rows;
      if (const std::optional<AxisFormula> formula = formula_of(table)) {
        multipliers[i] = formula->multiplier;
        offsets[i] = formula->offset;
        divisors[i] = formula->divisor;
        continue;
      }
    }
    table_axes.push_back(static_cast<std::int64_t>(i));
    const Shape shape = {table.rows, table.taps};
    operands.push_back(context.constant(Tensor::of_ints(table.positions, shape), context.node().results[0]));
    if (table.taps == 1) continue;
    const ElementType element = is_float(type.element) ? compute_type(type.element) : ElementType::kFloat32;
    Tensor weights(TensorType{element, shape});
    for (std::int64_t k = 0; k < weights.count(); ++k) {
      weights.set(k, Scalar::of_real(element, table.weights[k]));
    }
    operands.push_back(context.constant(std::move(weights), context.node().results[0]));
  }
  Attributes attributes;
  attributes.set("sizes", sizes);
  attributes.set("multipliers", multipliers);
  attributes.set("offsets", offsets);
  attributes.set("divisors", divisors);
  attributes.set("table_axes", table_axes);
  return context.emit("Resample", std::move(operands), std::move(attributes));
}

ValueId emit_passes(RewriteContext& context, ValueId x, const std::vector<AxisReads>& reads) {
  std::int64_t taps = 1;
  for (const AxisReads& axis : reads) taps *= axis.table.taps;
  if (taps <= kMostTaps) return emit_resample(context, x, reads, std::vector<bool>(reads.size(), true));
  // Between the passes nothing is rounded to less than float32.
  const ElementType type = context.type(x).element;
  ValueId value = emit_cast(context, x, is_float(type) ? compute_type(type) : ElementType::kFloat32);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    std::vector<bool> chosen(reads.size(), false);
    chosen[i] = true;
    if (!reads[i].keeps) value = emit_resample(context, value, reads, chosen);
  }
  return emit_cast(context, value, type);
}

Scalar fill_of(const NodeView& node) {
  const double fill = static_cast<double>(node.attributes().float_of("extrapolation_value"));
  return cast(Scalar::of_real(ElementType::kFloat64, fill), node.element(0));
}

bool decompose(RewriteContext& context) {
  const Shape out = context.result(0).shape;
  const ElementType type = context.element(0);
  if (element_count(out) == 0) {
    context.replace_result(0, context.constant(Tensor(TensorType{type, out})));
    return true;
  }
  const ResizeMethod method = method_of(context.attributes());
  const std::vector<ResizeAxis> plan = plan_of(context);
  if (computes_reads(plan, method)) {
    // A node of its own, which comes in the order where a Resample would.
    context.replace_result(0, context.emit("Interpolate", context.node().operands, context.attributes()));
    return true;
  }
  std::vector<AxisReads> reads;
  std::vector<std::int64_t> begin, end;
  bool empty = false;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const AxisTable& table = reads.emplace_back(reads_of(plan[i], method)).table;
    begin.push_back(0);
    end.push_back(0);
    if (plan[i].is_open()) continue;
    begin.back() = table.begin;  // the region of interest
    end.back() = out[i] - table.begin - table.rows;
    empty = empty || table.rows == 0;
  }
  if (empty) {
    context.replace_result(0, context.constant(Tensor::filled(TensorType{type, out}, fill_of(context))));
    return true;
  }
  ValueId value = emit_passes(context, context.operand_id(0), reads);
  if (context.type(value).shape != out) {
    begin.insert(begin.end(), end.begin(), end.end());
    value = context.emit("Pad", {value, context.constant_ints(begin),
                                 context.constant(Tensor::filled(TensorType{type, {}}, fill_of(context)))});
  }
  context.replace_result(0, value);
  return true;
}

/// The sum over the taps of axis `i` and those behind it, of what the operand has at `index`.
int weighed_sum(const LowerContext& context, Dag& dag,
                const std::vector<std::vector<WeighedElement>>& elements, std::vector<Index>& index,
                std::size_t i) {
  if (i == elements.size()) {
    const ElementType type = context.element(0);
    return dag.cast(dag.load(0, type, index), is_float(type) ? compute_type(type) : ElementType::kFloat32);
  }
  if (elements[i].empty()) return weighed_sum(context, dag, elements, index, i + 1);
  int total = -1;
  for (const WeighedElement& element : elements[i]) {
    index[i] = Index::loaded(element.position, Range{0, context.shape(0)[i]});
    const int value = weighed_sum(context, dag, elements, index, i + 1);
    const int term = dag.apply(ScalarOp::kMul, {dag.cast(element.weight, dag.type(value)), value});
    total = total < 0 ? term : dag.apply(ScalarOp::kAdd, {total, term});
  }
  return total;
}

/// `is_outside`, or -1, becomes whether the element lies outside along this axis, too.
void add_outside(Dag& dag, int& is_outside, int along_axis) {
  if (along_axis < 0) return;
  is_outside = is_outside < 0 ? along_axis : dag.apply(ScalarOp::kLogicalOr, {is_outside, along_axis});
}

/// What is outside has the value that extrapolates.
int with_fill(const LowerContext& context, Dag& dag, int is_outside, int value) {
  if (is_outside < 0) return value;
  const int fill = dag.cast(dag.constant(fill_of(context)), dag.type(value));
  return dag.apply(ScalarOp::kSelect, {is_outside, fill, value});
}

/// Linear and cubic interpolation; axes that copy stay as they lie, or have one element.
Form lower_sums(const LowerContext& context, const std::vector<ResizeAxis>& plan,
                const ResizeMethod& method) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  std::vector<std::vector<WeighedElement>> elements(plan.size());
  std::vector<Index> index;
  int is_outside = -1;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Index at = Index::axis(static_cast<int>(i));
    index.push_back(keeps(plan[i], method) ? at : Index(0));
    if (copies(plan[i], method)) continue;
    WeighedElements weighed = weighed_elements(form.dag, plan[i], method, form.dag.iota(at));
    elements[i] = std::move(weighed.elements);
    add_outside(form.dag, is_outside, weighed.is_outside);
  }
  const int sum = weighed_sum(context, form.dag, elements, index, 0);
  form.set_root(form.dag.cast(with_fill(context, form.dag, is_outside, sum), context.element(0)));
  return form;
}

/// Sizes that only a run knows are lowered by formulas.
Form lower(const LowerContext& context) {
  const ResizeMethod method = method_of(context.attributes());
  const std::vector<ResizeAxis> plan = plan_of(context);
  if (!all_copy(plan, method)) return lower_sums(context, plan, method);
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  std::vector<Index> index;
  int is_outside = -1;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Index at = Index::axis(static_cast<int>(i));
    if (const std::optional<AxisFormula> formula = formula_of_all_sizes(plan[i], method)) {
      index.push_back(
          floor_div(at * formula->multiplier + Index(formula->offset), formula->divisor, form.ranges()));
      continue;
    }
    const NearestElement element = nearest_element(dag, plan[i], method, dag.iota(at));
    index.push_back(Index::loaded(element.position, Range{0, plan[i].in}));
    add_outside(dag, is_outside, element.is_outside);
  }
  const ElementType type = context.element(0);
  int root = dag.load(0, type, std::move(index));
  if (is_outside >= 0)
    root = dag.cast(with_fill(context, dag, is_outside, dag.cast(root, compute_type(type))), type);
  form.set_root(root);
  return form;
}

/// Upsample-1 has the scales of height and width as attributes, Upsample-7 all scales in one, Upsample-9 as
/// input 1; both read at x / scale.
void normalise_upsample(RewriteContext& context) {
  ValueId scales;
  if (context.attributes().has("height_scale") && context.attributes().has("width_scale")) {
    const float given[] = {1, 1, context.attributes().float_of("height_scale"),
                           context.attributes().float_of("width_scale")};
    scales = context.constant(Tensor::of_floats(given, {4}));
  } else if (context.attributes().has("scales")) {
    const std::vector<float>& given = context.attributes().floats_of("scales");
    scales = context.constant(Tensor::of_floats(given, {static_cast<std::int64_t>(given.size())}));
  } else if (context.has_operand(1)) {
    scales = context.operand_id(1);
  } else {
    operator_error("scales are missing");
  }
  Attributes attributes;
  std::string mode = context.attributes().has("mode") ? context.attributes().string_of("mode") : "nearest";
  if (mode == "bilinear") mode = "linear";  // as early exporters spelt it
  attributes.set("mode", std::move(mode));
  attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  attributes.set("nearest_mode", std::string("floor"));
  context.replace_with("Resize", {context.operand_id(0), ValueId{}, scales}, std::move(attributes));
}

void infer_upsample(InferContext&) { operator_error("Upsample is normalised to Resize"); }

/// What Resize and Interpolate, which it becomes, have in common.
Operator resize_record() {
  Operator o;
  o.operands = {1, 4};
  o.attributes = {{"antialias", AttributeKind::kInt, std::int64_t{0}},
                  {"axes", AttributeKind::kInts, std::nullopt},
                  {"coordinate_transformation_mode", AttributeKind::kString, std::string("half_pixel")},
                  {"cubic_coeff_a", AttributeKind::kFloat, -0.75f},
                  {"exclude_outside", AttributeKind::kInt, std::int64_t{0}},
                  {"extrapolation_value", AttributeKind::kFloat, 0.0f},
                  {"keep_aspect_ratio_policy", AttributeKind::kString, std::string("stretch")},
                  {"mode", AttributeKind::kString, std::string("nearest")},
                  {"nearest_mode", AttributeKind::kString, std::string("round_prefer_floor")}};
  o.accuracy = Accuracy::kSum;
  o.infer = infer;
  return o;
}

}  // namespace

const Operator& operator_Interpolate() {
  static const Operator op = [] {
    Operator o = resize_record();
    o.name = "Interpolate";
    o.domain = "gcompile";
    o.versions = {1};
    o.summary = "a Resize whose positions and weights a run computes";
    o.lower = lower;
    return o;
  }();
  return op;
}

const Operator& operator_Resize() {
  static const Operator op = [] {
    Operator o = resize_record();
    o.name = "Resize";
    o.versions = {10, 11, 13, 18, 19};
    o.summary = "nearest, linear or cubic resampling of any axes";
    o.normalise = normalise;
    o.decompose = decompose;
    return o;
  }();
  return op;
}

const Operator& operator_Upsample() {
  static const Operator op = {
      .name = "Upsample",
      .versions = {1, 7, 9},
      .operands = {1, 2},
      .attributes = {{"mode", AttributeKind::kString, std::string("nearest")},
                     {"scales", AttributeKind::kFloats, std::nullopt}},
      .accuracy = Accuracy::kSum,
      .summary = "the operator before Resize",
      .normalise = normalise_upsample,
      .infer = infer_upsample,
  };
  return op;
}

}  // namespace gcompile::ir
