#include "driver/commands/budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "codegen/emit/interface_json.h"
#include "codegen/emit/program_json.h"
#include "codegen/report/quantities.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

/// Contributors that a message names.
constexpr std::size_t kMostNamed = 5;

/// Bytes, and whose.
using Contributors = std::vector<std::pair<std::int64_t, std::string>>;

struct Use {
  const char* option;
  std::optional<std::int64_t> budget;
  std::int64_t bytes;
  std::string of;  // "weights 4,096"
  Contributors contributors;
  std::string help;
};

void expect_budget(Use use, Diagnostics& diagnostics) {
  if (!use.budget || use.bytes <= *use.budget) return;
  Diagnostic diagnostic;
  diagnostic.code = "E0308";
  diagnostic.message = fmt::format("{} {}: the project takes {} bytes, {} more: {}", use.option, *use.budget,
                                   grouped(use.bytes), grouped(use.bytes - *use.budget), use.of);
  std::stable_sort(use.contributors.begin(), use.contributors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min(kMostNamed, use.contributors.size()); ++i) {
    const auto& [bytes, what] = use.contributors[i];
    diagnostic.details.push_back(fmt::format("{} bytes: {}", grouped(bytes), printable(what)));
  }
  diagnostic.help = std::move(use.help);
  diagnostics.add(std::move(diagnostic));
}

/// Scratch that belongs to no value has a name that begins with a space.
std::string name_of(const Buffer& buffer) {
  return buffer.name.substr(std::min(buffer.name.find_first_not_of(' '), buffer.name.size()));
}

/// The buffers of the step in which most bytes are alive.
Contributors alive_at_peak(const Schedule& schedule) {
  std::int64_t most = -1, peak = 0;
  const auto alive = [&](const Buffer& buffer, std::int64_t step) {
    return buffer.begin_step <= step && step < buffer.end_step;
  };
  for (const Buffer& first : schedule.buffers) {
    std::int64_t sum = 0;
    for (const Buffer& buffer : schedule.buffers) sum += alive(buffer, first.begin_step) ? buffer.size : 0;
    if (sum > most) most = sum, peak = first.begin_step;
  }
  Contributors out;
  for (const Buffer& buffer : schedule.buffers) {
    if (alive(buffer, peak)) out.emplace_back(buffer.size, name_of(buffer));
  }
  return out;
}

Use flash_of(const Program& program, const Options& options) {
  Use use{"--max-flash",
          options.max_flash,
          weights_file_bytes(program),
          fmt::format("weights {}; the code comes on top", grouped(weights_file_bytes(program))),
          {},
          ""};
  for (const Offset& weight : program.weight_offsets)
    use.contributors.emplace_back(weight.bytes, weight.what);
  use.help =
      "a model that was quantised in training has a quarter of the weights, --weight-bits packs those of "
      "products, --extra-weights 0 keeps all as they are, --weights file leaves them out of the program";
  return use;
}

Use ram_of(const Program& program, const Options& options) {
  const Schedule& schedule = program.schedules.back();
  const std::int64_t instance = instance_bytes(program);
  Use use{"--max-ram",
          options.max_ram,
          schedule.arena_bytes + program.state_bytes + instance,
          fmt::format("arena {}, state {}, instance {}", grouped(schedule.arena_bytes),
                      grouped(program.state_bytes), grouped(instance)),
          alive_at_peak(schedule),
          ""};
  for (const StateTensor& state : program.states)
    use.contributors.emplace_back(state.bytes(), fmt::format("state {}", state.input_name));
  use.help =
      options.optimize_for_size
          ? "smaller or fewer maps in one step: these are alive together (README.md, or the report, has all)"
          : "--optimize-for size takes the kernels with the least scratch, and images in strips of rows";
  return use;
}

Use stack_of(const Program& program, const Options& options, const Machine& machine) {
  nlohmann::ordered_json told;
  add_stack(told, program.headers, machine, program.in_tiles);
  std::int64_t most = 0;
  for (const char* key : {"stack_bytes", "stack_bytes_aarch64", "stack_bytes_x86_64"})
    most = std::max(most, told[key].get<std::int64_t>());
  return {
      "--max-stack",
      options.max_stack,
      most,
      "what its kernels keep there, at most",
      {},
      "--cpu names the processor, for which the project then has one level; --explain NODE says which other "
      "kernels serve a node, and --kernel NODE=FAMILY takes one"};
}

}  // namespace

void expect_budgets(const Program& program, const Options& options, const Machine& machine) {
  Diagnostics diagnostics;
  expect_budget(flash_of(program, options), diagnostics);
  expect_budget(ram_of(program, options), diagnostics);
  expect_budget(stack_of(program, options, machine), diagnostics);
  diagnostics.throw_if_errors();
}

}  // namespace gcompile
