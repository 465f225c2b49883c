#include "codegen/program/port_copies.h"

#include <fmt/format.h>

#include <algorithm>

namespace gcompile {
namespace {

Step copy_step(const Argument& from, const Argument& to, const ir::TensorType& type, std::string comment) {
  Step step;
  step.kind = Step::Kind::kCopy;
  step.arguments = {from, to};
  step.arguments[1].writes = true;
  step.bytes = type.bytes();
  step.comment = std::move(comment);
  step.result = to_string(type);
  return step;
}

Argument at_the_caller(Argument::Space space, std::size_t port, const std::string& c_type) {
  Argument argument;
  argument.space = space;
  argument.port = static_cast<int>(port);
  argument.c_type = c_type;
  return argument;
}

}  // namespace

std::vector<Step> input_copies(const GraphPorts& ports, const std::vector<StorageBuffer>& buffers,
                               const Addresses& addresses) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    const Port& port = ports.inputs[i];
    const int id = ports.input_buffers[i];
    const StorageBuffer& buffer = buffers[id];
    if (buffer.first_step < 0 || addresses.placed.count(id) > 0) continue;  // nothing reads a copy
    steps.push_back(copy_step(at_the_caller(Argument::Space::kInput, i, port.c_type),
                              addresses.of(Storage{id, 0, {}}, buffer.type.element), port.type,
                              fmt::format("input '{}'", port.model_name)));
  }
  return steps;
}

std::vector<Step> output_copies(const GraphPorts& ports, const std::vector<StorageBuffer>& buffers,
                                const Addresses& addresses) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    const Port& port = ports.outputs[i];
    const int id = ports.output_buffers[i];
    const StorageBuffer& buffer = buffers[id];
    if (buffer.bytes == 0 || addresses.placed.count(id) > 0) continue;
    steps.push_back(copy_step(addresses.of(Storage{id, 0, {}}, buffer.type.element),
                              at_the_caller(Argument::Space::kOutput, i, port.c_type), port.type,
                              fmt::format("output '{}'", port.model_name)));
  }
  return steps;
}

std::vector<Step> state_copies(const GraphPorts& ports, const std::vector<std::string>& output_names,
                               const Addresses& addresses) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    const auto state = std::find_if(ports.states.begin(), ports.states.end(),
                                    [&](const StateTensor& s) { return s.output_name == output_names[i]; });
    if (state == ports.states.end() || state->in_place) continue;
    const Argument from = addresses.of(ports.output_homes[i], state->type.element);
    Argument to;
    to.space = Argument::Space::kState;
    to.place = fmt::format("state_{}", state->c_name);
    to.c_type = from.c_type;
    steps.push_back(
        copy_step(from, to, state->type, fmt::format("state '{}' for the next run", state->input_name)));
  }
  return steps;
}

}  // namespace gcompile
