#include "codegen/program/state_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "codegen/program/names.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

[[noreturn]] void usage_error(const std::string& message) {
  throw ir::CompileError(ir::ExitCode::kUsage, message);
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
      usage_error(fmt::format("--state: the model has no input '{}'", ir::printable(input)));
    }
    if (out == graph.output_names().end()) {
      usage_error(fmt::format("--state: the model has no output '{}'", ir::printable(output)));
    }
    const ir::TensorType& type = graph.value(*in).type;
    const ir::ValueId from = graph.outputs()[static_cast<std::size_t>(out - graph.output_names().begin())];
    if (graph.value(from).type != type) {
      usage_error(fmt::format("--state {}={}: the types differ, {} and {}", ir::printable(input),
                              ir::printable(output), to_string(type), to_string(graph.value(from).type)));
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
