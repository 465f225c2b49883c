#pragma once
// The inputs, outputs and states of a program: how the C API shows them, and where they live during a run.

#include <vector>

#include "base/diagnostics.h"
#include "codegen/memory/storage.h"
#include "codegen/program/program.h"
#include "ir/graph/graph.h"

namespace gcompile {

struct GraphPorts {
  std::vector<Port> inputs, outputs;
  std::vector<int> input_buffers, output_buffers;  // of these ports
  std::vector<StateTensor> states;
  std::vector<Storage> input_homes, output_homes;  // of the graph's inputs and outputs, states among them
  std::vector<Storage> host_homes;  // where the host finds the graph's inputs; invalid: on the device only
};

/// Adds the buffers of all inputs and outputs.
GraphPorts make_ports(const ir::Graph& graph, const std::vector<StateTensor>& states,
                      const TargetInfo& target, std::vector<StorageBuffer>& buffers);

/// An error for every input and output that packs a number of elements which only a run knows, or is a state.
void check_packed_ports(const ir::Graph& graph, const std::vector<StateTensor>& states,
                        Diagnostics& diagnostics);

}  // namespace gcompile
