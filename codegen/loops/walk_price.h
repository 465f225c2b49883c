#pragma once
// What the loops of a nest cost on a processor that computes in packs, by the axis of the packs.

#include "codegen/loops/loop_nest.h"

namespace gcompile {

/// Lets the packs of a reduction run along a reduced axis, at whose end they are folded, where that costs less than to
/// gather them from many rows. For nests that build_nest has made, which vectorises rows where it can.
void fold_packs_where_cheaper(LoopNest& nest);

}  // namespace gcompile
