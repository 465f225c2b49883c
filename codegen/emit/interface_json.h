#pragma once
// What the C header of an emitted library says beside its tensors.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "codegen/choice/machine.h"
#include "codegen/program/program.h"

namespace gcompile {

/// Which statuses a project has, beside those that all have.
struct StatusNeeds {
  bool has_sizes = false;
  bool has_held_sizes = false;
};

/// An entry for each, by number: `name` without the model's prefix, `number`, and `meaning`, a comment that
/// names functions of `model`. `space` brings the comments into one column.
nlohmann::ordered_json statuses_json(const std::string& model, const StatusNeeds& needs);

/// Bytes that a run on a processor takes of the stack of each thread that it runs on, at most, compiled with
/// optimisation, of the widest vectors that the machine has; a project for all machines tells it of each
/// architecture. `headers`: of gcrt, all that its kernels include. `project.interface.stack` and
/// `project.stack` measure.
void add_stack(nlohmann::ordered_json& out, const std::vector<std::string>& headers, const Machine& machine,
               bool in_tiles);

/// The state: its tensors, and the sizes that it remembers.
void add_states(nlohmann::ordered_json& out, const Program& program);

}  // namespace gcompile
