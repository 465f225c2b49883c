#pragma once
// The loops of an operator that reduces axes: parallel axes first in their order, then the reduced ones.

#include "ir/ops/support.h"

namespace gcompile::ir {

/// Dims after reducing `axes` (sorted).
Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep);

struct ReducedAxes {
  /// Without stages and regions. `store` is that of a result with the reduced axes dropped or kept as 1.
  LoopForm form;
  /// Index of the operand: one entry per axis of `shape`.
  std::vector<Index> index;
  /// Number of elements reduced to one.
  Dim elements = 1;

  ReducedAxes(const Shape& shape, const std::vector<int>& axes, bool keep);
  /// The final expression runs over all axes and the result has the operand's shape.
  void keep_shape();
};

/// A matrix product (batch..., M, K) x (batch..., K, N) as loops that sum over K, for types and operands that
/// no kernel of its own has. `load(dag, i, index)` is an element of operand i in the type of the sum.
LoopForm sum_of_products(const LowerContext& context,
                         const std::function<int(Dag&, int i, std::vector<Index> index)>& load);

}  // namespace gcompile::ir
