#include "codegen/loops/walk_price.h"

#include <cmath>
#include <optional>

namespace gcompile {

namespace {

// In accesses to one element. A pack of so many lanes is one; one that is gathered is an access for each lane.
constexpr double kLanes = 16;
constexpr double kFold = 8;
/// Who saves less than this share keeps the order of sums that it had.
constexpr double kLeastGain = 0.2;

double extent_of(const LoopNest& nest, int axis) {
  return static_cast<double>(ir::typical(nest.axes[static_cast<std::size_t>(axis)].extent()));
}

/// Accesses at every point of the nest, for packs along the axis; nullopt: positions along it are computed.
std::optional<double> accesses(const LoopNest& nest, int axis, const std::vector<std::uint64_t>& dependence) {
  double sum = 0;
  for (const int id : nest.nodes) {
    if (nest.form->dag[id].op != ir::ScalarOp::kLoad) continue;
    if ((dependence[static_cast<std::size_t>(id)] >> axis & 1) == 0) continue;
    const ir::Index& index = nest.address[static_cast<std::size_t>(id)];
    if (!index.mentions(axis)) return std::nullopt;
    sum += magnitude(index.coefficient_of(axis)) == 1 ? 1 / kLanes : 1;
  }
  return sum;
}

}  // namespace

void fold_packs_where_cheaper(LoopNest& nest) {
  const int rows = nest.vector_axis;
  if (nest.form->is_map() || nest.form->final_over_reduced || nest.reduced.empty() || rows < 0) return;
  if (nest.axes[static_cast<std::size_t>(rows)].reduced) return;
  const std::vector<std::uint64_t> dependence = nest.dependence();
  const std::optional<double> by_rows = accesses(nest, rows, dependence);
  if (!by_rows) return;
  int best = -1;
  double least = *by_rows * (1 - kLeastGain);
  for (const int axis : nest.reduced) {
    const std::optional<double> by_terms = accesses(nest, axis, dependence);
    if (!by_terms) continue;
    const double extent = extent_of(nest, axis), tail = std::fmod(extent, kLanes) / extent;
    const double price = *by_terms * (1 - tail) + tail + kFold / extent;
    if (price >= least) continue;
    least = price;
    best = axis;
  }
  if (best >= 0) set_vector_axis(nest, best);
}

}  // namespace gcompile
