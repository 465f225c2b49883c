#include "codegen/program/state_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "codegen/program/names.h"
#include "ir/diagnostics.h"
#include "ir/nearest_name.h"

namespace gcompile {
namespace {

[[noreturn]] void usage_error(std::string message, std::string help) {
  throw ir::CompileError(ir::ExitCode::kUsage, std::move(message), std::move(help));
}

/// `what`: "input" or "output".
[[noreturn]] void no_such(const char* what, const std::string& name, const std::vector<std::string>& names) {
  std::string help = ir::did_you_mean(name, names);
  if (help.empty()) {
    std::vector<std::string> shown;
    for (const std::string& each : names) shown.push_back(ir::printable(each));
    help = fmt::format("the model's {}s: {}", what, fmt::join(shown, ", "));
  }
  usage_error(fmt::format("--state: the model has no {} '{}'", what, ir::printable(name)), help);
}

std::vector<std::string> input_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.inputs()) names.push_back(graph.value(id).name);
  return names;
}

}  // namespace

std::vector<StateTensor> state_tensors(const ir::Graph& graph,
                                       const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<StateTensor> states;
  Names names;
  std::int64_t offset = 0;
  for (const auto& [input, output] : pairs) {
    const auto in = std::find_if(
        graph.inputs().begin(), graph.inputs().end(),
        [&graph, &input = input](const ir::ValueId id) { return graph.value(id).name == input; });
    const auto out = std::find(graph.output_names().begin(), graph.output_names().end(), output);
    if (in == graph.inputs().end()) {
      no_such("input", input, input_names(graph));
    }
    if (out == graph.output_names().end()) {
      no_such("output", output, graph.output_names());
    }
    const ir::TensorType& type = graph.value(*in).type;
    const ir::ValueId from = graph.outputs()[static_cast<std::size_t>(out - graph.output_names().begin())];
    if (graph.value(from).type != type) {
      usage_error(fmt::format("--state {}={}: the types differ, {} and {}", ir::printable(input),
                              ir::printable(output), to_string(type), to_string(graph.value(from).type)),
                  "a state has one shape and one element type; --dim and --shape give sizes");
    }
    StateTensor state;
    state.c_name = names(input, "");
    state.input_name = input;
    state.output_name = output;
    state.type = type;
    state.c_type = api_type(type.element);
    state.offset = offset;
    offset += whole_units(type.bytes());
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace gcompile
