// TopK: the k largest (smallest) values along an axis, with their positions; ties go to the smaller position.
// NaN counts as the largest value.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/interrupt.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// k was an attribute before opset 10.
void normalise(RewriteContext& context) {
  if (!context.attributes().has("k")) return;
  const std::int64_t k = context.attributes().int_of("k");
  context.set_operand(1, context.constant_ints({&k, 1}));
  context.mutable_attributes().erase("k");
}

void infer(InferContext& context) {
  require_computable(context, 0);
  const int axis = normalise_axis(context.attributes().int_of("axis"), context.operand(0).rank());
  if (!context.has_operand(1)) operator_error("input 1 (k) is missing");
  if (is_float(context.element(1))) operator_error("k must be an integer");
  const Shape k = context.known_sizes(1, "k");
  if (k.size() != 1) operator_error("k must be one value");
  Shape shape = context.shape(0);
  Dim& extent = shape[axis];
  if (!assume_less_equal(0, k[0]) || !assume_less_equal(k[0], extent)) {
    operator_error(fmt::format("k = {} is outside [0, {}], the size of axis {}", to_string(k[0]),
                               to_string(extent), axis),
                   extent.is_constant() ? "" : "bounds of --dim that keep it inside");
  }
  extent = k[0];
  context.set_result(0, context.element(0), shape);
  context.set_result(1, ElementType::kInt64, std::move(shape));
}

bool less(const Scalar& a, const Scalar& b) {
  if (!is_float(a.type)) {
    return a.type == ElementType::kUInt64
               ? static_cast<std::uint64_t>(a.integer) < static_cast<std::uint64_t>(b.integer)
               : a.integer < b.integer;
  }
  return std::isnan(b.real) ? !std::isnan(a.real) : a.real < b.real;
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const Shape& shape = x.shape();
  const auto axis = static_cast<std::size_t>(
      normalise_axis(context.attributes().int_of("axis"), static_cast<int>(shape.size())));
  const bool largest = context.attributes().flag("largest");
  const std::int64_t k = context.value(1)->int_at(0);
  Shape out = shape;
  out[axis] = k;
  Tensor values(TensorType{x.element(), out});
  Tensor positions(TensorType{ElementType::kInt64, out});
  const std::int64_t extent = shape[axis];
  const std::int64_t inner = row_major_strides(shape)[axis];
  const std::int64_t lines = extent == 0 ? 0 : x.count() / extent;
  std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
  for (std::int64_t line = 0; line < lines; ++line) {
    poll_interrupt();
    const std::int64_t base = line / inner * extent * inner + line % inner;
    const std::int64_t out_base = line / inner * k * inner + line % inner;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const Scalar p = x.at(base + a * inner), q = x.at(base + b * inner);
      return largest ? less(q, p) : less(p, q);
    });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t from = order[i];
      values.set(out_base + i * inner, x.at(base + from * inner));
      positions.set(out_base + i * inner, Scalar::of_integer(ElementType::kInt64, from));
    }
  }
  return {values, positions};
}

Form lower(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  const int axis = normalise_axis(attributes.int_of("axis"), context.operand(0).rank());
  LibraryForm form{TopKWork{axis, attributes.flag("largest"), context.known_sizes(1, "k").at(0)}};
  form.unread_operand = 1;
  return form;
}

}  // namespace

const Operator& operator_TopK() {
  static const Operator op = {
      .name = "TopK",
      .versions = {1, 10, 11, 24},
      .operands = {1, 2},
      .results = {0, 2},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}},
                     {"largest", AttributeKind::kInt, std::int64_t{1}},
                     {"sorted", AttributeKind::kInt, std::int64_t{1}}},
      .summary = "k largest or smallest values along an axis",
      .traits = {.decides = true, .gives_positions = true, .computed_in_float = true},
      .normalise = normalise,
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
