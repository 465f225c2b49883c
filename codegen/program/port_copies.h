#pragma once
// The copies of a schedule: what passes between the caller, the arena and the state around its calls.

#include <vector>

#include "codegen/program/addresses.h"
#include "codegen/program/ports.h"
#include "codegen/program/program.h"

namespace gcompile {

/// Inputs that kernels of a device cannot use where the caller has them, to the arena.
std::vector<Step> input_copies(const GraphPorts& ports, const std::vector<StorageBuffer>& buffers,
                               const Addresses& addresses);

/// Outputs that kernels of a device cannot write where the caller wants them, from the arena.
std::vector<Step> output_copies(const GraphPorts& ports, const std::vector<StorageBuffer>& buffers,
                                const Addresses& addresses);

/// New states over the old ones, when nothing reads those any more. `output_names`: of the graph.
std::vector<Step> state_copies(const GraphPorts& ports, const std::vector<std::string>& output_names,
                               const Addresses& addresses);

}  // namespace gcompile
