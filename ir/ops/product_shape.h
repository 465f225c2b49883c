#pragma once

#include "ir/tensors/tensor.h"

namespace gcompile::ir {

/// (batch..., M, N) of (batch..., M, K) times (batch..., K, N), the batches broadcast. Throws OperatorError
/// where an operand has fewer than two axes or the inner dimensions differ.
Shape product_shape(const Shape& a, const Shape& b);

}  // namespace gcompile::ir
