#pragma once
// softmax(scale * Q K' + mask) V as one operator (internal): what the pass "attention" makes of the products
// and the softmax between them.

#include "ir/forms/work.h"
#include "ir/ops/support.h"

namespace gcompile::ir {

/// Throws OperatorError where the operands do not fit.
AttentionWork attention_work(const NodeView& node);

}  // namespace gcompile::ir
