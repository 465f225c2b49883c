#pragma once
// The figures of a program that its graphs tell.

#include "codegen/program/program.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// `imported`: as the model has it, of which the nodes are listed; `optimised`: what the program was made of.
void add_graph_statistics(Schedule& schedule, const ir::Graph& imported, const ir::Graph& optimised);

/// Bytes of the weights with their header, as the caller of NAME_init sees them; 0 when there are none. The
/// one figure for people: Program::weights_bytes counts the payload alone.
std::int64_t weights_file_bytes(const Program& program);

/// CUDA: of a run on one of several architectures.
std::int64_t predicted_picoseconds(const Schedule& schedule, std::size_t architecture);

}  // namespace gcompile
