#pragma once
// Reductions become stages of the kernel that reads them, where both walk the same rows: then each row is read
// while it is near, and nothing between them goes through memory (as AStitch has it, ASPLOS 2022).

#include <optional>
#include <span>

#include "ir/forms/form.h"

namespace gcompile::passes {

/// The reader with the reduction whose result is its operand `k` as its first stages. The operands of the
/// reduction are those from number `shift` on of the result. nullopt: they do not walk the same rows.
std::optional<ir::LoopForm> stitched(const ir::LoopForm& reader, int k, const ir::LoopForm& reduction,
                                     int shift);

/// Why a kernel with stages would be slower than what it is made of; "" when it is not. `strides`: by operand,
/// in elements.
std::string_view unless_rows_are_near(const ir::LoopForm& form, std::span<const ir::Shape> strides);

}  // namespace gcompile::passes
