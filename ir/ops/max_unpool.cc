// MaxUnpool: elements put back to the places that MaxPool took them from, zeros elsewhere.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"
#include "ir/ops/window.h"

namespace gcompile::ir {
namespace {

void normalise(RewriteContext& context) {
  if (!context.attributes().has("kernel_shape")) operator_error("attribute 'kernel_shape' is missing");
  normalise_window(context, {});
}

/// The shape that the pool read, of which the positions count elements.
Shape pooled_shape(const NodeView& node) {
  const Window window = window_of(node.attributes());
  const Shape& x = node.shape(0);
  Shape y = {x[0], x[1]};
  for (int i = 0; i < window.spatial(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    y.push_back(
        max(0, (x[at + 2] - 1) * window.strides[at] - window.begin(i) - window.end(i) + window.kernel[at]));
  }
  return y;
}

void infer(InferContext& context) {
  require_computable(context, 0);
  if (context.shape(1) != context.shape(0)) {
    operator_error(fmt::format("the positions must have the shape {}, not {}", to_string(context.shape(0)),
                               to_string(context.shape(1))));
  }
  Shape y = pooled_shape(context);
  if (context.has_operand(2)) {
    const Shape given = context.known_sizes(2, "output_shape");
    if (given.size() != y.size()) {
      operator_error(fmt::format("output_shape must have {} sizes, it has {}", y.size(), given.size()));
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (always_less(given[i], y[i])) {
        operator_error(
            fmt::format("output_shape {} does not fit, the pool read {}", to_string(given), to_string(y)));
      }
    }
    y = given;
  }
  context.set_result(0, context.element(0), std::move(y));
}

bool decompose(RewriteContext& context) {
  const Shape pooled = pooled_shape(context), given = context.result(0).shape;
  const Dim count = element_count(context.shape(0));
  const ValueId zeros = emit_zeros(context, {context.element(0), {element_count(pooled)}});
  const ValueId places = emit_reshape(context, context.operand_id(1), {count});
  const ValueId elements = emit_reshape(context, context.operand_id(0), {count});
  Attributes attributes;
  attributes.set("axis", std::int64_t{0});
  ValueId y = context.emit("ScatterElements", {zeros, places, elements}, attributes);
  y = emit_reshape(context, y, pooled);
  if (given != pooled) {
    Shape pads(2 * pooled.size());
    for (std::size_t i = 0; i < pooled.size(); ++i) pads[i + pooled.size()] = given[i] - pooled[i];
    y = context.emit("Pad", {y, context.constant_ints(pads)});
  }
  context.replace_result(0, y);
  return true;
}

}  // namespace

const Operator& operator_MaxUnpool() {
  static const Operator op = [] {
    Operator o;
    o.name = "MaxUnpool";
    o.versions = {9, 11, 22};
    o.operands = {2, 3};
    o.attributes = {{"kernel_shape", AttributeKind::kInts, std::nullopt},
                    {"strides", AttributeKind::kInts, std::nullopt},
                    {"dilations", AttributeKind::kInts, std::nullopt},
                    {"pads", AttributeKind::kInts, std::nullopt}};
    o.summary = "elements at the places that MaxPool took them from, zeros elsewhere";
    o.normalise = normalise;
    o.infer = infer;
    o.decompose = decompose;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
