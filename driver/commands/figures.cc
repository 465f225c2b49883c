// The figures of a program that its compilation tells, for programs and for people.

#include <fmt/format.h>

#include "codegen/emit/program_json.h"
#include "codegen/program/statistics.h"
#include "codegen/report/quantities.h"
#include "driver/commands/compile.h"
#include "nlohmann/json.hpp"

namespace gcompile {

nlohmann::ordered_json figures_of(const Program& program) {
  const Schedule& largest = program.schedules.back();
  const Statistics& s = largest.statistics;
  nlohmann::ordered_json out = {{"name", program.name},
                                {"target", info_of(program.target).name},
                                {"nodes_imported", s.nodes_imported},
                                {"nodes_optimised", s.nodes_optimised},
                                {"schedules", program.schedules.size()},
                                {"calls", largest.layers.size()},
                                {"kernels", program.kernels.size()},
                                {"arena_bytes", arena_bytes(program)},
                                {"arena_lower_bound", s.arena_lower_bound},
                                {"bare_first_fit", s.bare_first_fit},
                                {"scratch_bytes", s.scratch_bytes},
                                {"state_bytes", program.state_bytes},
                                {"weights_bytes", weights_file_bytes(program)},
                                {"instance_bytes", instance_bytes(program)},
                                {"multiply_adds", s.multiply_adds}};
  if (!program.device || program.device->architectures.size() == 1) return out;
  for (std::size_t i = 0; i < program.device->architectures.size(); ++i) {
    out["architectures"].push_back({{"name", name_of(program.device->architectures[i])},
                                    {"picoseconds", predicted_picoseconds(largest, i)}});
  }
  return out;
}

std::string figures_text(const Program& program) {
  const Schedule& largest = program.schedules.back();
  const Statistics& s = largest.statistics;
  std::string text = fmt::format(
      "{}: {} -> {} of {}; arena {} (bound {}), weights {}{}", program.name,
      counted(s.nodes_imported, "node"), counted(static_cast<std::int64_t>(largest.layers.size()), "call"),
      counted(static_cast<std::int64_t>(program.kernels.size()), "kernel"), human_bytes(arena_bytes(program)),
      human_bytes(s.arena_lower_bound), human_bytes(weights_file_bytes(program)),
      program.state_bytes > 0 ? ", state " + human_bytes(program.state_bytes) : "");
  if (program.sizes.empty()) return text;
  return fmt::format("{}: {}; of the largest:\n{}", program.name,
                     counted(static_cast<std::int64_t>(program.schedules.size()), "schedule"), text);
}

}  // namespace gcompile
