// ai.onnx.ml, features: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer and Scaler.

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

void infer_extractor(InferContext& context) {
  require_computable(context, 0);
  if (context.element(1) != ElementType::kInt64) operator_error("the positions must be int64");
  Shape y = context.shape(0);
  if (y.empty()) operator_error("the input must have an axis");
  y.back() = element_count(context.shape(1));
  if (y.size() == 1) y.insert(y.begin(), 1);
  context.set_result(0, context.element(0), std::move(y));
}

/// Elements of the last axis; what has one axis is one row.
bool decompose_extractor(RewriteContext& context) {
  const Shape y = context.result(0).shape;
  const ValueId positions = emit_reshape(context, context.operand_id(1), {element_count(context.shape(1))});
  Attributes attributes;
  attributes.set("axis", std::int64_t{-1});
  const ValueId taken = context.emit("Gather", {context.operand_id(0), positions}, attributes);
  context.replace_result(0, emit_reshape(context, taken, y));
  return true;
}

void infer_binarizer(InferContext& context) {
  require_computable(context, 0);
  context.set_result(0, context.operand(0));
}

Form lower_binarizer(const LowerContext& context) {
  const double threshold = static_cast<double>(context.attributes().float_of("threshold"));
  return elementwise(context, [&](Dag& dag, const std::vector<int>& x) {
    const ElementType compute = is_float(dag.type(x[0])) ? dag.type(x[0]) : ElementType::kFloat64;
    const int number = dag.cast(x[0], compute);
    return dag.apply(ScalarOp::kGreater, {number, dag.constant(compute, threshold)});
  });
}

// Scaler ----------------------------------------------------------------------------------------------------

/// Matrices, and what has one axis as one row.
void require_features(const NodeView& node, int i) {
  require_computable(node, i);
  const Shape& x = node.shape(i);
  if (x.empty() || x.size() > 2)
    operator_error(fmt::format("input {} must be (rows, features), not {}", i, to_string(x)));
}

/// One number for all features, or one for each.
template <class T>
void require_numbers(const NodeView& node, std::string_view name, const std::vector<T>& numbers) {
  if (numbers.size() == 1 || node.shape(0).back() == static_cast<std::int64_t>(numbers.size())) return;
  operator_error(fmt::format("attribute '{}' has {} entries for {} features", name, numbers.size(),
                             to_string(node.shape(0).back())));
}

void infer_scaler(InferContext& context) {
  require_features(context, 0);
  for (const char* name : {"offset", "scale"}) {
    if (context.attributes().has(name)) require_numbers(context, name, context.attributes().floats_of(name));
  }
  context.set_result(0, ElementType::kFloat32, context.shape(0));
}

/// (x - offset) * scale; float64 is rounded at the end.
bool decompose_scaler(RewriteContext& context) {
  const bool is_double = context.element(0) == ElementType::kFloat64;
  const ElementType type = is_double ? ElementType::kFloat64 : ElementType::kFloat32;
  ValueId y = emit_cast(context, context.operand_id(0), type);
  for (const auto& [name, op] : {std::pair("offset", "Sub"), std::pair("scale", "Mul")}) {
    if (!context.attributes().has(name)) continue;
    const std::vector<float> numbers = context.attributes().floats_of(name);
    const Tensor row = Tensor::of_floats(numbers, {static_cast<std::int64_t>(numbers.size())});
    const ValueId operand = emit_cast(context, context.constant(row), type);
    y = context.emit(op, {y, operand});
  }
  context.replace_result(0, emit_cast(context, y, ElementType::kFloat32));
  return true;
}

// Imputer ---------------------------------------------------------------------------------------------------

void infer_imputer(InferContext& context) {
  require_features(context, 0);
  const Attributes& attributes = context.attributes();
  const char* const name = is_float(context.element(0)) ? "imputed_value_floats" : "imputed_value_int64s";
  if (!attributes.has(name)) operator_error(fmt::format("attribute '{}' is missing", name));
  if (is_float(context.element(0))) {
    require_numbers(context, name, attributes.floats_of(name));
  } else {
    require_numbers(context, name, attributes.ints_of(name));
  }
  context.set_result(0, context.operand(0));
}

/// What equals the replaced value, or is NaN like it, becomes the imputed one.
bool decompose_imputer(RewriteContext& context) {
  const Attributes& attributes = context.attributes();
  const ElementType type = context.element(0);
  const ValueId x = context.operand_id(0);
  Tensor imputed;
  ValueId is_missing;
  if (is_float(type)) {
    const std::vector<float>& numbers = attributes.floats_of("imputed_value_floats");
    imputed = Tensor::of_floats(numbers, {static_cast<std::int64_t>(numbers.size())});
    const auto replaced = static_cast<double>(attributes.float_of("replaced_value_float"));
    if (std::isnan(replaced)) {
      is_missing = context.emit("IsNaN", {x});
    } else {
      is_missing = context.emit("Equal", {x, context.constant_scalar(type, replaced)});
    }
  } else {
    const std::vector<std::int64_t>& numbers = attributes.ints_of("imputed_value_int64s");
    imputed = Tensor::of_ints(numbers, {static_cast<std::int64_t>(numbers.size())});
    const std::vector<std::int64_t> replaced = {attributes.int_of("replaced_value_int64")};
    is_missing = context.emit("Equal", {x, emit_cast(context, context.constant_ints(replaced), type)});
  }
  const ValueId values = emit_cast(context, context.constant(std::move(imputed)), type);
  context.replace_result(0, context.emit("Where", {is_missing, values, x}));
  return true;
}

// Normalizer ------------------------------------------------------------------------------------------------

void infer_normalizer(InferContext& context) {
  require_features(context, 0);
  require_one_of(context.attributes(), "norm", {"MAX", "L1", "L2"});
  context.set_result(0, ElementType::kFloat32, context.shape(0));
}

/// Divided by the largest number, the sum of magnitudes or the root of the sum of squares; by 1 where that is 0.
bool decompose_normalizer(RewriteContext& context) {
  const std::string norm = context.attributes().string_of("norm");
  const ValueId x = emit_cast(context, context.operand_id(0), ElementType::kFloat32);
  const std::vector<std::int64_t> last = {-1};
  const char* const op = norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2";
  const ValueId size = context.emit(op, {x, context.constant_ints(last)});
  const ValueId zero = context.constant_scalar(ElementType::kFloat32, 0);
  const ValueId one = context.constant_scalar(ElementType::kFloat32, 1);
  const ValueId divisor = context.emit("Where", {context.emit("Equal", {size, zero}), one, size});
  context.replace_result(0, context.emit("Div", {x, divisor}));
  return true;
}

// FeatureVectorizer -----------------------------------------------------------------------------------------

void infer_vectorizer(InferContext& context) {
  const std::vector<std::int64_t> columns = context.attributes().has("inputdimensions")
                                                ? context.attributes().ints_of("inputdimensions")
                                                : std::vector<std::int64_t>{};
  if (!columns.empty() && static_cast<int>(columns.size()) != context.operand_count()) {
    operator_error(fmt::format("attribute 'inputdimensions' has {} entries for {} inputs", columns.size(),
                               context.operand_count()));
  }
  Dim sum = 0, rows = 1;
  for (int i = 0; i < context.operand_count(); ++i) {
    require_features(context, i);
    const Shape& x = context.shape(i);
    const Dim own = x.size() == 1 ? Dim(1) : x[0];
    if (i == 0) rows = own;
    if (!assume_equal(own, rows)) operator_error(fmt::format("input {} has not the rows of input 0", i));
    if (!columns.empty() && x.back() != columns[static_cast<std::size_t>(i)]) {
      operator_error(fmt::format("input {} has {} features, not {}", i, to_string(x.back()),
                                 columns[static_cast<std::size_t>(i)]));
    }
    sum += x.back();
  }
  context.set_result(0, ElementType::kFloat32, {rows, sum});
}

bool decompose_vectorizer(RewriteContext& context) {
  const Dim rows = context.result(0).shape[0];
  std::vector<ValueId> parts;
  for (int i = 0; i < context.operand_count(); ++i) {
    const ValueId numbers = emit_cast(context, context.operand_id(i), ElementType::kFloat32);
    parts.push_back(emit_reshape(context, numbers, {rows, context.shape(i).back()}));
  }
  context.replace_result(0, parts.size() == 1 ? parts[0] : emit_concat(context, parts, 1));
  return true;
}

}  // namespace

const Operator& operator_MlFeatureVectorizer() {
  static const Operator op = {
      .name = "FeatureVectorizer",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .operands = {1, -1},
      .attributes = {{"inputdimensions", AttributeKind::kInts, std::nullopt}},
      .summary = "features of several inputs behind each other, as floats",
      .infer = infer_vectorizer,
      .decompose = decompose_vectorizer,
  };
  return op;
}

const Operator& operator_MlImputer() {
  static const Operator op = {
      .name = "Imputer",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"imputed_value_floats", AttributeKind::kFloats, std::nullopt},
                     {"imputed_value_int64s", AttributeKind::kInts, std::nullopt},
                     {"replaced_value_float", AttributeKind::kFloat, 0.0f},
                     {"replaced_value_int64", AttributeKind::kInt, std::int64_t{0}}},
      .summary = "another number, or that of the feature, in place of a given one or NaN",
      .traits = {.decides = true},
      .infer = infer_imputer,
      .decompose = decompose_imputer,
  };
  return op;
}

const Operator& operator_MlNormalizer() {
  static const Operator op = {
      .name = "Normalizer",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"norm", AttributeKind::kString, std::string("MAX")}},
      .accuracy = Accuracy::kSum,
      .summary = "rows divided by their largest number, or by their norm",
      .infer = infer_normalizer,
      .decompose = decompose_normalizer,
  };
  return op;
}

const Operator& operator_MlScaler() {
  static const Operator op = {
      .name = "Scaler",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"offset", AttributeKind::kFloats, std::nullopt},
                     {"scale", AttributeKind::kFloats, std::nullopt}},
      .accuracy = Accuracy::kRounding,
      .summary = "(x - offset) * scale, for each feature",
      .infer = infer_scaler,
      .decompose = decompose_scaler,
  };
  return op;
}

const Operator& operator_MlArrayFeatureExtractor() {
  static const Operator op = {
      .name = "ArrayFeatureExtractor",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .operands = {2, 2},
      .summary = "elements of the last axis at given positions",
      .infer = infer_extractor,
      .decompose = decompose_extractor,
  };
  return op;
}

const Operator& operator_MlBinarizer() {
  static const Operator op = {
      .name = "Binarizer",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"threshold", AttributeKind::kFloat, 0.0f}},
      .summary = "x > threshold, as a number",
      .traits = {.decides = true},
      .infer = infer_binarizer,
      .lower = lower_binarizer,
  };
  return op;
}

}  // namespace gcompile::ir
