#pragma once
// Attributes that the newest definition of an operator no longer has: normalise() reads them, so their kinds
// are checked before it runs.

#include "ir/graph/operator.h"

namespace gcompile::frontend {

/// Checks the kind of every attribute against the record, and against ONNX's own schemas of this opset and
/// before for those that the record does not list or that an older opset gave another kind. Removes
/// `consumed_inputs` (before opset 6), which told where a runtime may overwrite an operand. Throws
/// OperatorError for a wrong kind and for attributes that nobody knows.
void check_legacy_attributes(const ir::Operator& op, int opset, ir::Attributes& attributes);

}  // namespace gcompile::frontend
