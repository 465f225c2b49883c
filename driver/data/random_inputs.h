#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"

namespace gcompile {

/// Seeded values for the inputs of a model, the same on every machine: floats from [-1, 1), integers 0 or 1
/// (mostly they are indices, tokens or lengths), booleans either.
class RandomInputs {
 public:
  explicit RandomInputs(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  ir::Tensor tensor(const ir::TensorType& type);
  /// For the inputs of a model, in order; what each run checks is as it has to be.
  std::vector<ir::Tensor> inputs_of(const ir::Graph& graph);
  /// From [-1, 1), with 23 bits, so that every value is exact in float32.
  double uniform();
  std::uint64_t next();  // splitmix64

 private:
  std::uint64_t state_;
};

}  // namespace gcompile
