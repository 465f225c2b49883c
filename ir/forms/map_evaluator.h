#pragma once
// Evaluation of expressions by blocks: every node of the expression is computed for a run of elements before
// the next, in doubles and 64-bit integers. Rounds where the element-wise rules of scalar_op.h round, so the
// bits are theirs.

#include <functional>
#include <span>
#include <vector>

#include "ir/forms/form.h"

namespace gcompile::ir {

/// result[store(i)] = root(i) for the regions of a form whose bounds checks have passed. Accumulator(k) is
/// read from accumulators[k], which lies over the first axes of the form, as many as it has; it may be kept
/// in float64 or int64, unrounded.
void evaluate_regions(const LoopForm& form, const std::vector<const Tensor*>& operands,
                      std::span<const Tensor> accumulators, Tensor& result);

/// Consecutive values of an expression, unrounded; which of the two pointers counts follows from its type.
struct Values {
  const double* real;
  const std::int64_t* integer;
  std::int64_t first;  // row-major position of the first in the extents of the form
  std::int64_t count;
};

/// Calls `take` with the values of scalar `root` over all axes of the form, in row-major order.
void for_each_value(const LoopForm& form, int root, const std::vector<const Tensor*>& operands,
                    std::span<const Tensor> accumulators, const std::function<void(const Values&)>& take);

}  // namespace gcompile::ir
