#include "passes/forms/positions.h"

#include <algorithm>
#include <vector>

namespace gcompile::passes {
namespace {

using ir::LoopForm;
using ir::ScalarNode;
using ir::ScalarOp;

/// Whether data decides the position, by so much arithmetic that it is worth a vector of elements.
bool is_worked_out(const ir::Dag& dag, const std::vector<ir::Index>& position) {
  constexpr std::size_t kOperations = 10;
  std::vector<int> scalars;
  for (const ir::Index& index : position) {
    for (const ir::Index::Term& term : index.terms()) {
      if (term.atom.kind == ir::IndexAtom::Kind::kLoaded) scalars.push_back(term.atom.axis);
    }
  }
  if (scalars.empty()) return false;
  std::size_t operations = 0;
  bool is_of_data = false;
  for (const int id : dag.reachable(scalars)) {
    operations += dag[id].arguments.empty() ? 0 : 1;
    is_of_data |= dag[id].op == ScalarOp::kLoad;
  }
  return is_of_data && operations >= kOperations;
}

}  // namespace

std::optional<VectorAxis> vector_beside_position(const LoopForm& form, const ScalarNode& load) {
  constexpr std::int64_t kElements = 8;  // fewer fill no vector
  if (load.op != ScalarOp::kLoad || !is_worked_out(form.dag, load.index)) return std::nullopt;
  for (int axis = 0; axis < form.parallel; ++axis) {
    if (ir::lowest(form.extents[static_cast<std::size_t>(axis)]) < kElements) continue;
    int along = -1, mentions = 0;
    for (std::size_t i = 0; i < load.index.size(); ++i) {
      if (!form.dag.index_depends_on_axis(load.index[i], axis)) continue;
      ++mentions;
      if (!load.index[i].has_loaded() && load.index[i].coefficient_of(axis) == 1) along = static_cast<int>(i);
    }
    if (mentions == 1 && along >= 0) return VectorAxis{axis, along};
  }
  return std::nullopt;
}

bool takes_vectors_beside_positions(const LoopForm& form, int operand) {
  const std::vector<ScalarNode>& nodes = form.dag.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const ScalarNode& load) {
    return load.op == ScalarOp::kLoad && load.operand == operand && vector_beside_position(form, load);
  });
}

}  // namespace gcompile::passes
