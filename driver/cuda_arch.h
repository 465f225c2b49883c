#pragma once
// --arch: the GPUs that the build files of a CUDA project ask for.

#include <string>
#include <vector>

namespace gcompile {

/// Machine code for the server and desktop GPUs of two generations and for Jetson Orin, whose code is no
/// other GPU's (CUDA C++ Programming Guide, 1.4.2 "Binary Compatibility"), and PTX for every later one.
inline constexpr const char* kDefaultCudaArch = "sm_80,sm_87,sm_90,compute_90";

/// The entries of "sm_87,sm_90a,compute_90", each once, as nvcc's code= takes them. Throws CompileError
/// (kUsage).
std::vector<std::string> cuda_architectures(const std::string& list);

/// Of the entries: 87 for {"sm_87", "sm_90a"}.
int lowest_capability(const std::vector<std::string>& architectures);

/// Whether machine code is asked for of sm_90a alone, whose warpgroup instructions no other GPU has.
bool are_sm_90a(const std::vector<std::string>& architectures);

}  // namespace gcompile
