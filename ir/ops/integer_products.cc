// ConvInteger and MatMulInteger: exact products of integers less their zero points, in int32 and
// modulo 2^32: of 8 bits, as ONNX has them, and of 16, which quantised layers become.
// Beside known weights the kernels subtract one known zero point of x, and known ones of the weights, one per
// column at most. Any other of x leaves the product: (x - p)(w - q) = x (w - q) - p sum(w - q). Of matrices
// that only the run knows they subtract one zero point each.

#include <fmt/format.h>

#include "base/interrupt.h"
#include "ir/ops/convolution.h"
#include "ir/ops/product_shape.h"
#include "ir/ops/reduced.h"
#include "ir/ops/reshaped.h"

namespace gcompile::ir {
namespace {

void require_short_integers(const NodeView& node, int i) {
  const ElementType type = node.element(i);
  if (!is_integer(type) || (bits_of(type) != 8 && bits_of(type) != 16)) {
    operator_error(fmt::format("input {} must be integers of 8 or 16 bits, not {}", i, name_of(type)));
  }
}

/// Types of operands 0, 1 and of their zero points 2, 3.
void require_quantised(const NodeView& node) {
  for (int i = 0; i < 2; ++i) {
    require_short_integers(node, i);
    if (node.has_operand(i + 2) && node.element(i + 2) != node.element(i)) {
      operator_error(fmt::format("zero point {} and input {} have different types", i + 2, i));
    }
  }
}

/// Operand i, or operand i less its zero point where that is given as int32, summed over `axes`, which stay.
ValueId emit_sums(RewriteContext& context, int i, ValueId zero, std::vector<std::int64_t> axes) {
  ValueId terms = emit_cast(context, context.operand_id(i), ElementType::kInt32);
  if (zero.valid()) terms = context.emit("Sub", {terms, zero});
  return context.emit("ReduceSum", {terms, context.constant_ints(axes)});
}

/// Zero point i as int32 of `shape`; invalid when omitted.
ValueId emit_zero_point(RewriteContext& context, int i, const Shape& shape) {
  if (!context.has_operand(i)) return {};
  return emit_reshape(context, emit_cast(context, context.operand_id(i), ElementType::kInt32), shape);
}

void normalise_conv(RewriteContext& context) { normalise_window_of(context, 1, 2); }

void infer_conv(InferContext& context) {
  require_quantised(context);
  Shape y = convolution_shape(context);
  if (context.has_operand(2) && context.operand(2).count() != 1) {
    operator_error("x_zero_point must be one value");
  }
  if (context.has_operand(3) && context.operand(3).count() != 1 && context.shape(3) != Shape{y[1]}) {
    operator_error("w_zero_point must be one value or one per output channel");
  }
  context.set_result(0, ElementType::kInt32, std::move(y));
}

std::vector<Tensor> evaluate_conv(const EvaluateContext& context) {
  RealTensor x = reals_of(*context.value(0));
  RealTensor w = reals_of(*context.value(1));
  if (const Tensor* zero = context.value(2)) {
    for (double& v : x.values) v -= zero->real_at(0);
  }
  if (const Tensor* zero = context.value(3)) {
    const std::size_t per_channel =
        w.shape[0] == 0 ? 1 : w.values.size() / static_cast<std::size_t>(w.shape[0]);
    for (std::size_t i = 0; i < w.values.size(); ++i) {
      w.values[i] -= zero->real_at(zero->count() == 1 ? 0 : static_cast<std::int64_t>(i / per_channel));
    }
  }
  const Attributes& attributes = context.attributes();
  return {wrapped(convolve(x, w, window_of(attributes), attributes.int_of("group")))};
}

/// A zero point of x that is not known stands in the padding too, where it counts as nothing.
bool decompose_conv(RewriteContext& context) {
  if (!context.has_operand(2) || context.constant(2)) return false;
  const Shape w = context.shape(1);
  const std::size_t spatial = w.size() - 2;
  Attributes attributes = context.attributes();
  const std::vector<std::int64_t>& edges = attributes.ints_of("pads");
  std::vector<std::int64_t> pads(2 * w.size(), 0), axes;
  for (std::size_t i = 0; i < spatial; ++i) {
    pads[i + 2] = edges[i];
    pads[i + 4 + spatial] = edges[i + spatial];
  }
  const ValueId border = emit_reshape(context, context.operand_id(2), {});
  const ValueId x = context.emit("Pad", {context.operand_id(0), context.constant_ints(pads), border});
  attributes.set("pads", std::vector<std::int64_t>(2 * spatial, 0));
  const ValueId product =
      context.emit("ConvInteger", {x, context.operand_id(1), {}, context.operand_id(3)}, attributes);
  Shape per_channel(w.size(), 1), in_result(w.size() - 1, 1);
  in_result[0] = w[0];
  if (context.has_operand(3) && context.operand(3).count() != 1) per_channel[0] = w[0];
  for (std::size_t axis = 1; axis < w.size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  const ValueId sums = emit_sums(context, 1, emit_zero_point(context, 3, per_channel), axes);
  const ValueId excess =
      context.emit("Mul", {emit_reshape(context, sums, in_result), emit_zero_point(context, 2, {})});
  context.replace_result(0, context.emit("Sub", {product, excess}));
  return true;
}

Form lower_conv(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  return spatial_contract(ConvWork{window_of(attributes), attributes.int_of("group")}, context.result(0),
                          ElementType::kInt32, context.operand_count());
}

void normalise_matmul(RewriteContext& context) {
  Shape a = context.shape(0);
  Shape b = context.shape(1);
  if (a.empty() || b.empty()) operator_error("scalars cannot be multiplied as matrices");
  const bool a_vector = a.size() == 1;
  const bool b_vector = b.size() == 1;
  if (!a_vector && !b_vector) return;
  std::vector<ValueId> operands = context.node().operands;
  if (a_vector) {
    a = {1, a[0]};
    operands[0] = emit_reshape(context, operands[0], a);
  }
  if (b_vector) {
    b = {b[0], 1};
    operands[1] = emit_reshape(context, operands[1], b);
  }
  Shape out = product_shape(a, b);
  const ValueId product = context.emit("MatMulInteger", operands);
  if (b_vector) out.pop_back();
  if (a_vector) out.erase(out.end() - (b_vector ? 1 : 2));
  become_reshape(context, product, out);
}

/// A zero point is one value, one per row of A (column of B), or the operand's shape with the inner dimension
/// 1. Returns the shape it broadcasts with.
Shape zero_point_shape(const Shape& zero, const Shape& operand, bool rows) {
  const Dim lines = rows ? operand[operand.size() - 2] : operand.back();
  if (zero.empty() || zero == Shape{1}) return {1, 1};
  if (zero.size() == 1 && zero[0] == lines) return rows ? Shape{lines, 1} : Shape{1, lines};
  Shape expected = operand;
  expected[operand.size() - (rows ? 1 : 2)] = 1;
  if (zero != expected) {
    operator_error(
        fmt::format("the zero point's shape {} does not fit {}", to_string(zero), to_string(operand)));
  }
  return expected;
}

void infer_matmul(InferContext& context) {
  require_quantised(context);
  Shape out = product_shape(context.shape(0), context.shape(1));
  for (int i = 0; i < 2; ++i) {
    if (context.has_operand(i + 2)) zero_point_shape(context.shape(i + 2), context.shape(i), i == 0);
  }
  context.set_result(0, ElementType::kInt32, std::move(out));
}

/// Position in an operand of `shape` that broadcasts (right-aligned) to coordinates `at`.
std::int64_t broadcast_position(const Shape& shape, const Shape& at) {
  std::int64_t position = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    position = position * shape[i] + (shape[i] == 1 ? Dim() : at[at.size() - shape.size() + i]);
  }
  return position;
}

std::vector<Tensor> evaluate_matmul(const EvaluateContext& context) {
  const Tensor& a = *context.value(0);
  const Tensor& b = *context.value(1);
  const Tensor* a_zero = context.value(2);
  const Tensor* b_zero = context.value(3);
  const Shape a_zero_shape = a_zero ? zero_point_shape(a_zero->shape(), a.shape(), true) : Shape{};
  const Shape b_zero_shape = b_zero ? zero_point_shape(b_zero->shape(), b.shape(), false) : Shape{};
  Tensor y(TensorType{ElementType::kInt32, product_shape(a.shape(), b.shape())});
  const std::int64_t depth = a.shape().back();
  const std::size_t rank = y.shape().size();
  Shape at(rank, 0), a_at, b_at;
  for (std::int64_t position = 0; position < y.count(); ++position) {
    poll_interrupt();
    std::int64_t rest = position;
    for (std::size_t i = rank; i-- > 0;) {
      at[i] = rest % y.shape()[i];
      rest /= y.shape()[i];
    }
    a_at = b_at = at;
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      a_at[rank - 1] = k;
      b_at[rank - 2] = k;
      std::int64_t p = a.int_at(broadcast_position(a.shape(), a_at));
      std::int64_t q = b.int_at(broadcast_position(b.shape(), b_at));
      if (a_zero) p -= a_zero->int_at(broadcast_position(a_zero_shape, a_at));
      if (b_zero) q -= b_zero->int_at(broadcast_position(b_zero_shape, b_at));
      sum += p * q;
    }
    y.set(position, Scalar::of_integer(ElementType::kInt32, sum));
  }
  return {y};
}

/// Whether the kernels can pack B when the model is compiled.
bool packs_b(const NodeView& node) {
  const bool known_zero =
      !node.has_operand(3) || (node.constant(3) && node.operand(3).rank() <= 1);  // at most one per column
  return known_zero && node.constant(1) && node.operand(1).rank() == 2;
}

bool subtracts_p(const NodeView& node) {
  return !node.has_operand(2) || (node.constant(2) && node.operand(2).count() == 1);
}

bool decompose_matmul(RewriteContext& context) {
  if (!packs_b(context) || subtracts_p(context)) return false;
  const auto zero_point = [&](int i) {
    if (!context.has_operand(i + 2)) return ValueId{};
    return emit_zero_point(context, i + 2, zero_point_shape(context.shape(i + 2), context.shape(i), i == 0));
  };
  const ValueId p = zero_point(0), q = zero_point(1);
  const ValueId product = context.emit(
      "MatMulInteger", {context.operand_id(0), context.operand_id(1), {}, context.operand_id(3)});
  const ValueId excess = context.emit("Mul", {emit_sums(context, 1, q, {-2}), p});
  context.replace_result(0, context.emit("Sub", {product, excess}));
  return true;
}

/// Whether kernels subtract the zero points of a B that only the run knows: one each, which may be computed.
bool has_single_zeros(const NodeView& node) {
  const auto is_single = [&](int i) { return !node.has_operand(i) || node.operand(i).count() == 1; };
  return is_single(2) && is_single(3);
}

/// What has no kernel sums products of differences.
LoopForm sum_of_differences(const LowerContext& context) {
  return sum_of_products(context, [&](Dag& dag, int i, const std::vector<Index>& index) {
    const int value = dag.cast(dag.load(i, context.element(i), index), ElementType::kInt32);
    if (!context.has_operand(i + 2)) return value;
    const Shape& given = context.shape(i + 2);
    const Shape shape = zero_point_shape(given, context.shape(i), i == 0);
    std::vector<Index> at(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) at[axis] = Index(0);
    }
    // A list of zero points lies along the axis of its lines.
    if (given.size() < 2) at = given.empty() ? std::vector<Index>{} : std::vector<Index>{at[i == 0 ? 0 : 1]};
    const int zero = dag.load(i + 2, context.element(i + 2), std::move(at));
    return dag.apply(ScalarOp::kSub, {value, dag.cast(zero, ElementType::kInt32)});
  });
}

Form lower_matmul(const LowerContext& context) {
  const bool packs = packs_b(context) && subtracts_p(context);
  if (!packs && !has_single_zeros(context)) return sum_of_differences(context);
  ContractForm form;
  form.work = ProductWork{};
  form.base_operands = context.operand_count();
  form.accumulator = ElementType::kInt32;
  form.epilogue = LoopForm::over(context.result(0).shape);
  form.epilogue.set_root(form.epilogue.dag.accumulator(0, ElementType::kInt32));
  return form;
}

}  // namespace

const Operator& operator_ConvInteger() {
  static const Operator op = [] {
    Operator o;
    o.name = "ConvInteger";
    o.versions = {10};
    o.operands = {2, 4};
    o.attributes = window_attributes();
    o.attributes.push_back({"group", AttributeKind::kInt, std::int64_t{1}});
    o.summary = "convolution of integers of 8 or 16 bits in int32";
    o.traits.quantised = true;
    o.normalise = normalise_conv;
    o.infer = infer_conv;
    o.decompose = decompose_conv;
    o.evaluate = evaluate_conv;
    o.lower = lower_conv;
    return o;
  }();
  return op;
}

const Operator& operator_MatMulInteger() {
  static const Operator op = {
      .name = "MatMulInteger",
      .versions = {10},
      .operands = {2, 4},
      .summary = "matrix product of integers of 8 or 16 bits in int32, batched",
      .traits = {.quantised = true},
      .normalise = normalise_matmul,
      .infer = infer_matmul,
      .decompose = decompose_matmul,
      .evaluate = evaluate_matmul,
      .lower = lower_matmul,
  };
  return op;
}

}  // namespace gcompile::ir
