// ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ir/ops/scores.h"
#include "ir/ops/tree_tables.h"

namespace gcompile::ir {
namespace {

/// The number of features of a row, which must be known.
Dim features_of(const NodeView& node) {
  const Dim features = rows_of(node, 0)[1];
  if (!features.is_constant()) operator_error("the number of features must be known at compile time");
  return features;
}

void require_base_values(const std::vector<double>& values, std::int64_t targets) {
  if (values.empty() || static_cast<std::int64_t>(values.size()) == targets) return;
  operator_error(
      fmt::format("attribute 'base_values' has {} entries for {} targets", values.size(), targets));
}

/// A value for each target, of the type of `sums` (rows, targets).
ValueId emit_base(RewriteContext& context, ValueId sums, const std::vector<double>& values) {
  if (values.empty()) return sums;
  Tensor base(TensorType{context.type(sums).element, {1, static_cast<std::int64_t>(values.size())}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    base.set(static_cast<std::int64_t>(i), Scalar::of_real(base.element(), values[i]));
  }
  return context.emit("Add", {sums, context.constant(std::move(base))});
}

bool always_scores_all(const Forest& forest) {
  for (std::int64_t target = 0; target < forest.targets; ++target) {
    if (!always_scores(forest, target)) return false;
  }
  return true;
}

/// (rows, targets): whether any tree has a weight for the target.
ValueId emit_is_scored(RewriteContext& context, ValueId x, Forest forest) {
  for (TreeNode& node : forest.nodes) {
    for (auto& [target, weight] : node.weights) weight = 1;
  }
  const ValueId found = emit_forest(context, x, forest, "max");
  const ValueId zero = context.constant_scalar(context.type(x).element, 0);
  return context.emit("Greater", {found, zero});
}

/// The aggregate of all trees, plus base values, transformed. In ONNX Runtime one of several targets for which a row has no
/// weight is 0, whatever its base value.
ValueId emit_regression(RewriteContext& context, const Forest& forest, const std::string& aggregate,
                        const std::vector<double>& base, PostTransform transform) {
  const std::string combine = aggregate == "MIN" ? "min" : aggregate == "MAX" ? "max" : "sum";
  const ValueId x = emit_rows(context, 0, true);
  ValueId sums = emit_forest(context, x, forest, combine);
  if (aggregate == "AVERAGE") {
    const auto trees = static_cast<double>(forest.roots.size());
    const ValueId count = context.constant_scalar(context.type(sums).element, trees);
    sums = context.emit("Div", {sums, count});
  }
  ValueId scores = emit_base(context, sums, base);
  if (!base.empty() && forest.targets > 1 && !always_scores_all(forest)) {
    const ValueId is_scored = emit_is_scored(context, x, forest);
    scores = context.emit("Where", {is_scored, scores, context.constant_scalar(context.type(x).element, 0)});
  }
  return emit_post_transform(context, scores, transform);
}

constexpr std::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};

// TreeEnsembleRegressor -------------------------------------------------------------------------------------

Forest regressor_forest(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  const std::int64_t targets = attributes.has("n_targets") ? attributes.int_of("n_targets") : 1;
  return read_forest(attributes, "target", targets);
}

void infer_regressor(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const Forest forest = regressor_forest(context);
  check_forest(forest, features_of(context));
  require_one_of(attributes, "aggregate_function", {"AVERAGE", "SUM", "MIN", "MAX"});
  post_transform_of(attributes);
  require_base_values(base_values(attributes), forest.targets);
  context.set_result(0, ElementType::kFloat32, {rows_of(context, 0)[0], forest.targets});
}

bool decompose_regressor(RewriteContext& context) {
  const Attributes attributes = context.attributes();
  const ValueId y =
      emit_regression(context, regressor_forest(context), attributes.string_of("aggregate_function"),
                      base_values(attributes), post_transform_of(attributes));
  context.replace_result(0, emit_cast(context, y, ElementType::kFloat32));
  return true;
}

// TreeEnsemble ----------------------------------------------------------------------------------------------

PostTransform transform_by_number(const Attributes& attributes) {
  const std::int64_t number = attributes.int_of("post_transform");
  if (number < 0 || number > static_cast<std::int64_t>(PostTransform::kProbit)) {
    operator_error(fmt::format("attribute 'post_transform' is {}", number));
  }
  return static_cast<PostTransform>(number);
}

std::string aggregate_by_number(const Attributes& attributes) {
  const std::int64_t number = attributes.int_of("aggregate_function");
  if (number < 0 || number >= static_cast<std::int64_t>(std::size(kAggregates))) {
    operator_error(fmt::format("attribute 'aggregate_function' is {}", number));
  }
  return std::string(kAggregates[number]);
}

void infer_ensemble(InferContext& context) {
  require_float(context, 0);
  const Attributes& attributes = context.attributes();
  const Forest forest = read_forest(attributes);
  check_forest(forest, features_of(context));
  transform_by_number(attributes);
  aggregate_by_number(attributes);
  context.set_result(0, context.element(0), {rows_of(context, 0)[0], forest.targets});
}

bool decompose_ensemble(RewriteContext& context) {
  const Attributes attributes = context.attributes();
  const ValueId y = emit_regression(context, read_forest(attributes), aggregate_by_number(attributes), {},
                                    transform_by_number(attributes));
  context.replace_result(0, emit_cast(context, y, context.element(0)));
  return true;
}

// TreeEnsembleClassifier ------------------------------------------------------------------------------------

/// What decides how the sums of a classifier become labels and scores.
struct Classifier {
  ClassLabels labels;
  Forest forest;
  std::vector<double> base;
  PostTransform transform = PostTransform::kNone;
  std::set<std::int64_t> scored;  // classes that get weights
  bool is_positive = true;        // no weight is below 0

  explicit Classifier(const NodeView& node)
      : labels(class_labels(node.attributes(), "classlabels_int64s")),
        forest(read_forest(node.attributes(), "class", labels.count())),
        base(base_values(node.attributes())),
        transform(post_transform_of(node.attributes())) {
    for (const TreeNode& tree_node : forest.nodes) {
      for (const auto& [target, weight] : tree_node.weights) {
        scored.insert(target);
        is_positive = is_positive && weight >= 0;
      }
    }
  }

  bool is_binary() const { return labels.count() == 2; }
  /// One score for two classes.
  bool is_one_score() const { return is_binary() && scored.size() == 1; }
  /// The class that the one score counts for is the first one.
  bool is_first_scored() const { return scored.count(0) > 0; }
  std::int64_t columns() const { return labels.count(); }
};

void check(const Classifier& model) {
  const std::string many = fmt::format("attribute 'base_values' has {} entries for {} classes",
                                       model.base.size(), model.labels.count());
  if (model.scored.empty()) operator_error("no leaf has a weight");
  if (!model.is_binary()) {
    require_base_values(model.base, model.labels.count());
    return;
  }
  if (model.base.size() > 2) operator_error(many);
  if (model.is_one_score()) {
    if (model.base.size() == 2 && !model.is_first_scored()) {
      operator_error("two base values where only the second class has weights",
                     "ONNX Runtime leaves the weights out then; give one base value");
    }
    if (model.is_first_scored() && model.base.size() < 2) require_pair(model.transform);
    return;
  }
  if (!always_scores(model.forest, 0) || !always_scores(model.forest, 1)) {
    operator_error("of two classes that both have weights, some rows get none of one of them");
  }
}

void infer_classifier(InferContext& context) {
  const Classifier model(context);
  check_forest(model.forest, features_of(context));
  check(model);
  const Dim rows = rows_of(context, 0)[0];
  context.set_result(0, ElementType::kInt64, {rows});
  if (context.has_result(1)) context.set_result(1, ElementType::kFloat32, {rows, model.columns()});
}

struct Decided {
  ValueId label, scores;
};

/// One score for two classes: the second one wins above 0.5 where all weights are positive, else above 0.
Decided decide_by_one_score(RewriteContext& context, const Classifier& model, ValueId sums) {
  const std::int64_t at = model.is_first_scored() ? 0 : 1;
  ValueId score = emit_slice(context, sums, 1, at, at + 1);
  if (model.is_first_scored() && !model.base.empty()) score = emit_base(context, score, {model.base[0]});
  const std::vector<std::int64_t>& labels = model.labels.numbers;
  Decided decided;
  decided.label = emit_label_above(context, score, model.is_positive ? 0.5 : 0, labels[1], labels[0]);
  if (model.is_first_scored() && model.base.size() < 2) {
    const Pair pair = model.is_positive ? Pair::kComplement : Pair::kNegative;
    decided.scores = emit_pair(context, score, model.transform, pair);
    return decided;
  }
  const ValueId zero = emit_zeros(context, context.type(score));
  std::vector<ValueId> both = {score, zero};
  if (!model.is_first_scored()) std::swap(both[0], both[1]);
  decided.scores = emit_post_transform(context, emit_concat(context, both, 1), model.transform);
  return decided;
}

/// Scores of both classes: the second one wins above 0, and labels are 0 and 1. A base value belongs to the first class;
/// two of them make the score of the first class, plus the second value, that of the second.
Decided decide_by_two_scores(RewriteContext& context, const Classifier& model, ValueId sums) {
  ValueId first = emit_slice(context, sums, 1, 0, 1), second = emit_slice(context, sums, 1, 1, 2);
  if (model.base.size() == 1) first = emit_base(context, first, model.base);
  if (model.base.size() == 2) {
    second = emit_base(context, first, {model.base[1]});
    first = context.emit("Neg", {second});
  }
  Decided decided;
  decided.label = emit_label_above(context, second, 0, 1, 0);
  const ValueId both = emit_concat(context, {first, second}, 1);
  decided.scores = emit_post_transform(context, both, model.transform);
  return decided;
}

/// A class for which no tree had a weight does not win; a base value is one.
Decided decide_by_largest(RewriteContext& context, const Classifier& model, ValueId sums, ValueId x) {
  const ValueId scores = emit_base(context, sums, model.base);
  Decided decided;
  ValueId judged = scores;
  if (model.base.empty() && !always_scores_all(model.forest)) {
    const ElementType type = context.type(scores).element;
    const ValueId is_scored = emit_is_scored(context, x, model.forest);
    const ValueId least = context.constant_scalar(type, -std::numeric_limits<double>::infinity());
    judged = context.emit("Where", {is_scored, scores, least});
  }
  decided.label = emit_best_label(context, judged, model.labels);
  decided.scores = emit_post_transform(context, scores, model.transform);
  return decided;
}

bool decompose_classifier(RewriteContext& context) {
  const Classifier model(context);
  const ValueId x = emit_rows(context, 0, true);
  const ValueId sums = emit_forest(context, x, model.forest, "sum");
  Decided decided;
  if (model.labels.count() == 1) {
    const ValueId score = emit_base(context, sums, model.base);
    decided.label = emit_label_above(context, score, 0, 1, 0);
    decided.scores = emit_post_transform(context, score, model.transform);
  } else if (model.is_one_score()) {
    decided = decide_by_one_score(context, model, sums);
  } else if (model.is_binary()) {
    decided = decide_by_two_scores(context, model, sums);
  } else {
    decided = decide_by_largest(context, model, sums, x);
  }
  context.replace_result(0, decided.label);
  if (context.has_result(1)) {
    context.replace_result(1, emit_cast(context, decided.scores, ElementType::kFloat32));
  }
  return true;
}

std::vector<AttributeSpec> tree_attributes(std::vector<AttributeSpec> own) {
  const std::vector<AttributeSpec> shared = {
      {"base_values", AttributeKind::kFloats, std::nullopt},
      {"base_values_as_tensor", AttributeKind::kTensor, std::nullopt},
      {"nodes_falsenodeids", AttributeKind::kInts, std::nullopt},
      {"nodes_featureids", AttributeKind::kInts, std::nullopt},
      {"nodes_hitrates", AttributeKind::kFloats, std::nullopt},
      {"nodes_hitrates_as_tensor", AttributeKind::kTensor, std::nullopt},
      {"nodes_missing_value_tracks_true", AttributeKind::kInts, std::nullopt},
      {"nodes_modes", AttributeKind::kStrings, std::nullopt},
      {"nodes_nodeids", AttributeKind::kInts, std::nullopt},
      {"nodes_treeids", AttributeKind::kInts, std::nullopt},
      {"nodes_truenodeids", AttributeKind::kInts, std::nullopt},
      {"nodes_values", AttributeKind::kFloats, std::nullopt},
      {"nodes_values_as_tensor", AttributeKind::kTensor, std::nullopt},
      {"post_transform", AttributeKind::kString, std::string("NONE")}};
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

}  // namespace

const Operator& operator_MlTreeEnsembleClassifier() {
  static const Operator op = {
      .name = "TreeEnsembleClassifier",
      .domain = "ai.onnx.ml",
      .versions = {1, 3, 5},
      .results = {1, 2},
      .attributes = tree_attributes({{"class_ids", AttributeKind::kInts, std::nullopt},
                                     {"class_nodeids", AttributeKind::kInts, std::nullopt},
                                     {"class_treeids", AttributeKind::kInts, std::nullopt},
                                     {"class_weights", AttributeKind::kFloats, std::nullopt},
                                     {"class_weights_as_tensor", AttributeKind::kTensor, std::nullopt},
                                     {"classlabels_int64s", AttributeKind::kInts, std::nullopt},
                                     {"classlabels_strings", AttributeKind::kStrings, std::nullopt}}),
      .accuracy = Accuracy::kSum,
      .summary = "classes of rows by decision trees; of classes that are strings, their positions",
      .traits = {.decides = true},
      .infer = infer_classifier,
      .decompose = decompose_classifier,
  };
  return op;
}

const Operator& operator_MlTreeEnsembleRegressor() {
  static const Operator op = {
      .name = "TreeEnsembleRegressor",
      .domain = "ai.onnx.ml",
      .versions = {1, 3, 5},
      .attributes = tree_attributes({{"aggregate_function", AttributeKind::kString, std::string("SUM")},
                                     {"n_targets", AttributeKind::kInt, std::nullopt},
                                     {"target_ids", AttributeKind::kInts, std::nullopt},
                                     {"target_nodeids", AttributeKind::kInts, std::nullopt},
                                     {"target_treeids", AttributeKind::kInts, std::nullopt},
                                     {"target_weights", AttributeKind::kFloats, std::nullopt},
                                     {"target_weights_as_tensor", AttributeKind::kTensor, std::nullopt}}),
      .accuracy = Accuracy::kSum,
      .summary = "numbers that decision trees give rows",
      .traits = {.decides = true},
      .infer = infer_regressor,
      .decompose = decompose_regressor,
  };
  return op;
}

const Operator& operator_MlTreeEnsemble() {
  static const Operator op = {
      .name = "TreeEnsemble",
      .domain = "ai.onnx.ml",
      .versions = {5},
      .attributes = {{"aggregate_function", AttributeKind::kInt, std::int64_t{1}},
                     {"leaf_targetids", AttributeKind::kInts, std::nullopt, true},
                     {"leaf_weights", AttributeKind::kTensor, std::nullopt, true},
                     {"membership_values", AttributeKind::kTensor, std::nullopt},
                     {"n_targets", AttributeKind::kInt, std::nullopt},
                     {"nodes_falseleafs", AttributeKind::kInts, std::nullopt, true},
                     {"nodes_falsenodeids", AttributeKind::kInts, std::nullopt, true},
                     {"nodes_featureids", AttributeKind::kInts, std::nullopt, true},
                     {"nodes_hitrates", AttributeKind::kTensor, std::nullopt},
                     {"nodes_missing_value_tracks_true", AttributeKind::kInts, std::nullopt},
                     {"nodes_modes", AttributeKind::kTensor, std::nullopt, true},
                     {"nodes_splits", AttributeKind::kTensor, std::nullopt, true},
                     {"nodes_trueleafs", AttributeKind::kInts, std::nullopt, true},
                     {"nodes_truenodeids", AttributeKind::kInts, std::nullopt, true},
                     {"post_transform", AttributeKind::kInt, std::int64_t{0}},
                     {"tree_roots", AttributeKind::kInts, std::nullopt, true}},
      .accuracy = Accuracy::kSum,
      .summary = "numbers that decision trees give rows",
      .traits = {.decides = true},
      .infer = infer_ensemble,
      .decompose = decompose_ensemble,
  };
  return op;
}

}  // namespace gcompile::ir
