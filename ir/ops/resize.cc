// Resize and Upsample: decomposed into Resample, whose axes read at floor((m * i + c) / d) where such a
// formula exists, and at positions and weights from constant tables where not.

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

/// Of an axis whose size only a run knows.
void scale_open(ResizeAxis& axis, double scale) {
  if (!axis.size || scale < 1 || scale != std::floor(scale)) {
    operator_error("sizes that only a run knows are resized by whole numbers alone",
                   "give the dimension a number with --dim or --shape");
  }
  axis.scale = scale;
  axis.out = axis.in * static_cast<std::int64_t>(scale);
}

void apply_sizes(const NodeView& node, const std::vector<int>& axes, std::vector<ResizeAxis>& plan) {
  const Shape sizes = node.known_sizes(3, "sizes");
  if (sizes.size() != axes.size()) operator_error("sizes must have one entry per axis");
  const std::string& policy = node.attributes().string_of("keep_aspect_ratio_policy");
  double kept = policy == "not_larger" ? HUGE_VAL : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = plan[static_cast<std::size_t>(axes[i])];
    if (axis.size || !sizes[i].is_constant()) {
      const std::optional<Dim> times = exact_quotient(sizes[i], axis.size.value_or(Dim(axis.in)));
      scale_open(axis, times && times->is_constant() ? static_cast<double>(*times) : 0);
      continue;
    }
    if (sizes[i] < 0) operator_error(fmt::format("a size is {}", sizes[i]));
    axis.out = sizes[i];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    kept = policy == "not_larger" ? std::min(kept, axis.scale) : std::max(kept, axis.scale);
  }
  if (policy == "stretch") return;
  if (std::any_of(plan.begin(), plan.end(), [](const ResizeAxis& axis) { return axis.size.has_value(); })) {
    operator_error("an aspect ratio that only a run knows");
  }
  for (const int i : axes) {
    ResizeAxis& axis = plan[static_cast<std::size_t>(i)];
    axis.scale = kept;
    axis.out = static_cast<std::int64_t>(std::floor(kept * static_cast<double>(axis.in) + 0.5));
  }
}

std::vector<ResizeAxis> plan_of(const NodeView& node) {
  const Shape& shape = node.shape(0);
  const int rank = static_cast<int>(shape.size());
  std::vector<ResizeAxis> plan;
  constexpr std::int64_t kSample = 4;
  for (const Dim n : shape) {
    ResizeAxis& axis = plan.emplace_back();
    axis.in = axis.out = n.is_constant() ? n.constant() : kSample;
    if (!n.is_constant()) axis.size = n;
  }
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  if (node.attributes().has("axes")) {
    axes.clear();
    normalise_axes(node.attributes().ints_of("axes"), rank);  // refuses repeated axes
    for (const std::int64_t axis : node.attributes().ints_of("axes"))
      axes.push_back(normalise_axis(axis, rank));
  }
  const std::vector<double> scales = floats_of(node, 2, "scales");
  if (!scales.empty()) {
    if (scales.size() != axes.size()) operator_error("scales must have one entry per axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = plan[static_cast<std::size_t>(axes[i])];
      if (!(scales[i] > 0) || scales[i] > 1 << 20) operator_error(fmt::format("a scale is {}", scales[i]));
      if (axis.size) {
        scale_open(axis, scales[i]);
        continue;
      }
      axis.scale = scales[i];
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
    const std::vector<double> roi = floats_of(node, 1, "roi");
    if (roi.size() != 2 * axes.size()) operator_error("roi must have two entries per axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      plan[static_cast<std::size_t>(axes[i])].roi_begin = roi[i];
      plan[static_cast<std::size_t>(axes[i])].roi_end = roi[i + axes.size()];
    }
  }
  return plan;
}

template <class List>
void require_one_of(const Attributes& attributes, std::string_view name, const List& known) {
  const std::string& value = attributes.string_of(name);
  if (std::find(std::begin(known), std::end(known), value) == std::end(known)) {
    operator_error(fmt::format("attribute '{}' is '{}', which is not known", name, printable(value)));
  }
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

void infer(InferContext& context) {
  require_computable(context, 0);
  constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
  constexpr std::string_view kCoordinates[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                               "align_corners", "asymmetric",           "tf_crop_and_resize"};
  constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                           "simple"};
  constexpr std::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};
  require_one_of(context.attributes(), "mode", kModes);
  require_one_of(context.attributes(), "coordinate_transformation_mode", kCoordinates);
  require_one_of(context.attributes(), "nearest_mode", kNearest);
  require_one_of(context.attributes(), "keep_aspect_ratio_policy", kPolicies);
  Shape out;
  for (const ResizeAxis& axis : plan_of(context)) {
    if (axis.in == 0 && axis.out > 0) operator_error("an empty axis cannot be resized");
    out.push_back(axis.out_size());
  }
  context.set_result(0, context.element(0), std::move(out));
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

/// A Resample of the axes in `chosen`; the others stay as they are.
ValueId emit_resample(RewriteContext& context, ValueId x, const std::vector<AxisTable>& tables,
                      const std::vector<bool>& chosen) {
  const TensorType type = context.type(x);
  std::vector<std::int64_t> sizes;
  for (const Dim size : type.shape) sizes.push_back(size.is_constant() ? size.constant() : -1);
  std::vector<std::int64_t> multipliers(sizes.size(), 1), offsets(sizes.size(), 0), divisors(sizes.size(), 1);
  std::vector<std::int64_t> table_axes;
  std::vector<ValueId> operands = {x};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!chosen[i]) continue;
    const AxisTable& table = tables[i];
    if (sizes[i] >= 0) sizes[i] = table.rows;
    if (const std::optional<AxisFormula> formula = formula_of(table)) {
      multipliers[i] = formula->multiplier;
      offsets[i] = formula->offset;
      divisors[i] = formula->divisor;
      continue;
    }
    table_axes.push_back(static_cast<std::int64_t>(i));
    const Shape shape = {table.rows, table.taps};
    operands.push_back(context.constant(Tensor::of_ints(table.positions, shape), context.node().results[0]));
    if (table.taps == 1) {
      operands.push_back(ValueId{});
      continue;
    }
    const ElementType element = is_float(type.element) ? compute_type(type.element) : ElementType::kFloat32;
    Tensor weights(TensorType{element, shape});
    for (std::int64_t k = 0; k < weights.count(); ++k) {
      weights.set(k, Scalar::of_real(element, table.weights[static_cast<std::size_t>(k)]));
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

bool keeps_axis(const AxisTable& table, Dim size) {
  if (!size.is_constant()) return formula_of(table) == AxisFormula{};
  if (table.taps != 1 || table.rows != size) return false;
  for (std::int64_t i = 0; i < size; ++i) {
    if (table.positions[static_cast<std::size_t>(i)] != i) return false;
  }
  return true;
}

ValueId emit_passes(RewriteContext& context, ValueId x, const std::vector<AxisTable>& tables) {
  std::int64_t taps = 1;
  for (const AxisTable& table : tables) taps *= table.taps;
  if (taps <= kMostTaps) return emit_resample(context, x, tables, std::vector<bool>(tables.size(), true));
  // Between the passes nothing is rounded to less than float32.
  const ElementType type = context.type(x).element;
  ValueId value = emit_cast(context, x, is_float(type) ? compute_type(type) : ElementType::kFloat32);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::vector<bool> chosen(tables.size(), false);
    chosen[i] = true;
    const bool idle = keeps_axis(tables[i], context.type(value).shape[i]);
    if (!idle) value = emit_resample(context, value, tables, chosen);
  }
  return emit_cast(context, value, type);
}

bool decompose(RewriteContext& context) {
  const Shape out = context.result(0).shape;
  const ElementType type = context.element(0);
  const double fill = static_cast<double>(context.attributes().float_of("extrapolation_value"));
  if (element_count(out) == 0) {
    context.replace_result(0, context.constant(Tensor(TensorType{type, out})));
    return true;
  }
  std::vector<AxisTable> tables;
  std::vector<std::int64_t> begin, end;
  const std::vector<ResizeAxis> plan = plan_of(context);
  bool empty = false;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    tables.push_back(axis_table(plan[i], method_of(context.attributes())));
    if (plan[i].size) {
      if (!formula_of_all_sizes(plan[i], method_of(context.attributes()))) {
        operator_error("sizes that only a run knows are resized by copying elements alone",
                       "give the dimension a number with --dim or --shape");
      }
      begin.push_back(0);
      end.push_back(0);
      continue;
    }
    begin.push_back(tables.back().begin);
    end.push_back(out[i] - tables.back().begin - tables.back().rows);
    empty = empty || tables.back().rows == 0;
  }
  if (empty) {  // the region of interest misses the input
    const Scalar value = cast(Scalar::of_real(ElementType::kFloat64, fill), type);
    context.replace_result(0, context.constant(Tensor::filled(TensorType{type, out}, value)));
    return true;
  }
  ValueId value = emit_passes(context, context.operand_id(0), tables);
  if (context.type(value).shape != out) {
    begin.insert(begin.end(), end.begin(), end.end());
    value = context.emit("Pad", {value, context.constant_ints(begin), context.constant_scalar(type, fill)});
  }
  context.replace_result(0, value);
  return true;
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

}  // namespace

const Operator& operator_Resize() {
  static const Operator op = [] {
    Operator o;
    o.name = "Resize";
    o.versions = {10, 11, 13, 18, 19};
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
    o.summary = "nearest, linear or cubic resampling of any axes";
    o.normalise = normalise;
    o.infer = infer;
    o.decompose = decompose;
    return o;
  }();
  return op;
}

const Operator& operator_Upsample() {
  static const Operator op = [] {
    Operator o;
    o.name = "Upsample";
    o.versions = {1, 7, 9};
    o.operands = {1, 2};
    o.attributes = {{"mode", AttributeKind::kString, std::string("nearest")},
                    {"scales", AttributeKind::kFloats, std::nullopt}};
    o.accuracy = Accuracy::kSum;
    o.summary = "the operator before Resize";
    o.normalise = normalise_upsample;
    o.infer = infer_upsample;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
