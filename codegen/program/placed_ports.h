#pragma once
// Which inputs and outputs of a CUDA program its kernels use in the caller's memory, if that is the device's.

#include <map>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "codegen/schedule/lowered_step.h"

namespace gcompile {

/// The ports of one direction, and the arena buffer of each.
struct PortBuffers {
  std::vector<Port>& ports;
  const std::vector<int>& buffers;
};

/// Inputs that nothing is written over, and outputs; but none of a call that no run can give other memory.
/// Gives these ports their place of `arena_names` (of planned buffers); returns their buffers.
std::map<int, Argument::Space> place_ports(const std::vector<LoweredStep>& steps,
                                           const std::map<int, std::string>& arena_names, PortBuffers inputs,
                                           PortBuffers outputs);

}  // namespace gcompile
