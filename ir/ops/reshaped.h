#pragma once
// Nodes that become a Reshape of what they compute.

#include "ir/graph/operator.h"

namespace gcompile::ir {

/// The node becomes a Reshape of `value`; dims of 0 mean 0.
void become_reshape(RewriteContext& context, ValueId value, const Shape& shape);

}  // namespace gcompile::ir
