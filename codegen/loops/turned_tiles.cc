#include "codegen/loops/turned_tiles.h"

#include <algorithm>

namespace gcompile {

namespace {

/// The least of an axis that fills the smallest tile.
constexpr std::int64_t kLeastExtent = 4;

/// Elements from one result of a pack to the next up to which tiles are turned: a line of cache then still takes
/// several of them. Pixels that interleave have two to four.
constexpr std::int64_t kMostStep = 4;

bool is_near(const ir::Index& store, int axis) {
  const ir::Dim step = magnitude(store.coefficient_of(axis));
  return step.is_constant() && step >= 1 && step <= kMostStep;
}

/// Whether the index is a sum of axes as far as it changes along this one.
bool is_affine_along(const ir::Index& index, int axis, const std::vector<std::uint64_t>& dependence) {
  for (const ir::Index::Term& term : index.terms()) {
    const ir::IndexAtom& atom = term.atom;
    if (atom.kind == ir::IndexAtom::Kind::kLoaded &&
        (dependence[static_cast<std::size_t>(atom.axis)] >> axis & 1) != 0) {
      return false;
    }
    if (atom.inner && (atom.inner->mentions(axis) || !is_affine_along(*atom.inner, axis, dependence)))
      return false;
  }
  return true;
}

bool is_long(const LoopNest& nest, int axis) {
  return ir::typical(nest.axes[static_cast<std::size_t>(axis)].extent()) >= kLeastExtent;
}

}  // namespace

std::optional<TurnedTiles> turned_tiles(const LoopNest& nest) {
  const int across = nest.vector_axis;
  if (!nest.form->is_map() || across < 0 || !is_long(nest, across)) return std::nullopt;
  if (!is_near(nest.store, across)) return std::nullopt;
  const std::vector<std::uint64_t> dependence = nest.dependence();
  TurnedTiles best;
  for (const int along : nest.parallel) {
    if (along == across || along == nest.rows || !is_long(nest, along)) continue;
    TurnedTiles tiles{along, {}};
    for (const int id : nest.nodes) {
      const ir::Index& index = nest.address[static_cast<std::size_t>(id)];
      if (nest.form->dag[id].op != ir::ScalarOp::kLoad || magnitude(index.coefficient_of(across)) <= 1 ||
          index.coefficient_of(along) != 1) {
        continue;
      }
      if (is_affine_along(index, across, dependence) && is_affine_along(index, along, dependence))
        tiles.loads.push_back(id);
    }
    if (tiles.loads.size() > best.loads.size()) best = tiles;
  }
  return best.loads.empty() ? std::nullopt : std::optional(best);
}

void store_packs_where_loads_turn(LoopNest& nest) {
  if (!nest.form->is_map() || nest.vector_axis < 0) return;
  if (magnitude(nest.store.coefficient_of(nest.vector_axis)) == 1) return;
  std::optional<int> nearest;
  for (const int axis : nest.parallel) {
    if (axis == nest.rows) continue;
    const ir::Dim step = nest.store.coefficient_of(axis);
    if (!is_near(nest.store, axis) || ir::lowest(step) < 1 || !is_long(nest, axis)) continue;
    if (!nearest || step < nest.store.coefficient_of(*nearest)) nearest = axis;
  }
  if (!nearest) return;
  LoopNest other = nest;
  set_vector_axis(other, *nearest);
  const std::optional<TurnedTiles> tiles = turned_tiles(other);
  if (!tiles) return;
  const std::vector<std::uint64_t> dependence = other.dependence();
  const auto is_pack = [&](int id) {
    const ir::Index& index = other.address[static_cast<std::size_t>(id)];
    if (other.form->dag[id].op != ir::ScalarOp::kLoad) return true;
    if (std::find(tiles->loads.begin(), tiles->loads.end(), id) != tiles->loads.end()) return true;
    return is_affine_along(index, *nearest, dependence) && magnitude(index.coefficient_of(*nearest)) <= 1;
  };
  if (std::all_of(other.nodes.begin(), other.nodes.end(), is_pack)) nest = std::move(other);
}

}  // namespace gcompile
