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

ValueId emit_slice(RewriteContext& context, ValueId value, std::int64_t axis, std::int64_t begin,
                   std::int64_t end, std::int64_t step) {
  const ValueId starts = context.constant_ints(std::vector<std::int64_t>{begin});
  const ValueId ends = context.constant_ints(std::vector<std::int64_t>{end});
  const ValueId axes = context.constant_ints(std::vector<std::int64_t>{axis});
  const ValueId steps = context.constant_ints(std::vector<std::int64_t>{step});
  return context.emit("Slice", {value, starts, ends, axes, steps});
}

ValueId emit_concat(RewriteContext& context, std::vector<ValueId> values, std::int64_t axis) {
  Attributes attributes;
  attributes.set("axis", axis);
  return context.emit("Concat", std::move(values), attributes);
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
