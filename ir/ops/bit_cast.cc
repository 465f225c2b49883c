// BitCast: the same bits as elements of another type of the same width.

#include <fmt/format.h>

#include <cstring>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

bool is_short_float(ElementType type) { return is_float(type) && compute_type(type) != type; }

void infer(InferContext& context) {
  require_computable(context, 0);
  const ElementType from = context.element(0), to = computable_type_of(context.attributes(), "to");
  if (bits_of(from) != bits_of(to)) {
    operator_error(
        fmt::format("{} has {} bits, {} has {}", name_of(from), bits_of(from), name_of(to), bits_of(to)));
  }
  if (from != to && (is_short_float(from) || is_short_float(to))) {
    operator_error(fmt::format("the bits of {} as {} are not supported", name_of(from), name_of(to)),
                   "floats of 16 bits are wider between nodes");
  }
  context.set_result(0, to, context.shape(0));
}

/// Also the payloads of NaN, which arithmetic need not keep.
std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const TensorType type{context.result(0).element, x.shape()};
  if (type.element == ElementType::kBool) {
    Tensor y(type);
    for (std::int64_t i = 0; i < x.count(); ++i) y.set(i, cast(x.at(i), type.element));
    return {y};
  }
  const auto bytes = x.bytes();
  return {Tensor(type, std::vector<std::byte>(bytes.begin(), bytes.end()))};
}

/// Integers of one width are cast, which keeps their bits; a byte as bool is whether it has any.
Form lower(const LowerContext& context) {
  const ElementType from = context.element(0), to = context.result(0).element;
  LoopForm form = LoopForm::over(context.result(0).shape);
  const int x = form.dag.load(0, from, form.identity());
  form.set_root(is_float(from) != is_float(to) ? form.dag.bits(x, to) : form.dag.cast(x, to));
  return form;
}

}  // namespace

const Operator& operator_BitCast() {
  static const Operator op = {
      .name = "BitCast",
      .versions = {26},
      .attributes = {{"to", AttributeKind::kInt, std::nullopt, true}},
      .summary = "the same bits as another type of the same width",
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
