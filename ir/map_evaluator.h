#pragma once
// Evaluation of maps by blocks: every node of the expression is computed for a run of elements before the
// next, in doubles and 64-bit integers. Rounds where the element-wise rules of scalar_op.h round, so the bits
// are theirs.

#include <vector>

#include "ir/form.h"

namespace gcompile::ir {

/// result[store(i)] = root(i) for the regions of a form without stages, whose bounds checks have passed.
/// `accumulator`, if any, has the form's extents.
void evaluate_map(const LoopForm& form, const std::vector<const Tensor*>& operands, const Tensor* accumulator,
                  Tensor& result);

}  // namespace gcompile::ir
