#include "ir/ops/rewrite.h"

namespace gcompile::ir {

ValueId emit_transpose(RewriteContext& context, ValueId value, const std::vector<std::int64_t>& perm) {
  bool identity = true;
  for (std::size_t i = 0; i < perm.size(); ++i)
    identity = identity && perm[i] == static_cast<std::int64_t>(i);
  if (identity) return value;
  Attributes attributes;
  attributes.set("perm", perm);
  return context.emit("Transpose", {value}, attributes);
}

ValueId emit_scale(RewriteContext& context, ValueId value, double factor) {
  if (factor == 1) return value;
  return context.emit("Mul", {value, context.constant_scalar(context.type(value).element, factor)});
}

ValueId emit_slice(RewriteContext& context, ValueId value, std::int64_t axis, Dim begin, Dim end,
                   std::int64_t step) {
  const ValueId starts = context.constant_ints(Shape{begin});
  const ValueId ends = context.constant_ints(Shape{end});
  const ValueId axes = context.constant_ints(std::vector<std::int64_t>{axis});
  const ValueId steps = context.constant_ints(std::vector<std::int64_t>{step});
  return context.emit("Slice", {value, starts, ends, axes, steps});
}

ValueId emit_concat(RewriteContext& context, std::vector<ValueId> values, std::int64_t axis) {
  Attributes attributes;
  attributes.set("axis", axis);
  return context.emit("Concat", std::move(values), attributes);
}

ValueId emit_number(RewriteContext& context, Dim number) {
  if (!number.is_constant()) {
    return context.mutable_graph().add_sizes(ElementType::kInt64, {}, {number});
  }
  return context.constant_scalar(ElementType::kInt64, static_cast<double>(number.constant()));
}

ValueId emit_counting(RewriteContext& context, Dim first, const Shape& shape) {
  const Dim count = element_count(shape);
  if (!first.is_constant() || !count.is_constant()) {
    const ValueId numbers = context.emit(
        "Range", {emit_number(context, first), emit_number(context, first + count), emit_number(context, 1)});
    return emit_reshape(context, numbers, shape);
  }
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  return context.constant(Tensor::of_ints(numbers, shape));
}

ValueId emit_zeros(RewriteContext& context, const TensorType& type) {
  if (are_constant(type.shape)) return context.constant(Tensor(type));
  const ValueId zeros = context.emit("ConstantOfShape", {context.constant_ints(type.shape)});
  return emit_cast(context, zeros, type.element);
}

std::string name_as_constant(const Graph& graph, ValueId value) {
  const Value& wanted = graph.value(value);
  if (!wanted.name.empty() || !wanted.producer.valid()) return wanted.name;
  const Value* largest = nullptr;
  for (const ValueId operand : graph.node(wanted.producer).operands) {
    if (!operand.valid() || !graph.constant(operand) || graph.value(operand).name.empty()) continue;
    const Value& known = graph.value(operand);
    if (!largest || known.type.bytes() > largest->type.bytes()) largest = &known;
  }
  return largest ? largest->name : "";
}

}  // namespace gcompile::ir
