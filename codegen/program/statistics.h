#pragma once
// The figures of a program that its graphs tell.

#include "codegen/program/program.h"
#include "ir/graph.h"

namespace gcompile {

/// `imported`: as the model has it, of which the nodes are listed; `optimised`: what the program was made of.
void add_graph_statistics(Schedule& schedule, const ir::Graph& imported, const ir::Graph& optimised);

}  // namespace gcompile
