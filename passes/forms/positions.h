#pragma once
// Reads at positions that data decides by much arithmetic: samples of RoiAlign, GridSample and deformed taps.

#include <optional>

#include "ir/forms/form.h"

namespace gcompile::passes {

/// An axis of the loops along which the elements of an operand can be read as vectors, and the operand's axis.
struct VectorAxis {
  int axis = 0;
  int of_operand = 0;
};

/// Where the position of a load is worked out from data: the axis that takes no part in that, so that one position
/// serves a whole vector where the operand and the result lie along it. nullopt: no such load, or no such axis.
std::optional<VectorAxis> vector_beside_position(const ir::LoopForm& form, const ir::ScalarNode& load);

/// Whether any load of the operand has one.
bool takes_vectors_beside_positions(const ir::LoopForm& form, int operand);

}  // namespace gcompile::passes
