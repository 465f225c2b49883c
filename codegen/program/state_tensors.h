#pragma once
// The tensors that a run leaves for the next one (--state), and how blocks of memory are rounded.

#include <string>
#include <utility>
#include <vector>

#include "codegen/program/program.h"
#include "ir/graph.h"

namespace gcompile {

/// Blocks of memory, and tensors in the state, are whole units of so many bytes.
constexpr std::int64_t kBlockUnit = 64;
constexpr std::int64_t whole_units(std::int64_t bytes) {
  return (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit;
}

/// One after another in the state memory. `pairs`: model names of inputs and the outputs that feed them.
/// Throws CompileError (kUsage) where the model has no such pair of one type.
std::vector<StateTensor> state_tensors(const ir::Graph& graph,
                                       const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace gcompile
