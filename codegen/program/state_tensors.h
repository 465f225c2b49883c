#pragma once
// The tensors that a run leaves for the next one (--state), and how blocks of memory are rounded.

#include <string>
#include <utility>
#include <vector>

#include "codegen/program/lowering.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// Blocks of memory, and tensors in the state, are whole units of so many bytes.
constexpr std::int64_t kBlockUnit = 64;
constexpr std::int64_t whole_units(std::int64_t bytes) {
  return (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit;
}

/// Throws CompileError (kUsage) where a name of `pairs` is none of the model's inputs or outputs.
void expect_state_names(const ir::Graph& graph,
                        const std::vector<std::pair<std::string, std::string>>& pairs);

/// In their order, without offsets. `pairs`: model names of inputs and the outputs that feed them. Throws
/// CompileError (kUsage) where the model has no such pair, of one type or of an output that grows the input
/// in place.
std::vector<StateTensor> state_tensors(const ir::Graph& graph,
                                       const std::vector<std::pair<std::string, std::string>>& pairs);

/// The sizes that the shapes of states mention, which are alike in all graphs. Throws CompileError (kUsage)
/// where one state appends rows by a size that another wants unchanged.
std::vector<HeldSize> held_sizes(const std::vector<SizedGraph>& graphs,
                                 const std::vector<std::vector<StateTensor>>& states_of_graphs);

/// Bytes in front of states that remember sizes: all `sizes` of a program.
constexpr std::int64_t header_bytes(std::size_t sizes) {
  return whole_units(8 * static_cast<std::int64_t>(sizes));
}

}  // namespace gcompile
