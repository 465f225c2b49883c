#include "ir/forms/rounding.h"

#include <algorithm>
#include <cmath>

namespace gcompile::ir {
namespace {

/// Exact wherever the result fits into the type.
bool is_sum_or_product(ScalarOp op) {
  return op == ScalarOp::kAdd || op == ScalarOp::kSub || op == ScalarOp::kMul;
}

bool gives_whole_numbers(ScalarOp op) {
  return op == ScalarOp::kFloor || op == ScalarOp::kCeil || op == ScalarOp::kTrunc ||
         op == ScalarOp::kRoundHalfEven;
}

/// Whether a program of floats rounds what the operator computes of floats.
bool rounds(ScalarOp op) {
  return is_sum_or_product(op) || op == ScalarOp::kDiv || op == ScalarOp::kPow ||
         (op >= ScalarOp::kSqrt && !gives_whole_numbers(op));
}

}  // namespace

double Rounding::inside_unless_exact(double value, ElementType type, double count) {
  const double stored =
      type == ElementType::kFloat64 ? static_cast<double>(static_cast<float>(value)) : round_to(type, value);
  return stored == value ? value : inside(value, type, count);
}

void Rounding::round_inside(const ScalarNode& node, std::span<double> values) {
  if (!is_float(node.type) || !rounds(node.op)) return;
  for (double& value : values) {
    value =
        is_sum_or_product(node.op) ? inside_unless_exact(value, node.type, 1) : inside(value, node.type, 1);
  }
}

bool has_decision(const Dag& dag) {
  const auto is_decision = [&](const ScalarNode& n) {
    const bool jumps = !is_float(n.type) || is_small_float(n.type);
    return gives_whole_numbers(n.op) || ((n.op == ScalarOp::kCast || n.op == ScalarOp::kBits) && jumps &&
                                         is_float(dag.type(n.arguments[0])));
  };
  return std::any_of(dag.nodes().begin(), dag.nodes().end(), is_decision);
}

double roundings_of_sum(double terms) { return 1 + std::sqrt(terms / 2); }

}  // namespace gcompile::ir
