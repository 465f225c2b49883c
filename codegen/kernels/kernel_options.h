#pragma once
// For what kernels are made.

#include <string>
#include <utility>
#include <vector>

#include "codegen/kernels/machine.h"

namespace gcompile {

struct KernelOptions {
  Machine machine;
  /// Names of nodes of the model, and of the family that has to serve each (--kernel NODE=family).
  std::vector<std::pair<std::string, std::string>> forced;
};

}  // namespace gcompile
