#pragma once
// Inputs and outputs whose elements have less than 8 bits: the caller has them as tensors of those elements, the graph
// as their bytes.

#include "ir/graph/graph.h"

namespace gcompile::ir {

/// A tensor as a value of the graph holds it.
Tensor as_stored(const Tensor& tensor, const TensorType& type);
/// The value of input `position` for a tensor of the caller.
Tensor stored_input(const Graph& graph, std::size_t position, const Tensor& tensor);
/// The tensor of output `position` for its value.
Tensor given_output(const Graph& graph, std::size_t position, const Tensor& value);

}  // namespace gcompile::ir
