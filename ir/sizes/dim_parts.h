#pragma once
// Formulas of sizes taken apart and put together by their atoms.

#include "ir/sizes/dim.h"

namespace gcompile::ir {

/// The formula with `value` in place of an atom, wherever that is a factor; what is inside of others stays.
Dim with_in_place(Dim dim, const DimAtom& atom, Dim value);

}  // namespace gcompile::ir
