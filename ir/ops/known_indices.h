#pragma once
// Indices that are known when compiling, as formulas: what reads or writes at affine ones is a view or a box.

#include <optional>

#include "ir/ops/support.h"

namespace gcompile::ir {

/// first + the sum of step * position over axes of positions.
struct AffineIndices {
  Dim first;
  Shape steps;
  Index at(const std::vector<Index>& position) const;
};

/// What component `component` of each tuple of known indices is, over the axes of `positions`, when wrapped it
/// is affine and lies in [0, extent): so are the indices of windows (Unfold), of slices and of assignments to
/// them. nullopt for none at all.
std::optional<AffineIndices> affine_indices(const Tensor& indices, const Shape& positions,
                                            std::int64_t component, Dim extent);

/// Adds regions of `root` around a box inside the form: for each axis the slabs before and behind it, with the
/// earlier axes already inside.
void add_shell(LoopForm& form, const std::vector<Range>& box, int root);

}  // namespace gcompile::ir
