// ai.onnx.ml: SVMRegressor and SVMClassifier; gcompile.CouplePairs, which makes probabilities of classes from
// those of pairs.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/ops/scores.h"

namespace gcompile::ir {
namespace {

std::vector<float> floats_of(const Attributes& attributes, std::string_view name) {
  return attributes.has(name) ? attributes.floats_of(name) : std::vector<float>{};
}

/// Numbers of a model; without support vectors it is linear.
struct Machine {
  std::int64_t features = 0, vectors = 0;
  std::string kernel;
  float gamma = 0, shift = 0, degree = 0;
  std::vector<float> support, coefficients, rho;
};

Machine machine_of(const NodeView& node, std::int64_t vectors) {
  const Attributes& attributes = node.attributes();
  require_one_of(attributes, "kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"});
  Machine machine;
  const Dim features = rows_of(node, 0)[1];
  if (!features.is_constant()) operator_error("the number of features must be known at compile time");
  machine.features = features.constant();
  machine.vectors = vectors;
  machine.kernel = vectors > 0 ? attributes.string_of("kernel_type") : "LINEAR";
  machine.support = floats_of(attributes, "support_vectors");
  machine.coefficients = floats_of(attributes, "coefficients");
  machine.rho = floats_of(attributes, "rho");
  const std::vector<float> parameters = floats_of(attributes, "kernel_params");
  if (parameters.size() >= 3) {
    machine.gamma = parameters[0];
    machine.shift = parameters[1];
    machine.degree = parameters[2];
  } else if (machine.kernel != "LINEAR") {
    operator_error("attribute 'kernel_params' must be gamma, coef0 and degree");
  }
  if (machine.rho.empty()) operator_error("attribute 'rho' has no entry");
  const auto given = static_cast<std::int64_t>(machine.support.size());
  if (vectors < 0 || (vectors > 0 && (given % vectors != 0 || given / vectors != machine.features))) {
    operator_error(fmt::format("{} numbers are not {} support vectors of {} features", given, vectors,
                               machine.features));
  }
  return machine;
}

void require_entries(std::string_view name, std::size_t entries, std::int64_t wanted) {
  if (static_cast<std::int64_t>(entries) == wanted) return;
  operator_error(fmt::format("attribute '{}' has {} entries instead of {}", name, entries, wanted));
}

/// (rows, vectors): the kernel of each row and support vector.
ValueId emit_kernel(RewriteContext& context, const Machine& machine) {
  const ValueId x = emit_rows(context, 0);
  const Dim rows = context.type(x).shape[0];
  const auto number = [&](float value) {
    return context.constant_scalar(ElementType::kFloat32, static_cast<double>(value));
  };
  if (machine.kernel == "RBF") {
    const ValueId vectors =
        context.constant(Tensor::of_floats(machine.support, {1, machine.vectors, machine.features}));
    const ValueId apart =
        context.emit("Sub", {emit_reshape(context, x, {rows, 1, machine.features}), vectors});
    const ValueId squares = context.emit("Mul", {apart, apart});
    Attributes attributes;
    attributes.set("keepdims", std::int64_t{0});
    const std::vector<std::int64_t> last = {2};
    const ValueId sum = context.emit("ReduceSum", {squares, context.constant_ints(last)}, attributes);
    return context.emit("Exp", {context.emit("Mul", {sum, number(-machine.gamma)})});
  }
  const ValueId product = emit_affine(context, x, machine.support, {}, machine.vectors);
  if (machine.kernel == "LINEAR") return product;
  const ValueId gamma = number(machine.gamma), shift = number(machine.shift);
  const ValueId argument = context.emit("Add", {context.emit("Mul", {product, gamma}), shift});
  if (machine.kernel == "SIGMOID") return context.emit("Tanh", {argument});
  return context.emit("Pow", {argument, number(machine.degree)});
}

// SVMRegressor ----------------------------------------------------------------------------------------------

Machine regressor_of(const NodeView& node) {
  const Machine machine = machine_of(node, node.attributes().int_of("n_supports"));
  require_entries("coefficients", machine.coefficients.size(),
                  machine.vectors > 0 ? machine.vectors : machine.features);
  return machine;
}

void infer_regressor(InferContext& context) {
  regressor_of(context);
  context.set_result(0, ElementType::kFloat32, {rows_of(context, 0)[0], 1});
}

bool decompose_regressor(RewriteContext& context) {
  const Machine machine = regressor_of(context);
  const ValueId x = machine.vectors > 0 ? emit_kernel(context, machine) : emit_rows(context, 0);
  ValueId y = emit_affine(context, x, machine.coefficients, {machine.rho[0]}, 1);
  if (context.attributes().flag("one_class")) {
    const auto number = [&](double value) { return context.constant_scalar(ElementType::kFloat32, value); };
    const ValueId zero = number(0), inside = number(1), outside = number(-1);
    y = context.emit("Where", {context.emit("Greater", {y, zero}), inside, outside});
  }
  context.replace_result(0, y);
  return true;
}

// SVMClassifier ---------------------------------------------------------------------------------------------

constexpr std::int64_t kMostCoupled = 16;  // classes: a step of coupling takes their cube

struct Classifier {
  ClassLabels labels;
  std::vector<std::int64_t> counts;  // support vectors of each class; none: linear
  Machine machine;
  std::vector<float> a, b;  // of the logistic function of each pair
  PostTransform transform;

  explicit Classifier(const NodeView& node)
      : labels(class_labels(node.attributes(), "classlabels_ints")),
        counts(node.attributes().has("vectors_per_class") ? node.attributes().ints_of("vectors_per_class")
                                                          : std::vector<std::int64_t>{}),
        machine(machine_of(node, vectors())),
        a(floats_of(node.attributes(), "prob_a")),
        b(floats_of(node.attributes(), "prob_b")),
        transform(post_transform_of(node.attributes())) {}

  std::int64_t vectors() const {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts) {
      if (count < 0 || count > 1 << 30) operator_error(fmt::format("a class has {} support vectors", count));
      sum += count;
    }
    return sum;
  }
  bool is_linear() const { return machine.vectors == 0; }
  bool has_probabilities() const { return !a.empty() && !is_linear(); }
  std::int64_t classes() const { return labels.count(); }
  std::int64_t pairs() const { return classes() * (classes() - 1) / 2; }
  /// One score for two classes.
  bool is_one_score() const { return !is_linear() && !has_probabilities() && classes() == 2; }
  std::int64_t columns() const {
    return is_linear() || has_probabilities() ? classes() : std::max<std::int64_t>(pairs(), 2);
  }
};

void check(const Classifier& it) {
  if (it.is_linear()) {
    require_entries("coefficients", it.machine.coefficients.size(), it.classes() * it.machine.features);
    return;
  }
  if (it.classes() < 2) operator_error("support vectors of one class");
  require_entries("vectors_per_class", it.counts.size(), it.classes());
  require_entries("coefficients", it.machine.coefficients.size(), (it.classes() - 1) * it.machine.vectors);
  require_entries("rho", it.machine.rho.size(), it.pairs());
  require_entries("prob_b", it.b.size(), static_cast<std::int64_t>(it.a.size()));
  if (it.is_one_score()) require_pair(it.transform);
  if (!it.has_probabilities()) return;
  require_entries("prob_a", it.a.size(), it.pairs());
  if (it.classes() > kMostCoupled) {
    operator_error(fmt::format("probabilities of {} classes are not supported, {} are the most", it.classes(),
                               kMostCoupled));
  }
}

void infer_classifier(InferContext& context) {
  const Classifier it(context);
  check(it);
  const Dim rows = rows_of(context, 0)[0];
  context.set_result(0, ElementType::kInt64, {rows});
  if (context.has_result(1)) context.set_result(1, ElementType::kFloat32, {rows, it.columns()});
}

/// Calls visit(pair, i, j) for all i < j.
template <class F>
void for_pairs(std::int64_t classes, const F& visit) {
  std::int64_t pair = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    for (std::int64_t j = i + 1; j < classes; ++j) visit(pair++, i, j);
  }
}

/// (rows, pairs): a pair sums over the vectors of its two classes, as ONNX Runtime does in float64: many terms cancel.
ValueId emit_pair_scores(RewriteContext& context, const Classifier& it) {
  const std::int64_t vectors = it.machine.vectors;
  std::vector<float> weights(static_cast<std::size_t>(it.pairs() * vectors), 0);
  std::vector<std::int64_t> starts(it.counts.size(), 0);
  std::partial_sum(it.counts.begin(), it.counts.end() - 1, starts.begin() + 1);
  for_pairs(it.classes(), [&](std::int64_t pair, std::int64_t i, std::int64_t j) {
    for (const auto& [own, row] : {std::pair(i, j - 1), std::pair(j, i)}) {
      const std::int64_t begin = starts[static_cast<std::size_t>(own)];
      for (std::int64_t v = begin; v < begin + it.counts[static_cast<std::size_t>(own)]; ++v) {
        weights[static_cast<std::size_t>(pair * vectors + v)] =
            it.machine.coefficients[static_cast<std::size_t>(row * vectors + v)];
      }
    }
  });
  const ValueId kernel = emit_cast(context, emit_kernel(context, it.machine), ElementType::kFloat64);
  const ValueId sums = emit_affine(context, kernel, weights, it.machine.rho, it.pairs());
  return emit_cast(context, sums, ElementType::kFloat32);
}

/// The first class with the most pairs that it wins: the first of two above 0.
ValueId emit_winner(RewriteContext& context, const Classifier& it, ValueId scores) {
  std::vector<float> votes(static_cast<std::size_t>(it.classes() * it.pairs()), 0);
  std::vector<float> lost(static_cast<std::size_t>(it.classes()), 0);
  for_pairs(it.classes(), [&](std::int64_t pair, std::int64_t i, std::int64_t j) {
    votes[static_cast<std::size_t>(i * it.pairs() + pair)] = 1;
    votes[static_cast<std::size_t>(j * it.pairs() + pair)] = -1;
    lost[static_cast<std::size_t>(j)] += 1;
  });
  const ValueId zero = context.constant_scalar(ElementType::kFloat32, 0);
  const ValueId wins = emit_cast(context, context.emit("Greater", {scores, zero}), ElementType::kFloat32);
  return emit_best_label(context, emit_affine(context, wins, votes, lost, it.classes()), it.labels);
}

/// Each pair has a logistic function; then all pairs count at once, as Wu, Lin and Weng have it: 100 steps, of which those
/// change nothing that find the classes' probabilities good enough.
ValueId emit_probabilities(RewriteContext& context, const Classifier& it, ValueId scores) {
  constexpr std::int64_t kSteps = 100;
  const auto row = [&](const std::vector<float>& numbers) {
    return context.constant(Tensor::of_floats(numbers, {1, it.pairs()}));
  };
  const ValueId slope = row(it.a), start = row(it.b);
  const ValueId argument = context.emit("Add", {context.emit("Mul", {scores, slope}), start});
  const ValueId first = context.emit("Sigmoid", {context.emit("Neg", {argument})});
  const ValueId least = context.constant_scalar(ElementType::kFloat32, 1e-7);
  const ValueId most = context.constant_scalar(ElementType::kFloat32, 1 - 1e-7);
  const ValueId pairs = context.emit("Clip", {first, least, most});
  const double even = 1 / static_cast<double>(it.classes());
  const std::vector<float> begin(static_cast<std::size_t>(it.classes()), static_cast<float>(even));
  const ValueId equal = context.constant(Tensor::of_floats(begin, {1, it.classes()}));
  const Shape shape = {context.type(scores).shape[0], it.classes()};
  ValueId p = context.emit("Expand", {equal, context.constant_ints(shape)});
  const std::int64_t at_once = it.classes() <= 4 ? 5 : 1;
  for (std::int64_t step = 0; step < kSteps; step += at_once) {
    Attributes attributes;
    attributes.set("steps", at_once);
    p = context.emit("CouplePairs", {pairs, p}, attributes);
  }
  return p;
}

/// In a linear model with two classes the second one also wins where the largest score is positive enough.
ValueId emit_linear_label(RewriteContext& context, const Classifier& it, ValueId scores) {
  const ValueId best = emit_best_label(context, scores, it.labels);
  if (it.classes() != 2) return best;
  const bool is_positive = std::all_of(it.machine.coefficients.begin(), it.machine.coefficients.end(),
                                       [](float value) { return value >= 0; });
  const std::vector<std::int64_t> columns = {1};
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  const ValueId most = context.emit("ReduceMax", {scores, context.constant_ints(columns)}, attributes);
  const ValueId limit = context.constant_scalar(ElementType::kFloat32, is_positive ? 0.5 : 0);
  const ValueId wins = context.emit(is_positive ? "GreaterOrEqual" : "Greater", {most, limit});
  const ValueId second =
      context.constant_scalar(ElementType::kInt64, static_cast<double>(it.labels.numbers[1]));
  return context.emit("Where", {wins, second, best});
}

bool decompose_classifier(RewriteContext& context) {
  const Classifier it(context);
  ValueId scores, label;
  if (it.is_linear()) {
    const std::vector<float> shift(static_cast<std::size_t>(it.classes()), it.machine.rho[0]);
    scores = emit_affine(context, emit_rows(context, 0), it.machine.coefficients, shift, it.classes());
    label = emit_linear_label(context, it, scores);
  } else {
    scores = emit_pair_scores(context, it);
    label = emit_winner(context, it, scores);
  }
  context.replace_result(0, label);
  if (!context.has_result(1)) return true;
  if (it.is_one_score()) {
    const Pair pair = it.transform == PostTransform::kNone ? Pair::kNegative : Pair::kComplement;
    scores = emit_pair(context, scores, it.transform, pair);
  } else {
    if (it.has_probabilities()) scores = emit_probabilities(context, it, scores);
    scores = emit_post_transform(context, scores, it.transform);
  }
  context.replace_result(1, scores);
  return true;
}

// CouplePairs -----------------------------------------------------------------------------------------------

void infer_coupling(InferContext& context) { context.set_result(0, context.operand(1)); }

/// r(i, j), the probability of i among i and j, is column (i, j) of operand 0 for i < j, else 1 - r(j, i). A step
/// minimises p' Q p, one class after the other, unless p is good enough: Q(i, i) is the sum of r(j, i)^2 over j, and
/// Q(i, j) is -r(j, i) r(i, j).
class Coupling {
 public:
  Coupling(Dag& dag, std::int64_t classes) : dag_(dag), classes_(static_cast<std::size_t>(classes)) {
    const int one = number(1);
    std::vector<std::vector<int>> r(classes_, std::vector<int>(classes_, -1));
    for_pairs(classes, [&](std::int64_t pair, std::int64_t i, std::int64_t j) {
      const int of_pair = dag_.load(0, ElementType::kFloat32, {Index::axis(0), Index(pair)});
      r[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = of_pair;
      r[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] =
          dag_.apply(ScalarOp::kSub, {one, of_pair});
    });
    q_ = r;
    for (std::size_t i = 0; i < classes_; ++i) {
      int sum = -1;
      for (std::size_t j = 0; j < classes_; ++j) {
        if (i == j) continue;
        const int square = dag_.apply(ScalarOp::kMul, {r[j][i], r[j][i]});
        sum = sum < 0 ? square : dag_.apply(ScalarOp::kAdd, {sum, square});
        q_[i][j] = dag_.apply(ScalarOp::kNeg, {dag_.apply(ScalarOp::kMul, {r[j][i], r[i][j]})});
      }
      q_[i][i] = sum;
      p_.push_back(
          dag_.load(1, ElementType::kFloat32, {Index::axis(0), Index(static_cast<std::int64_t>(i))}));
    }
  }

  void step() {
    std::vector<int> qp;
    int total = -1, error = -1;
    for (std::size_t i = 0; i < classes_; ++i) {
      int sum = -1;
      for (std::size_t j = 0; j < classes_; ++j)
        sum = add(sum, dag_.apply(ScalarOp::kMul, {q_[i][j], p_[j]}));
      qp.push_back(sum);
      total = add(total, dag_.apply(ScalarOp::kMul, {p_[i], sum}));
    }
    for (std::size_t i = 0; i < classes_; ++i) {
      const int apart = dag_.apply(ScalarOp::kAbs, {dag_.apply(ScalarOp::kSub, {qp[i], total})});
      error = error < 0 ? apart : dag_.apply(ScalarOp::kMax, {error, apart});
    }
    const double good = 0.005 / static_cast<double>(classes_);
    const int is_good = dag_.apply(ScalarOp::kLess, {error, number(good)});
    const std::vector<int> before = p_;
    for (std::size_t i = 0; i < classes_; ++i) total = move(i, qp, total);
    for (std::size_t i = 0; i < classes_; ++i) {
      p_[i] = dag_.apply(ScalarOp::kSelect, {is_good, before[i], p_[i]});
    }
  }

  int probability(std::size_t i) const { return p_[i]; }

 private:
  int number(double value) { return dag_.constant(ElementType::kFloat32, value); }
  int add(int sum, int term) { return sum < 0 ? term : dag_.apply(ScalarOp::kAdd, {sum, term}); }

  /// The probability of class i goes to its best value, all of them keep the sum 1; returns the new p' Q p.
  int move(std::size_t i, std::vector<int>& qp, int total) {
    const int change = dag_.apply(ScalarOp::kDiv, {dag_.apply(ScalarOp::kSub, {total, qp[i]}), q_[i][i]});
    const int scale = dag_.apply(ScalarOp::kAdd, {number(1), change});
    p_[i] = dag_.apply(ScalarOp::kAdd, {p_[i], change});
    const int twice = dag_.apply(ScalarOp::kMul, {number(2), qp[i]});
    const int slope = dag_.apply(ScalarOp::kAdd, {dag_.apply(ScalarOp::kMul, {change, q_[i][i]}), twice});
    total = dag_.apply(ScalarOp::kAdd, {total, dag_.apply(ScalarOp::kMul, {change, slope})});
    total = dag_.apply(ScalarOp::kDiv, {dag_.apply(ScalarOp::kDiv, {total, scale}), scale});
    for (std::size_t j = 0; j < classes_; ++j) {
      const int part = dag_.apply(ScalarOp::kMul, {change, q_[i][j]});
      qp[j] = dag_.apply(ScalarOp::kDiv, {dag_.apply(ScalarOp::kAdd, {qp[j], part}), scale});
      p_[j] = dag_.apply(ScalarOp::kDiv, {p_[j], scale});
    }
    return total;
  }

  Dag& dag_;
  std::size_t classes_;
  std::vector<std::vector<int>> q_;
  std::vector<int> p_;
};

/// Each class has a region of its own.
Form lower_coupling(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  const std::int64_t classes = context.shape(1)[1].constant();
  Coupling coupling(form.dag, classes);
  for (std::int64_t step = 0; step < context.attributes().int_of("steps"); ++step) coupling.step();
  for (std::int64_t i = 0; i < classes; ++i) {
    Region region{form.ranges(), coupling.probability(static_cast<std::size_t>(i))};
    region.box[1] = {i, i + 1};
    form.regions.push_back(std::move(region));
  }
  return form;
}

}  // namespace

const Operator& operator_CouplePairs() {
  static const Operator op = {
      .name = "CouplePairs",
      .domain = "gcompile",
      .versions = {1},
      .operands = {2, 2},
      .attributes = {{"steps", AttributeKind::kInt, std::nullopt, true}},
      .accuracy = Accuracy::kSum,
      .summary = "steps towards the probabilities of classes from those of pairs",
      .traits = {.decides = true},
      .infer = infer_coupling,
      .lower = lower_coupling,
  };
  return op;
}

const Operator& operator_MlSVMRegressor() {
  static const Operator op = {
      .name = "SVMRegressor",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"coefficients", AttributeKind::kFloats, std::nullopt},
                     {"kernel_params", AttributeKind::kFloats, std::nullopt},
                     {"kernel_type", AttributeKind::kString, std::string("LINEAR")},
                     {"n_supports", AttributeKind::kInt, std::int64_t{0}},
                     {"one_class", AttributeKind::kInt, std::int64_t{0}},
                     {"post_transform", AttributeKind::kString, std::string("NONE")},
                     {"rho", AttributeKind::kFloats, std::nullopt},
                     {"support_vectors", AttributeKind::kFloats, std::nullopt}},
      .accuracy = Accuracy::kSum,
      .summary = "numbers that support vectors give rows",
      .infer = infer_regressor,
      .decompose = decompose_regressor,
  };
  return op;
}

const Operator& operator_MlSVMClassifier() {
  static const Operator op = {
      .name = "SVMClassifier",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .results = {1, 2},
      .attributes = {{"classlabels_ints", AttributeKind::kInts, std::nullopt},
                     {"classlabels_strings", AttributeKind::kStrings, std::nullopt},
                     {"coefficients", AttributeKind::kFloats, std::nullopt},
                     {"kernel_params", AttributeKind::kFloats, std::nullopt},
                     {"kernel_type", AttributeKind::kString, std::string("LINEAR")},
                     {"post_transform", AttributeKind::kString, std::string("NONE")},
                     {"prob_a", AttributeKind::kFloats, std::nullopt},
                     {"prob_b", AttributeKind::kFloats, std::nullopt},
                     {"rho", AttributeKind::kFloats, std::nullopt},
                     {"support_vectors", AttributeKind::kFloats, std::nullopt},
                     {"vectors_per_class", AttributeKind::kInts, std::nullopt}},
      .accuracy = Accuracy::kSum,
      .summary = "classes of rows by support vectors; of classes that are strings, their positions",
      .infer = infer_classifier,
      .decompose = decompose_classifier,
  };
  return op;
}

}  // namespace gcompile::ir
