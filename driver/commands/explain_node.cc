#include "driver/commands/explain_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"
#include "codegen/report/quantities.h"
#include "driver/command_line/option_table.h"

namespace gcompile {
namespace {

/// For every step that computes the node, the kernel families of its kind.
void explain(const Program& program, const Schedule& schedule, const std::string& node, Terminal& terminal) {
  for (std::size_t i = 0; i < schedule.layers.size(); ++i) {
    const Layer& layer = schedule.layers[i];
    if (std::find(layer.nodes.begin(), layer.nodes.end(), node) == layer.nodes.end()) continue;
    terminal.note(fmt::format("step {}: {} ({})", i, layer.origins, layer.function));
    if (layer.rivals.empty()) terminal.note("  loops written out for this step; no kernel family is asked");
    if (!layer.problem.empty()) terminal.note("  " + layer.problem);
    for (std::size_t r = 0; r < layer.rivals.size(); ++r) {
      const Rival& rival = layer.rivals[r];
      std::string what = rival.refusal.empty()
                             ? fmt::format("{:.3f} us", static_cast<double>(rival.picoseconds) / 1e6)
                             : "does not take it: " + rival.refusal;
      if (rival.extra_weights > 0)
        what += fmt::format(", weights {} larger", human_bytes(rival.extra_weights));
      terminal.note(fmt::format("  {} {}{}: {}", r == 0 ? "->" : "  ", rival.family,
                                rival.plan.empty() ? "" : " (" + rival.plan + ")", what));
    }
    for (std::size_t a = 0; a < layer.executions.size(); ++a) {
      const Execution& on = layer.executions[a];
      terminal.note(fmt::format("  {}: {}{}{}, {:.3f} us", name_of(program.device->architectures[a]),
                                on.family, on.choice.empty() ? "" : " ", on.choice, on.time.microseconds()));
    }
  }
}

}  // namespace

void explain_node(const Compilation& compilation, const std::string& node, Terminal& terminal) {
  expect_step(compilation, "--explain", node);
  for (std::size_t i = 0; i < compilation.models.size(); ++i) {
    if (!compilation.models[i].text.empty()) terminal.note(compilation.models[i].text + ":");
    explain(compilation.program, compilation.program.schedules[i], node, terminal);
  }
}

void expect_step(const Compilation& compilation, const char* option, const std::string& node) {
  std::vector<std::string> known;
  for (const Schedule& schedule : compilation.program.schedules) {
    for (const Layer& layer : schedule.layers)
      known.insert(known.end(), layer.nodes.begin(), layer.nodes.end());
  }
  if (std::find(known.begin(), known.end(), node) != known.end()) return;
  const std::string nearest = did_you_mean(node, known);
  usage_error(fmt::format("{} '{}': no step computes such a node", option, printable(node)),
              nearest.empty() ? "report.html names the nodes of every step" : nearest);
}

void expect_node(const Compilation& compilation, const char* option, const std::string& node) {
  for (const SizedModel& model : compilation.models) {
    for (const ir::NodeId id : model.optimised.nodes()) {
      const std::vector<ir::Origin>& origins = model.optimised.node(id).origins;
      const auto is_it = [&](const ir::Origin& origin) { return origin.name == node; };
      if (model.optimised.node(id).name == node || std::any_of(origins.begin(), origins.end(), is_it)) return;
    }
  }
  expect_step(compilation, option, node);
}

}  // namespace gcompile
