#include "driver/commands/budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
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
  std::string of;                              // "weights 4,096"
  std::function<Contributors()> contributors;  // asked where the budget is exceeded
  std::string help;
};

void expect_budget(const Use& use, Diagnostics& diagnostics) {
  if (!use.budget || use.bytes <= *use.budget) return;
  Diagnostic diagnostic;
  diagnostic.code = "E0308";
  diagnostic.message = fmt::format("{} {}: the project takes {} bytes, {} more: {}", use.option, *use.budget,
                                   grouped(use.bytes), grouped(use.bytes - *use.budget), use.of);
  Contributors contributors = use.contributors();
  std::stable_sort(contributors.begin(), contributors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min(kMostNamed, contributors.size()); ++i) {
    const auto& [bytes, what] = contributors[i];
    diagnostic.details.push_back(fmt::format("{} bytes: {}", grouped(bytes), printable(what)));
  }
  diagnostic.help = use.help;
  diagnostics.add(std::move(diagnostic));
}

/// Scratch that belongs to no value has a name that begins with a space.
std::string name_of(const Buffer& buffer) {
  return buffer.name.substr(std::min(buffer.name.find_first_not_of(' '), buffer.name.size()));
}

/// The buffers of the step in which most bytes are alive.
Contributors alive_at_peak(const Schedule& schedule) {
  std::map<std::int64_t, std::int64_t> changes;  // of the bytes that are alive, by step
  for (const Buffer& buffer : schedule.buffers) {
    changes[buffer.begin_step] += buffer.size;
    changes[buffer.end_step] -= buffer.size;
  }
  std::int64_t alive = 0, most = -1, peak = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    if (alive > most) most = alive, peak = step;
  }
  Contributors out;
  for (const Buffer& buffer : schedule.buffers) {
    const bool is_alive = buffer.begin_step <= peak && peak < buffer.end_step;
    if (is_alive) out.emplace_back(buffer.size, name_of(buffer));
  }
  return out;
}

Use flash_of(const Program& program, const Options& options) {
  const std::int64_t bytes = options.weights == WeightsMode::kFile ? 0 : weights_file_bytes(program);
  const auto contributors = [&program] {
    Contributors out;
    for (const Offset& weight : program.weight_offsets) out.emplace_back(weight.bytes, weight.what);
    return out;
  };
  return {"--max-flash",
          options.max_flash,
          bytes,
          fmt::format("weights {}; the code comes on top", grouped(bytes)),
          contributors,
          "a model that was quantised in training has a quarter of the weights, --weight-bits packs those of "
          "products, --extra-weights 0 keeps all as they are, --weights file leaves them out of the program"};
}

Use ram_of(const Program& program, const Options& options) {
  const Schedule& largest =
      *std::max_element(program.schedules.begin(), program.schedules.end(),
                        [](const Schedule& a, const Schedule& b) { return a.arena_bytes < b.arena_bytes; });
  const std::int64_t arena = arena_bytes(program), instance = instance_bytes(program);
  const auto contributors = [&program, &largest] {
    Contributors out = alive_at_peak(largest);
    for (const StateTensor& state : program.states)
      out.emplace_back(state.bytes(), fmt::format("state {}", state.input_name));
    return out;
  };
  return {
      "--max-ram",
      options.max_ram,
      arena + program.state_bytes + instance,
      fmt::format("arena {}, state {}, instance {}", grouped(arena), grouped(program.state_bytes),
                  grouped(instance)),
      contributors,
      options.optimize_for_size
          ? "smaller or fewer maps in one step: these are alive together (README.md, or the report, has all)"
          : "--optimize-for size takes the kernels with the least scratch, and images in strips of rows"};
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
      [] { return Contributors(); },
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
