#pragma once
// What QuantizeLinear and DequantizeLinear nodes say, for the rules of quantised models.

#include <optional>

#include "passes/rules/support.h"

namespace gcompile::passes {

/// Operands of a QuantizeLinear or DequantizeLinear whose scales and zero points are known and not blocked.
struct Quantised {
  ir::ValueId operand, scale, zero;  // zero: invalid when omitted
  const ir::Tensor* factors = nullptr;
  int axis = -1;  // of the scales; -1: one for all
  double factor(std::int64_t i) const { return factors->real_at(axis < 0 ? 0 : i); }
};

/// nullopt: something is computed or blocked,
/// or a scale is no positive float32 far from the ends of its range.
std::optional<Quantised> parameters_of(const ir::Graph& graph, const ir::Node& node);
/// The parts of the DequantizeLinear to float32 that is bound to `name`.
std::optional<Quantised> quantised(const Match& match, std::string_view name);

/// The type of the integers that are read.
ir::ElementType element_of(const Match& match, const Quantised& q);
bool is_byte(ir::ElementType type);
/// An integer of 8 or 16 bits.
bool is_short(ir::ElementType type);
/// The zero point where all elements share one; an omitted one is 0.
double zero_of(const ir::Graph& graph, const Quantised& q);
bool zero_is_zero(const ir::Graph& graph, const Quantised& q);

}  // namespace gcompile::passes
