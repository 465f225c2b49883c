#include "codegen/program/state_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/diagnostics.h"
#include "base/names.h"
#include "base/nearest_name.h"
#include "codegen/loops/c_types.h"
#include "codegen/schedule/growing_state.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

[[noreturn]] void usage_error(std::string message, std::string help) {
  throw CompileError(ExitCode::kUsage, std::move(message), std::move(help));
}

/// `what`: "input" or "output".
[[noreturn]] void no_such(const char* what, const std::string& name, const std::vector<std::string>& names) {
  std::string help = did_you_mean(name, names);
  if (help.empty()) {
    std::vector<std::string> shown;
    for (const std::string& each : names) shown.push_back(printable(each));
    help = fmt::format("the model's {}s: {}", what, fmt::join(shown, ", "));
  }
  Diagnostic diagnostic;
  diagnostic.code = "E0402";
  diagnostic.message = fmt::format("--state: the model has no {} '{}'", what, printable(name));
  diagnostic.help = help;
  throw CompileError(ExitCode::kUsage, {diagnostic});
}

std::vector<std::string> input_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.inputs()) names.push_back(graph.value(id).name);
  return names;
}

/// The one axis in which the shapes differ, by rows behind those of `before`; nullopt: they differ otherwise.
std::optional<int> growing_axis(const ir::TensorType& before, const ir::TensorType& after) {
  if (before.element != after.element || before.rank() != after.rank()) return std::nullopt;
  std::optional<int> axis;
  for (std::size_t i = 0; i < before.shape.size(); ++i) {
    if (before.shape[i] == after.shape[i]) continue;
    if (axis || !before.shape[i].as_symbol() || !ir::always_less_equal(before.shape[i], after.shape[i]))
      return std::nullopt;
    axis = static_cast<int>(i);
  }
  return axis;
}

/// Room for the input and for the output that feeds it at the next run.
ir::Shape room_of(const ir::TensorType& before, const ir::TensorType& after) {
  ir::Shape room;
  for (std::size_t i = 0; i < before.shape.size(); ++i) {
    room.push_back(std::max(ir::highest(before.shape[i]), ir::highest(after.shape[i])));
  }
  return room;
}

/// What each size that the shapes of the states mention is after a run.
std::map<int, ir::Dim> sizes_after(const std::vector<StateTensor>& states, const ir::Sizes& formulas) {
  std::map<int, ir::Dim> after;
  const auto add = [&](const StateTensor& state, int symbol, ir::Dim size) {
    const ir::Dim other = after.try_emplace(symbol, size).first->second;
    if (other == size) return;
    usage_error(fmt::format("--state {}={}: '{}' is {} after a run, and {} for another state",
                            printable(state.input_name), printable(state.output_name),
                            to_string(ir::Dim::symbol(symbol)), to_string(size), to_string(other)),
                "states that grow together append as many rows as each other");
  };
  const int symbols = static_cast<int>(formulas.symbols().size());
  for (const StateTensor& state : states) {
    for (std::size_t i = 0; i < state.type.shape.size(); ++i) {
      const ir::Dim size = state.type.shape[i];
      if (static_cast<int>(i) == state.growing_axis) {
        add(state, *size.as_symbol(), state.rows_after);
        continue;
      }
      for (int symbol = 0; symbol < symbols; ++symbol) {
        if (size.mentions(symbol)) add(state, symbol, ir::Dim::symbol(symbol));
      }
    }
  }
  return after;
}

}  // namespace

void expect_state_names(const ir::Graph& graph,
                        const std::vector<std::pair<std::string, std::string>>& pairs) {
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::vector<std::string> inputs = input_names(graph);
  for (const auto& [input, output] : pairs) {
    if (!holds(inputs, input)) no_such("input", input, inputs);
    if (!holds(graph.output_names(), output)) no_such("output", output, graph.output_names());
  }
}

std::vector<StateTensor> state_tensors(const ir::Graph& graph,
                                       const std::vector<std::pair<std::string, std::string>>& pairs) {
  expect_state_names(graph, pairs);
  std::vector<StateTensor> states;
  Names names;
  if (ir::SizesScope::in_force()) {
    for (const char* header : {"held", "held_padding"}) names(header, "");
  }
  for (const auto& [input, output] : pairs) {
    const auto in = std::find_if(
        graph.inputs().begin(), graph.inputs().end(),
        [&graph, &input = input](const ir::ValueId id) { return graph.value(id).name == input; });
    const auto out = std::find(graph.output_names().begin(), graph.output_names().end(), output);
    GC_CHECK(in != graph.inputs().end() && out != graph.output_names().end());
    const ir::TensorType& type = graph.value(*in).type;
    const ir::ValueId from = graph.outputs()[static_cast<std::size_t>(out - graph.output_names().begin())];
    const ir::TensorType& after = graph.value(from).type;
    StateTensor state;
    state.c_name = names(input, "");
    state.input_name = input;
    state.output_name = output;
    state.type = type;
    state.c_type = api_type(type.element);
    if (after != type) {
      const std::string pair = fmt::format("--state {}={}", printable(input), printable(output));
      const std::optional<int> axis = growing_axis(type, after);
      if (!axis) {
        usage_error(fmt::format("{}: the types differ, {} and {}", pair, to_string(type), to_string(after)),
                    "a state has one shape and one element type, or grows along one axis whose size has "
                    "bounds: --dim past=0..127");
      }
      if (!keeps_rows(graph, from, *in, *axis)) {
        usage_error(fmt::format("{}: the output does not hold the input with more behind it", pair),
                    "a state that grows along an axis keeps what it holds where it is");
      }
      state.growing_axis = *axis;
      state.rows_after = after.shape[*axis];
    }
    state.in_place = state.grows() || changes_in_place(graph, from, *in);
    state.room = room_of(type, after);
    states.push_back(std::move(state));
  }
  return states;
}

std::vector<HeldSize> held_sizes(const std::vector<SizedGraph>& graphs,
                                 const std::vector<std::vector<StateTensor>>& states_of_graphs) {
  std::map<int, HeldSize> held;
  for (std::size_t i = 0; i < graphs.size() && graphs[i].formulas; ++i) {
    const ir::SizesScope scope(graphs[i].formulas.get());
    for (const auto& [symbol, after] : sizes_after(states_of_graphs[i], *graphs[i].formulas)) {
      HeldSize& size = held[symbol];
      size.size = static_cast<std::size_t>(symbol);
      size.after.push_back(after);
      size.highest = std::max(size.highest, ir::highest(after));
    }
  }
  std::vector<HeldSize> out;
  for (auto& [symbol, size] : held) out.push_back(std::move(size));
  return out;
}

}  // namespace gcompile
