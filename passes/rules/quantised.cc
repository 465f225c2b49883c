#include "passes/rules/quantised.h"

namespace gcompile::passes {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;

namespace {

bool is_one(const Shape& shape) { return shape.empty() || shape == Shape{1}; }

/// No product of a few such scales leaves the range of float32.
bool are_plain(const Tensor& scales) {
  for (std::int64_t i = 0; i < scales.count(); ++i) {
    const double scale = scales.real_at(i);
    if (!(scale > 1e-12 && scale < 1e12)) return false;
  }
  return scales.element() == ElementType::kFloat32;
}

}  // namespace

std::optional<Quantised> parameters_of(const ir::Graph& graph, const ir::Node& node) {
  Quantised out;
  out.operand = node.operands[0];
  out.scale = node.operands[1];
  if (node.operands.size() > 2) out.zero = node.operands[2];
  out.factors = graph.constant(out.scale);
  if (!out.factors || !are_plain(*out.factors) || (out.zero.valid() && !graph.constant(out.zero)))
    return std::nullopt;
  if (is_one(out.factors->shape())) return out;
  if (node.attributes.int_of("block_size") != 0) return std::nullopt;
  const int rank = graph.value(out.operand).type.rank();
  out.axis = static_cast<int>(node.attributes.int_of("axis"));
  if (out.axis < 0) out.axis += rank;
  return out;
}

std::optional<Quantised> quantised(const Match& match, std::string_view name) {
  if (match.type(name).element != ElementType::kFloat32) return std::nullopt;
  return parameters_of(match.graph(), match.node(name));
}

ElementType element_of(const Match& match, const Quantised& q) {
  return match.graph().value(q.operand).type.element;
}

bool is_byte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUInt8; }

bool is_short(ElementType type) {
  return is_byte(type) || type == ElementType::kInt16 || type == ElementType::kUInt16;
}

bool zero_is_zero(const ir::Graph& graph, const Quantised& q) {
  return !q.zero.valid() || all_equal(*graph.constant(q.zero), 0);
}

double zero_of(const ir::Graph& graph, const Quantised& q) {
  return q.zero.valid() ? graph.constant(q.zero)->real_at(0) : 0;
}

}  // namespace gcompile::passes
