#pragma once
// What RNN, GRU and LSTM share, for their records and for whoever emits their kernels.

#include <string>
#include <vector>

#include "ir/forms/work.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {

/// Reads a node after normalisation. Throws OperatorError.
RecurrentWork recurrent_work(const NodeView& node, RecurrentCell cell);

/// Value of the activation in double.
double activate(const RecurrentActivation& activation, double x);

}  // namespace gcompile::ir
