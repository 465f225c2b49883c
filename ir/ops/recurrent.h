#pragma once
// What RNN, GRU and LSTM share, for their records and for whoever emits their kernels.

#include <string>
#include <vector>

#include "ir/operator.h"

namespace gcompile::ir {

/// An activation of a recurrent cell; alpha and beta are meaningful only where the function has them.
struct RecurrentActivation {
  std::string name;  // "Sigmoid", "Tanh", ...: the spelling of the ONNX specification
  double alpha = 0;
  double beta = 0;
};

/// Sizes and options of a normalised node.
struct Recurrence {
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int directions = 1;
  bool reverse_first = false;  // direction "reverse"
  bool batch_first = false;    // layout 1
  bool has_clip = false;
  double clip = 0;
  /// Functions of direction d at [d * functions_per_direction, ...): RNN f; GRU f, g; LSTM f, g, h.
  std::vector<RecurrentActivation> activations;
};

/// Reads a node after normalisation. `functions`: 1, 2 or 3 per direction. Throws OperatorError.
Recurrence recurrence_of(const NodeView& node, int functions);

/// Value of the activation in double.
double activate(const RecurrentActivation& activation, double x);

}  // namespace gcompile::ir
