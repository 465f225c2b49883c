#pragma once
// Where the arguments of calls point to, by the names of the constants that hold the offsets.

#include <map>
#include <string>
#include <vector>

#include "codegen/kernels/kernel_call.h"
#include "codegen/kernels/weights.h"
#include "codegen/memory/storage.h"
#include "codegen/program/program.h"

namespace gcompile {

class Addresses {
 public:
  Addresses(const std::vector<StorageBuffer>& buffers, const WeightBlob& weights, const Program& program)
      : buffers_(buffers), weights_(weights), program_(program) {}

  Argument of(const Storage& storage, ir::ElementType element) const;
  Argument of(const CallArgument& argument) const;

  std::map<int, std::string> arena_names;  // by planned buffer
  std::map<int, Argument::Space> placed;   // buffers of ports that kernels use in the caller's memory

 private:
  const std::vector<StorageBuffer>& buffers_;
  const WeightBlob& weights_;
  const Program& program_;  // its states and weights have names
};

/// Names the offsets of planned buffers (`planned`: in the order of the plan) and of weights.
void name_offsets(Program& program, const std::vector<StorageBuffer>& buffers,
                  const std::vector<int>& planned, const WeightBlob& weights, Addresses& addresses);

}  // namespace gcompile
