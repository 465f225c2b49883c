#pragma once
// Maps that read along one axis what they write along another: gcrt/cpu/turned_tiles.h walks them in
// tiles that it turns in registers.

#include <optional>
#include <vector>

#include "codegen/loops/loop_nest.h"

namespace gcompile {

struct TurnedTiles {
  int along = -1;          // a parallel axis beside the vector axis
  std::vector<int> loads;  // of unit stride along it, and of another one along the vector axis; ascending
};

/// How a map is walked in tiles; nullopt where no load is better read along another axis than the vector axis.
std::optional<TurnedTiles> turned_tiles(const LoopNest& nest);

/// Moves the packs of a map, whose results would be scattered, to the axis that results are stored along, where all
/// loads are packs then, turned or not. For nests that build_nest has made.
void store_packs_where_loads_turn(LoopNest& nest);

}  // namespace gcompile
