#pragma once
// What kernels are generated for.

#include <string>
#include <utility>
#include <vector>

#include "codegen/choice/machine.h"
#include "codegen/choice/trained_numbers.h"

namespace gcompile {

struct KernelOptions {
  Machine machine;
  /// CUDA: newer GPUs than the machine's, oldest first: every layer's kernel is chosen for each of them too
  /// (kernels/instances.h). What a project has once, the oldest decides: layouts, fusion, order, and how
  /// weights are packed.
  std::vector<GpuArchitecture> later;
  /// Names of nodes of the model, and of the family that has to serve each (--kernel NODE=family).
  std::vector<std::pair<std::string, std::string>> forced;
  /// What kernels read from the weights although it is one number.
  TrainedNumbers trained;
};

}  // namespace gcompile
