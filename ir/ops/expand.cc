// Expand and Tile: the same elements read more than once.

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer_expand(InferContext& context) {
  const Shape shape = context.known_sizes(1, "the shape to expand to");
  context.set_result(0, context.element(0), broadcast(context.shape(0), shape));
}

Form lower_expand(const LowerContext& context) {
  const Shape& shape = context.result(0).shape;
  LoopForm form = LoopForm::over(shape);
  form.set_root(load_broadcast(form.dag, context, 0, shape));
  return form;
}

/// Before opset 6 operand 1 was the repeats of one axis, and operand 2 that axis:
/// scalars of any numeric type.
void normalise_tile(RewriteContext& context) {
  if (context.opset() >= 6) return;
  const std::optional<Scalar> tiles = constant_scalar(context, 1), axis = constant_scalar(context, 2);
  if (!tiles || !axis) operator_error("tiles and axis must be scalars that are known at compile time");
  std::vector<std::int64_t> repeats(context.shape(0).size(), 1);
  const Scalar count = cast(*tiles, ElementType::kInt64), at = cast(*axis, ElementType::kInt64);
  repeats[static_cast<std::size_t>(normalise_axis(at.integer, static_cast<int>(repeats.size())))] =
      count.integer;
  const ValueId known = context.constant_ints(repeats);
  context.replace_with("Tile", {context.operand_id(0), known});
}

void infer_tile(InferContext& context) {
  const Shape repeats = context.known_sizes(1, "repeats");
  Shape shape = context.shape(0);
  if (repeats.size() != shape.size()) {
    operator_error(fmt::format("{} repeats given for {} axes", repeats.size(), shape.size()));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t product;
    const bool are_numbers = repeats[i].is_constant() && shape[i].is_constant();
    if (are_numbers &&
        (repeats[i] < 0 || __builtin_mul_overflow(shape[i].constant(), repeats[i].constant(), &product))) {
      operator_error(fmt::format("axis {} is repeated {} times", i, repeats[i]));
    }
    shape[i] *= repeats[i];
  }
  context.set_result(0, context.element(0), std::move(shape));
}

Form lower_tile(const LowerContext& context) {
  const Shape& in = context.shape(0);
  LoopForm form = LoopForm::over(context.result(0).shape);
  std::vector<Index> index;
  for (std::size_t i = 0; i < in.size(); ++i) {
    index.push_back(modulo(Index::axis(static_cast<int>(i)), max(in[i], 1), form.ranges()));
  }
  form.set_root(form.dag.load(0, context.element(0), std::move(index)));
  return form;
}

Operator record(std::string_view name, std::vector<int> versions, std::string_view summary,
                void (*infer)(InferContext&), Form (*lower)(const LowerContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = {2, 2};
  op.summary = summary;
  op.infer = infer;
  op.lower = lower;
  return op;
}

}  // namespace

const Operator& operator_Expand() {
  static const Operator op = record("Expand", {8, 13}, "broadcast to a shape", infer_expand, lower_expand);
  return op;
}

const Operator& operator_Tile() {
  static const Operator op = [] {
    Operator o = record("Tile", {1, 6, 13}, "repeated along every axis", infer_tile, lower_tile);
    o.normalise = normalise_tile;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
