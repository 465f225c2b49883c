// ai.onnx.ml: LinearRegressor and LinearClassifier.

#include <fmt/format.h>

#include "ir/ops/scores.h"

namespace gcompile::ir {
namespace {

std::vector<float> floats_of(const Attributes& attributes, std::string_view name) {
  return attributes.has(name) ? attributes.floats_of(name) : std::vector<float>{};
}

/// A row of coefficients for each of `targets`, and as many intercepts or none.
struct LinearModel {
  std::int64_t targets = 1, features = 0;
  std::vector<float> coefficients, intercepts;
};

LinearModel model_of(const NodeView& node, std::int64_t targets) {
  LinearModel model;
  const Dim features = rows_of(node, 0)[1];
  if (!features.is_constant()) operator_error("the number of features must be known at compile time");
  model.features = features.constant();
  model.coefficients = floats_of(node.attributes(), "coefficients");
  model.intercepts = floats_of(node.attributes(), "intercepts");
  const auto count = static_cast<std::int64_t>(model.coefficients.size());
  if (model.features == 0) operator_error("rows have no features");
  if (targets == 0) targets = count / model.features;
  model.targets = targets;
  if (targets < 1 || count % targets != 0 || count / targets != model.features) {
    operator_error(fmt::format("there are {} coefficients for {} targets of {} features", count, targets,
                               model.features));
  }
  if (!model.intercepts.empty() && static_cast<std::int64_t>(model.intercepts.size()) != targets) {
    operator_error(fmt::format("there are {} intercepts for {} targets", model.intercepts.size(), targets));
  }
  return model;
}

ValueId emit_linear(RewriteContext& context, const LinearModel& model) {
  return emit_affine(context, emit_rows(context, 0), model.coefficients, model.intercepts, model.targets);
}

// LinearRegressor -------------------------------------------------------------------------------------------

void infer_regressor(InferContext& context) {
  const std::int64_t targets = context.attributes().int_of("targets");
  if (targets < 1) operator_error(fmt::format("attribute 'targets' is {}", targets));
  model_of(context, targets);
  post_transform_of(context.attributes());
  context.set_result(0, ElementType::kFloat32, {rows_of(context, 0)[0], targets});
}

bool decompose_regressor(RewriteContext& context) {
  const ValueId scores = emit_linear(context, model_of(context, context.attributes().int_of("targets")));
  context.replace_result(0, emit_post_transform(context, scores, post_transform_of(context.attributes())));
  return true;
}

// LinearClassifier ------------------------------------------------------------------------------------------

struct Classifier {
  ClassLabels labels;
  LinearModel model;
  PostTransform transform;

  explicit Classifier(const NodeView& node)
      : labels(class_labels(node.attributes(), "classlabels_ints")),
        model(model_of(node, static_cast<std::int64_t>(floats_of(node.attributes(), "intercepts").size()))),
        transform(post_transform_of(node.attributes())) {}
  /// One score for two classes.
  bool is_one_score() const { return model.targets == 1; }
};

void infer_classifier(InferContext& context) {
  const Classifier it(context);
  const std::int64_t classes = it.is_one_score() ? 2 : it.model.targets;
  if (it.labels.count() != classes) {
    operator_error(fmt::format("there are {} class labels for {} rows of coefficients", it.labels.count(),
                               it.model.targets));
  }
  if (it.is_one_score()) require_pair(it.transform);
  const Dim rows = rows_of(context, 0)[0];
  context.set_result(0, ElementType::kInt64, {rows});
  if (context.has_result(1)) context.set_result(1, ElementType::kFloat32, {rows, classes});
}

bool decompose_classifier(RewriteContext& context) {
  const Classifier it(context);
  const ValueId scores = emit_linear(context, it.model);
  if (it.is_one_score()) {
    const ValueId label = emit_label_above(context, scores, 0, it.labels.numbers[1], it.labels.numbers[0]);
    context.replace_result(0, label);
    if (context.has_result(1)) {
      context.replace_result(1, emit_pair(context, scores, it.transform, Pair::kComplement));
    }
    return true;
  }
  context.replace_result(0, emit_best_label(context, scores, it.labels));
  if (context.has_result(1)) context.replace_result(1, emit_post_transform(context, scores, it.transform));
  return true;
}

}  // namespace

const Operator& operator_MlLinearRegressor() {
  static const Operator op = {
      .name = "LinearRegressor",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"coefficients", AttributeKind::kFloats, std::nullopt},
                     {"intercepts", AttributeKind::kFloats, std::nullopt},
                     {"post_transform", AttributeKind::kString, std::string("NONE")},
                     {"targets", AttributeKind::kInt, std::int64_t{1}}},
      .accuracy = Accuracy::kSum,
      .summary = "rows times coefficients, plus intercepts",
      .infer = infer_regressor,
      .decompose = decompose_regressor,
  };
  return op;
}

const Operator& operator_MlLinearClassifier() {
  static const Operator op = {
      .name = "LinearClassifier",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .results = {1, 2},
      .attributes = {{"classlabels_ints", AttributeKind::kInts, std::nullopt},
                     {"classlabels_strings", AttributeKind::kStrings, std::nullopt},
                     {"coefficients", AttributeKind::kFloats, std::nullopt, true},
                     {"intercepts", AttributeKind::kFloats, std::nullopt},
                     {"multi_class", AttributeKind::kInt, std::int64_t{0}},
                     {"post_transform", AttributeKind::kString, std::string("NONE")}},
      .accuracy = Accuracy::kSum,
      .summary = "classes of rows by products; of classes that are strings, their positions",
      .infer = infer_classifier,
      .decompose = decompose_classifier,
  };
  return op;
}

}  // namespace gcompile::ir
