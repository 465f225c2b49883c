#include "driver/commands/processor_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/nearest_name.h"
#include "codegen/choice/machine.h"

namespace gcompile {

std::string note_of_processor(const std::string& cpu) {
  const std::vector<std::string> known = known_cpus();
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  // Extensions, as in cortex-m33+nodsp, are of the same core.
  const bool is_small = is_microcontroller(cpu);
  const std::string core = is_small ? cpu.substr(0, cpu.find('+')) : cpu;
  if (cpu == "native" || is_known(core)) return "";
  // Arm's profiles are told apart by one letter: cortex-a is not what somebody meant who typed cortex-m.
  constexpr std::size_t kProfile = std::string_view("cortex-m").size();
  const bool is_of_arm = cpu.rfind("cortex-", 0) == 0;
  std::vector<std::string> alike;
  for (const std::string& name : known) {
    if (!is_of_arm || name.substr(0, kProfile) == cpu.substr(0, kProfile)) alike.push_back(name);
  }
  const std::string nearest = did_you_mean(core, alike);
  return fmt::format("--cpu {}: gcompile has no figures of it, and plans for a generic {}{}{}", cpu,
                     is_small ? "microcontroller" : "processor", nearest.empty() ? "" : "; ", nearest);
}

}  // namespace gcompile
