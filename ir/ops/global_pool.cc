// GlobalAveragePool and GlobalMaxPool are reductions of the spatial axes. LRN is x over a power of the mean
// of squares of neighbouring channels: a pool along the channel axis.

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer_global(InferContext& context) {
  require_float(context, 0);
  Shape out = context.shape(0);
  if (out.size() < 3) operator_error("input 0 must have spatial axes");
  for (std::size_t i = 2; i < out.size(); ++i) out[i] = 1;
  context.set_result(0, context.element(0), std::move(out));
}

bool decompose_global(RewriteContext& context) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 2; i < context.operand(0).rank(); ++i) axes.push_back(i);
  const bool average = context.node().op->name == "GlobalAveragePool";
  context.replace_result(0, context.emit(average ? "ReduceMean" : "ReduceMax",
                                         {context.operand_id(0), context.constant_ints(axes)}));
  return true;
}

Operator global(std::string_view name, Accuracy accuracy, std::string_view summary) {
  Operator op;
  op.name = name;
  op.versions = {1, 22};
  op.accuracy = accuracy;
  op.summary = summary;
  op.infer = infer_global;
  op.decompose = decompose_global;
  return op;
}

void infer_lrn(InferContext& context) {
  require_float(context, 0);
  if (context.shape(0).size() < 2) operator_error("input 0 must be (N, C, ...)");
  const std::int64_t size = context.attributes().int_of("size");
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // as of all windows
  if (size < 1 || size > kMost) operator_error(fmt::format("attribute 'size' is {}", size));
  context.set_result(0, context.operand(0));
}

/// x / (bias + alpha * mean)^beta with the mean of x^2 over channels c - floor((size-1)/2) ... c +
/// ceil((size-1)/2), where channels outside count as 0.
bool decompose_lrn(RewriteContext& context) {
  const TensorType x = context.operand(0);
  const Attributes& given = context.attributes();
  const auto real = [&](const char* name) { return static_cast<double>(given.float_of(name)); };
  const std::int64_t size = given.int_of("size");
  const ElementType type = compute_type(x.element);
  const ValueId wide = emit_cast(context, context.operand_id(0), type);
  Dim pixels = 1;
  for (int i = 2; i < x.rank(); ++i) pixels *= x.shape[i];
  const ValueId square =
      emit_reshape(context, context.emit("Mul", {wide, wide}), {x.shape[0], 1, x.shape[1], pixels});
  Attributes pool;
  pool.set("kernel_shape", std::vector<std::int64_t>{size, 1});
  pool.set("strides", std::vector<std::int64_t>{1, 1});
  pool.set("dilations", std::vector<std::int64_t>{1, 1});
  pool.set("pads", std::vector<std::int64_t>{(size - 1) / 2, 0, size / 2, 0});
  pool.set("count_include_pad", std::int64_t{1});
  const ValueId mean = emit_reshape(context, context.emit("AveragePool", {square}, std::move(pool)), x.shape);
  const ValueId scaled = context.emit("Mul", {mean, context.constant_scalar(type, real("alpha"))});
  const ValueId base = context.emit("Add", {scaled, context.constant_scalar(type, real("bias"))});
  const ValueId power = context.emit("Pow", {base, context.constant_scalar(type, real("beta"))});
  context.replace_result(0, emit_cast(context, context.emit("Div", {wide, power}), x.element));
  return true;
}

}  // namespace

const Operator& operator_GlobalAveragePool() {
  static const Operator op = global("GlobalAveragePool", Accuracy::kSum, "mean over the spatial axes");
  return op;
}

const Operator& operator_GlobalMaxPool() {
  static const Operator op = global("GlobalMaxPool", Accuracy::kExact, "maximum over the spatial axes");
  return op;
}

const Operator& operator_LRN() {
  static const Operator op = {
      .name = "LRN",
      .versions = {1, 13},
      .attributes = {{"alpha", AttributeKind::kFloat, 1e-4f},
                     {"beta", AttributeKind::kFloat, 0.75f},
                     {"bias", AttributeKind::kFloat, 1.0f},
                     {"size", AttributeKind::kInt, std::nullopt, true}},
      .accuracy = Accuracy::kSum,
      .summary = "x over a power of the mean square of neighbouring channels",
      .infer = infer_lrn,
      .decompose = decompose_lrn,
  };
  return op;
}

}  // namespace gcompile::ir
