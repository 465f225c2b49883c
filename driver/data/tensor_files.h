#pragma once

#include <string>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile {

struct NamedTensor {
  std::string name;
  ir::Tensor tensor;
};

// Tensors on disk, as numpy reads and writes them. All throw CompileError(ExitCode::kInputOutput) naming
// the file and the reason. The .npy formats and element types are those of npy.h.

ir::Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const ir::Tensor& tensor);

/// The arrays of a .npz archive, stored or deflated, in its order; names without ".npy". Anything in it that
/// is not an array, and a name that occurs twice, is an error.
std::vector<NamedTensor> read_npz(const std::string& path);

/// Writes a .npz archive, stored. Names must be different.
void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace gcompile
