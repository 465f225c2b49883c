// Random numbers of a counter-based generator, Philox 4x32-10 (gcrt/scalar/philox.h): random bits are a function of a key
// and a counter, so that every element draws its own wherever a kernel computes it, on both targets and in any number of
// threads. The key is the seed; the counter is the element's position in its tensor, and the stream, a hash of the
// tensor's name.

#include <cmath>
#include <cstring>
#include <numbers>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// FNV-1a of 64 bits. Trips of a loop and calls of a function are parts of a name, so that each draws other numbers.
std::int64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::int64_t>(hash);
}

std::int64_t stream_of(const NodeView& node) {
  return hash_of(node.has_result(0) ? node.graph().value(node.node().results[0]).name : node.node().name);
}

/// The bits of the seed; 0 where none is given.
std::int64_t key_of(const NodeView& node) {
  if (!node.attributes().has("seed")) return 0;
  const float seed = node.attributes().float_of("seed");
  std::uint32_t bits;
  std::memcpy(&bits, &seed, sizeof bits);
  return bits;
}

/// Numbers of one distribution: uniform in [first, second), or normal of mean `first` and deviation `second`.
struct Numbers {
  Shape shape;
  ElementType element = ElementType::kFloat32;
  bool normal = false;
  float first = 0, second = 1;
  std::int64_t key = 0, stream = 0;

  Attributes attributes() const {
    Attributes out;
    out.set("dtype", onnx_number_of(element));
    out.set("normal", std::int64_t{normal});
    out.set("first", first);
    out.set("second", second);
    out.set("key", key);
    out.set("stream", stream);
    return out;
  }
};

ValueId emit_numbers(RewriteContext& context, const Numbers& numbers) {
  return context.emit("RandomNumbers", {context.constant_ints(numbers.shape)}, numbers.attributes());
}

/// The type in which numbers are compared with one of `type`.
ElementType drawn_for(ElementType type) {
  return type == ElementType::kFloat64 ? ElementType::kFloat64 : ElementType::kFloat32;
}

// RandomNumbers ---------------------------------------------------------------------------------------------

void infer_numbers(InferContext& context) {
  const ElementType type = computable_type_of(context.attributes(), "dtype");
  if (!is_float(type)) operator_error("random numbers are floats");
  context.set_result(0, type, context.known_sizes(0, "the shape"));
}

/// The random bits of each element.
class Block {
 public:
  Block(Dag& dag, const Shape& shape, std::int64_t key, std::int64_t stream) : dag_(dag) {
    std::vector<Index> position;
    for (std::size_t i = 0; i < shape.size(); ++i) position.push_back(Index::axis(static_cast<int>(i)));
    position_ = dag.cast(dag.iota(linearise(position, shape)), ElementType::kUInt64);
    key_ = bits(key);
    stream_ = bits(stream);
  }

  /// Number `i` of two in [0, 1): the first 24 bits of word 1 and of word 0, or 53 bits of two words.
  int uniform(int i, ElementType type) {
    const bool is_wide = type == ElementType::kFloat64;
    int x = dag_.apply(is_wide && i == 1 ? ScalarOp::kPhiloxHigh : ScalarOp::kPhiloxLow,
                       {position_, key_, stream_});
    if (!is_wide && i == 1) x = dag_.apply(ScalarOp::kBitAnd, {x, bits(0xffffffff)});
    x = dag_.apply(ScalarOp::kShiftRight, {x, bits(is_wide ? 11 : i == 1 ? 8 : 40)});
    // Every machine converts signed integers.
    const int real = dag_.cast(dag_.cast(x, ElementType::kInt64), type);
    return dag_.apply(ScalarOp::kMul, {real, dag_.constant(type, is_wide ? 0x1p-53 : 0x1p-24)});
  }

 private:
  int bits(std::int64_t value) { return dag_.constant(Scalar::of_integer(ElementType::kUInt64, value)); }
  Dag& dag_;
  int position_, key_, stream_;
};

/// first + u * (second - first), or first + second * sqrt(-2 log(1 - u)) cos(2 pi v) (Box and Muller).
Form lower_numbers(const LowerContext& context) {
  const TensorType& type = context.result(0);
  const Attributes& attributes = context.attributes();
  const ElementType compute = compute_type(type.element);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const auto number = [&](double value) { return dag.constant(compute, value); };
  Block block(dag, type.shape, attributes.int_of("key"), attributes.int_of("stream"));
  const auto first = static_cast<double>(attributes.float_of("first"));
  const auto second = static_cast<double>(attributes.float_of("second"));
  int x = block.uniform(0, compute);
  double factor = second - first;
  if (attributes.flag("normal")) {
    const int log = dag.apply(ScalarOp::kLog, {dag.apply(ScalarOp::kSub, {number(1), x})});
    const int radius = dag.apply(ScalarOp::kSqrt, {dag.apply(ScalarOp::kMul, {number(-2), log})});
    const int angle = dag.apply(ScalarOp::kMul, {number(2 * std::numbers::pi), block.uniform(1, compute)});
    x = dag.apply(ScalarOp::kMul, {radius, dag.apply(ScalarOp::kCos, {angle})});
    factor = second;
  }
  x = dag.apply(ScalarOp::kMul, {x, number(factor)});
  form.set_root(dag.cast(dag.apply(ScalarOp::kAdd, {x, number(first)}), type.element));
  return form;
}

// RandomUniform, RandomNormal, and those that take the shape of a tensor ------------------------------------

/// `like`: operand 0 has the shape, and the type where none is given.
template <bool kNormal, bool kLike>
void normalise_numbers(RewriteContext& context) {
  Attributes& attributes = context.mutable_attributes();
  complete_attributes(*context.node().op, attributes);
  Numbers numbers;
  if (!attributes.has("dtype")) {
    if (kLike) numbers.element = context.element(0);
  } else {
    numbers.element = computable_type_of(attributes, "dtype");
  }
  if (kLike) {
    numbers.shape = context.shape(0);
  } else {
    for (const std::int64_t size : attributes.ints_of("shape")) {
      if (size < 0) operator_error("attribute 'shape' has a negative size");
      numbers.shape.push_back(size);
    }
  }
  numbers.normal = kNormal;
  numbers.first = attributes.float_of(kNormal ? "mean" : "low");
  numbers.second = attributes.float_of(kNormal ? "scale" : "high");
  numbers.key = key_of(context);
  numbers.stream = stream_of(context);
  context.replace_with("RandomNumbers", {context.constant_ints(numbers.shape)}, numbers.attributes());
}

/// Where an operator's normal form is another one.
void infer_never(InferContext&) { operator_error("random numbers have a normal form"); }

// Bernoulli, Multinomial ------------------------------------------------------------------------------------

/// 1 with the probability that the operand says.
void normalise_bernoulli(RewriteContext& context) {
  require_float(context, 0);
  Numbers numbers;
  numbers.shape = context.shape(0);
  numbers.element = drawn_for(context.element(0));
  numbers.key = key_of(context);
  numbers.stream = stream_of(context);
  const Attributes& attributes = context.attributes();
  Attributes to;
  to.set("to", attributes.has("dtype") ? attributes.int_of("dtype") : onnx_number_of(context.element(0)));
  const ValueId p = emit_cast(context, context.operand_id(0), numbers.element);
  const ValueId holds = context.emit("Less", {emit_numbers(context, numbers), p});
  context.replace_with("Cast", {holds}, std::move(to));
}

/// Sums of exp(x) up to each class divide a line; a sample is the number of those that lie at or before its place.
void normalise_multinomial(RewriteContext& context) {
  require_float(context, 0);
  Attributes& attributes = context.mutable_attributes();
  complete_attributes(*context.node().op, attributes);
  const Shape x = context.shape(0);
  if (x.size() != 2) operator_error("input 0 must be (batch, classes)");
  if (is_one(x[1] + 1, "the number of classes may be 0")) operator_error("there are no classes");
  const std::int64_t samples = attributes.int_of("sample_size");
  if (samples < 0) operator_error("attribute 'sample_size' is negative");
  Numbers numbers;
  numbers.shape = {x[0], samples};
  numbers.element = ElementType::kFloat64;
  numbers.key = key_of(context);
  numbers.stream = stream_of(context);
  const ValueId real = emit_cast(context, context.operand_id(0), ElementType::kFloat64);
  const std::vector<std::int64_t> last = {1}, third = {2};
  const ValueId top = context.emit("ReduceMax", {real, context.constant_ints(last)});
  const ValueId weights = context.emit("Exp", {context.emit("Sub", {real, top})});
  const ValueId sums = context.emit("CumSum", {weights, emit_number(context, 1)});
  const ValueId total = emit_slice(context, sums, 1, x[1] - 1, x[1]);
  const ValueId place = context.emit("Mul", {emit_numbers(context, numbers), total});
  const ValueId is_before = context.emit("LessOrEqual", {emit_reshape(context, sums, {x[0], 1, x[1]}),
                                                         emit_reshape(context, place, {x[0], samples, 1})});
  Attributes dropped;
  dropped.set("keepdims", std::int64_t{0});
  const ValueId count = context.emit(
      "ReduceSum", {emit_cast(context, is_before, ElementType::kInt64), context.constant_ints(third)},
      dropped);
  Attributes to;
  to.set("to", attributes.int_of("dtype"));
  context.replace_with("Cast", {context.emit("Min", {count, emit_number(context, x[1] - 1)})}, std::move(to));
}

// Dropout ---------------------------------------------------------------------------------------------------

constexpr int kRatio = 1, kTraining = 2, kNumbers = 3;

/// Something may be dropped.
bool is_training(const NodeView& node) {
  if (!node.has_operand(kTraining)) return false;
  const std::optional<Scalar> training = constant_scalar(node, kTraining);
  const std::optional<Scalar> ratio = constant_scalar(node, kRatio);
  return !(training && training->integer == 0) && !(ratio && ratio->real == 0);
}

/// Opsets before 12 have the ratio as attribute and know inference only. What is drawn becomes an operand of its own.
void normalise_dropout(RewriteContext& context) {
  Attributes& attributes = context.mutable_attributes();
  attributes.erase("ratio");
  attributes.erase("is_test");  // opset 6
  if (context.operand_count() > kNumbers) operator_error("there are at most three inputs");
  if (is_training(context)) {
    require_float(context, 0);
    Numbers numbers;
    numbers.shape = context.shape(0);
    numbers.element = drawn_for(context.element(0));
    if (attributes.has("seed")) numbers.key = attributes.int_of("seed");
    numbers.stream = stream_of(context);
    context.set_operand(kNumbers, emit_numbers(context, numbers));
  }
  attributes.erase("seed");
}

void infer_dropout(InferContext& context) {
  if (context.has_operand(kTraining)) {
    require_scalar(context, kTraining, "training_mode");
    if (context.element(kTraining) != ElementType::kBool) operator_error("training_mode must be a bool");
  }
  if (context.has_operand(kNumbers) && context.has_operand(kRatio)) {
    require_scalar(context, kRatio, "the ratio");
    const std::optional<Scalar> ratio = constant_scalar(context, kRatio);
    if (ratio && !(ratio->real >= 0 && ratio->real < 1)) operator_error("the ratio must lie in [0, 1)");
  }
  context.set_result(0, context.operand(0));
  context.set_result(1, ElementType::kBool, context.shape(0));
}

/// An element is kept where its number in [0, 1) is at least the ratio, and all are where a run does not train.
void decompose_training(RewriteContext& context) {
  const ElementType type = context.element(0), compute = compute_type(type);
  const auto number = [&](double value) { return context.constant_scalar(compute, value); };
  const ValueId ratio =
      context.has_operand(kRatio)
          ? emit_cast(context, emit_reshape(context, context.operand_id(kRatio), {}), compute)
          : number(0.5);
  ValueId kept = context.emit("GreaterOrEqual", {context.operand_id(kNumbers), ratio});
  ValueId scale = context.emit("Reciprocal", {context.emit("Sub", {number(1), ratio})});
  if (!constant_scalar(context, kTraining)) {
    const ValueId training = emit_reshape(context, context.operand_id(kTraining), {});
    kept = context.emit("Or", {kept, context.emit("Not", {training})});
    scale = context.emit("Where", {training, scale, number(1)});
  }
  const ValueId x = emit_cast(context, context.operand_id(0), compute);
  const ValueId y = context.emit("Where", {kept, context.emit("Mul", {x, scale}), number(0)});
  context.replace_result(0, emit_cast(context, y, type));
  if (context.has_result(1)) context.replace_result(1, kept);
}

bool decompose_dropout(RewriteContext& context) {
  if (context.has_operand(kNumbers)) {
    decompose_training(context);
    return true;
  }
  context.replace_result(0, context.operand_id(0));
  if (context.has_result(1)) {
    const TensorType mask{ElementType::kBool, context.shape(0)};
    context.replace_result(1,
                           context.constant(Tensor::filled(mask, Scalar::of_integer(ElementType::kBool, 1))));
  }
  return true;
}

Operator record(std::string_view name, std::vector<int> versions, Arity operands, std::string_view summary,
                void (*normalise)(RewriteContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands;
  op.deterministic = false;
  op.accuracy = Accuracy::kFunction;
  op.summary = summary;
  op.normalise = normalise;
  op.infer = infer_never;
  op.attributes = {{"seed", AttributeKind::kFloat, std::nullopt}};
  return op;
}

Operator distribution(std::string_view name, Arity operands, std::string_view summary, bool normal,
                      void (*normalise)(RewriteContext&)) {
  Operator op = record(name, {1, 22}, operands, summary, normalise);
  op.attributes.push_back({"dtype", AttributeKind::kInt, std::nullopt});
  op.attributes.push_back({normal ? "mean" : "low", AttributeKind::kFloat, 0.0f});
  op.attributes.push_back({normal ? "scale" : "high", AttributeKind::kFloat, 1.0f});
  if (operands.max == 0) op.attributes.push_back({"shape", AttributeKind::kInts, std::nullopt, true});
  return op;
}

}  // namespace

const Operator& operator_Bernoulli() {
  static const Operator op = [] {
    Operator o = record("Bernoulli", {15, 22}, {1, 1}, "1 with the probability that the operand says, else 0",
                        normalise_bernoulli);
    o.attributes.push_back({"dtype", AttributeKind::kInt, std::nullopt});
    return o;
  }();
  return op;
}

const Operator& operator_Dropout() {
  static const Operator op = [] {
    Operator o;
    o.name = "Dropout";
    o.versions = {1, 6, 7, 10, 12, 13, 22};
    o.operands = {1, 4};
    o.results = {1, 2};
    o.summary = "identity; in training mode some elements are 0 and the others divided by 1 - ratio";
    o.attributes = {{"seed", AttributeKind::kInt, std::nullopt}};
    o.normalise = normalise_dropout;
    o.infer = infer_dropout;
    o.decompose = decompose_dropout;
    return o;
  }();
  return op;
}

const Operator& operator_Multinomial() {
  static const Operator op = [] {
    Operator o = record("Multinomial", {7, 22}, {1, 1}, "classes drawn by unnormalised log-probabilities",
                        normalise_multinomial);
    o.attributes.push_back({"dtype", AttributeKind::kInt, std::int64_t{6}});
    o.attributes.push_back({"sample_size", AttributeKind::kInt, std::int64_t{1}});
    return o;
  }();
  return op;
}

const Operator& operator_RandomNormal() {
  static const Operator op = distribution("RandomNormal", {0, 0}, "numbers of a normal distribution", true,
                                          normalise_numbers<true, false>);
  return op;
}

const Operator& operator_RandomNormalLike() {
  static const Operator op =
      distribution("RandomNormalLike", {1, 1}, "numbers of a normal distribution, as many as a tensor has",
                   true, normalise_numbers<true, true>);
  return op;
}

const Operator& operator_RandomNumbers() {
  static const Operator op = [] {
    Operator o;
    o.name = "RandomNumbers";
    o.domain = "gcompile";
    o.versions = {1};
    o.operands = {1, 1};
    o.attributes = {{"dtype", AttributeKind::kInt, std::nullopt, true},
                    {"normal", AttributeKind::kInt, std::nullopt, true},
                    {"first", AttributeKind::kFloat, std::nullopt, true},
                    {"second", AttributeKind::kFloat, std::nullopt, true},
                    {"key", AttributeKind::kInt, std::nullopt, true},
                    {"stream", AttributeKind::kInt, std::nullopt, true}};
    o.accuracy = Accuracy::kFunction;
    o.deterministic = false;  // folding would make a constant of it
    o.summary = "random numbers by Philox 4x32-10, whose counter is the place of an element";
    o.infer = infer_numbers;
    o.lower = lower_numbers;
    return o;
  }();
  return op;
}

const Operator& operator_RandomUniform() {
  static const Operator op = distribution("RandomUniform", {0, 0}, "numbers from low to below high", false,
                                          normalise_numbers<false, false>);
  return op;
}

const Operator& operator_RandomUniformLike() {
  static const Operator op =
      distribution("RandomUniformLike", {1, 1}, "numbers from low to below high, as many as a tensor has",
                   false, normalise_numbers<false, true>);
  return op;
}

}  // namespace gcompile::ir
