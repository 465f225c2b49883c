#pragma once
// Where the arguments of calls point to, by the names of the constants that hold the offsets.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/names.h"
#include "codegen/calls/kernel_call.h"
#include "codegen/memory/storage.h"
#include "codegen/packing/weights.h"
#include "codegen/program/program.h"

namespace gcompile {

class Addresses {
 public:
  /// `weights`: the place of each entry among the program's weights.
  Addresses(const std::vector<StorageBuffer>& buffers, std::vector<std::size_t> weights,
            const Program& program)
      : buffers_(buffers), weights_(std::move(weights)), program_(program) {}

  Argument of(const Storage& storage, ir::ElementType element) const;
  Argument of(const CallArgument& argument) const;

  std::map<int, std::string> arena_names;  // by planned buffer
  std::map<int, Argument::Space> placed;   // buffers of ports that kernels use in the caller's memory

 private:
  std::string name_of_weight(int entry) const;

  const std::vector<StorageBuffer>& buffers_;
  std::vector<std::size_t> weights_;
  const Program& program_;  // its states and weights have names
};

/// Names the offsets of planned buffers (`planned`: in the order of the plan); returns the names by buffer.
std::map<int, std::string> name_arena(Schedule& schedule, const std::vector<StorageBuffer>& buffers,
                                      const std::vector<int>& planned, Names& names);
/// Names the values of the steps that lie within buffers of others.
void name_parts(Schedule& schedule, Names& names);
/// Notes as what elements the steps see what lies in arena, weights and state.
void note_element_types(Program& program, Schedule& schedule);
/// Names the offsets of weights, which are finished.
void name_weights(Program& program, const WeightBlob& weights);

}  // namespace gcompile
