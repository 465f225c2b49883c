#pragma once
// The GPU of this machine, of which the driver is asked.

#include <optional>

namespace gcompile {

/// The compute capability, 10 * major + minor, of the device that programs take if nothing else is said;
/// nothing where there is no NVIDIA GPU with its driver.
std::optional<int> gpu_capability();

}  // namespace gcompile
