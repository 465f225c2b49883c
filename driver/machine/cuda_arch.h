#pragma once
// --arch: the GPUs that the build files of a CUDA project ask for.

#include <string>
#include <vector>

#include "codegen/choice/machine.h"

namespace gcompile {

/// Machine code for the server and desktop GPUs of two generations and for Jetson Orin, whose code is no
/// other GPU's (CUDA C++ Programming Guide, 1.4.2 "Binary Compatibility"), and PTX for every later one.
inline constexpr const char* kDefaultCudaArch = "sm_80,sm_87,sm_90,compute_90";

/// The entries of "sm_87,sm_90a,compute_90", each once, as nvcc's code= takes them.
/// Throws CompileError (kUsage).
std::vector<std::string> cuda_architectures(const std::string& list);

/// What the entries name, each once, oldest first. sm_90a is another GPU than that of PTX for 90, which later
/// ones compile; beside sm_90 it is none, for nobody says which code of the two runs.
std::vector<GpuArchitecture> gpus_of(const std::vector<std::string>& architectures);

/// The entry of which the driver takes the code for a device of a compute capability, 87: the latest machine
/// code that it runs, that with more instructions before the other, else the latest PTX. Throws CompileError
/// (kUsage) where it runs none.
std::string code_for(int device, const std::vector<std::string>& architectures);

}  // namespace gcompile
