#pragma once
// Outputs of which data decides how many positions of an axis a run fills: what lies behind them means nothing,
// and is not compared.

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/program/program.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

/// How much of the output of that name is filled; nothing where it is all of it.
std::optional<CountedPort> counted_port(const Schedule& schedule, const std::string& name);
/// Whether the output says how much of others is filled.
bool is_count(const Schedule& schedule, const std::string& name);

/// The first `count` positions of an axis, at most all.
ir::Tensor front_of(const ir::Tensor& whole, int axis, std::int64_t count);

/// `whole` with `front` in its first positions of the axis; `front` itself where its shape does not fit.
ir::Tensor with_front(const ir::Tensor& whole, const ir::Tensor& front, int axis);

}  // namespace gcompile
