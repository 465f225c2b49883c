#pragma once
// Attributes that the newest definition of an operator no longer has: normalise() reads them, so their kinds
// are checked before it runs.

#include "ir/operator.h"

namespace gcompile::frontend {

/// Checks the kind of every attribute that the record does not list but ONNX's own schema of this opset does.
/// Throws ir::OperatorError for a wrong kind and for attributes that neither knows.
void check_legacy_attributes(const ir::Operator& op, int opset, const ir::Attributes& attributes);

}  // namespace gcompile::frontend
