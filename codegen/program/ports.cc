#include "codegen/program/ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"
#include "codegen/loops/c_types.h"
#include "ir/graph/checks.h"

namespace gcompile {
namespace {

class PortMaker {
 public:
  PortMaker(const ir::Graph& graph, const TargetInfo& target, std::vector<StorageBuffer>& buffers)
      : graph_(graph), target_(target), buffers_(buffers), demands_(ir::demands_of(graph)) {}

  GraphPorts run(const std::vector<StateTensor>& states) {
    out_.states = states;
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      add_input(graph_.value(graph_.inputs()[i]), graph_.input_type(i));
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      add_output(graph_.value(graph_.outputs()[i]).type, graph_.output_type(i), graph_.output_names()[i]);
    }
    return std::move(out_);
  }

 private:
  Space space_of_ports(Space of_the_caller) const {
    return target_.has_device_memory ? Space::kArena : of_the_caller;
  }

  Storage add_buffer(StorageBuffer buffer) {
    Storage home{static_cast<int>(buffers_.size()), 0, ir::row_major_strides(buffer.type.shape)};
    buffers_.push_back(std::move(buffer));
    return home;
  }

  static StorageBuffer buffer_of(const ir::TensorType& type, const std::string& name) {
    StorageBuffer buffer;
    buffer.bytes = ir::highest(type.bytes());
    buffer.name = name;
    buffer.type = type;
    return buffer;
  }

  /// `type` as the caller has it, of the same bytes.
  void add_input(const ir::Value& value, const ir::TensorType& type) {
    StorageBuffer buffer = buffer_of(value.type, value.name);
    for (std::size_t i = 0; i < out_.states.size() && buffer.port < 0; ++i) {
      if (out_.states[i].input_name == value.name) {
        buffer.space = Space::kState;
        buffer.port = static_cast<int>(i);
        buffer.bytes = out_.states[i].bytes();
      }
    }
    if (buffer.port < 0) {
      buffer.space = space_of_ports(Space::kInput);
      buffer.port = static_cast<int>(out_.inputs.size());
      out_.input_buffers.push_back(static_cast<int>(buffers_.size()));
      out_.inputs.push_back({input_names_(value.name, ""), value.name, type, api_type(type.element)});
      for (const ir::Demand& demand : demands_) {
        if (demand.input == value.name) out_.inputs.back().example = demand.example;
      }
    }
    out_.input_homes.push_back(add_buffer(buffer));
    if (buffer.space == Space::kState) {
      out_.input_homes.back().strides = out_.states[static_cast<std::size_t>(buffer.port)].strides();
    }
    out_.host_homes.push_back(host_home(std::move(buffer)));
  }

  /// Where the host finds an input of a program for a device: at the caller's pointer.
  /// States lie on the device.
  Storage host_home(StorageBuffer on_device) {
    if (!target_.has_device_memory || on_device.space != Space::kArena) return {};
    on_device.space = Space::kInput;
    return add_buffer(std::move(on_device));
  }

  void add_output(const ir::TensorType& stored, const ir::TensorType& type, const std::string& name) {
    StorageBuffer buffer = buffer_of(stored, name);
    const auto state = std::find_if(out_.states.begin(), out_.states.end(),
                                    [&](const StateTensor& each) { return each.output_name == name; });
    if (state != out_.states.end() && state->in_place) {
      out_.output_homes.push_back(home_of_state(*state));
      return;
    }
    // The next value of another state waits in the arena until the run has read the old one.
    if (state == out_.states.end()) {
      buffer.space = space_of_ports(Space::kOutput);
      buffer.port = static_cast<int>(out_.outputs.size());
      out_.output_buffers.push_back(static_cast<int>(buffers_.size()));
      out_.outputs.push_back({output_names_(name, ""), name, type, api_type(type.element)});
    }
    out_.output_homes.push_back(add_buffer(std::move(buffer)));
  }

  Storage home_of_state(const StateTensor& state) const {
    const auto input =
        std::find_if(graph_.inputs().begin(), graph_.inputs().end(),
                     [&](const ir::ValueId id) { return graph_.value(id).name == state.input_name; });
    return out_.input_homes[static_cast<std::size_t>(input - graph_.inputs().begin())];
  }

  const ir::Graph& graph_;
  const TargetInfo& target_;
  std::vector<StorageBuffer>& buffers_;
  const std::vector<ir::Demand> demands_;
  GraphPorts out_;
  Names input_names_, output_names_;
};

}  // namespace

GraphPorts make_ports(const ir::Graph& graph, const std::vector<StateTensor>& states,
                      const TargetInfo& target, std::vector<StorageBuffer>& buffers) {
  return PortMaker(graph, target, buffers).run(states);
}

void check_packed_ports(const ir::Graph& graph, const std::vector<StateTensor>& states,
                        Diagnostics& diagnostics) {
  const auto check = [&](const char* what, const std::string& name, const ir::TensorType& type) {
    if (bits_of(type.element) >= 8) return;
    const bool is_state = std::any_of(states.begin(), states.end(), [&](const StateTensor& state) {
      return state.input_name == name || state.output_name == name;
    });
    if (!is_state && ir::are_constant(type.shape)) return;
    Diagnostic diagnostic;
    diagnostic.code = "E0304";
    diagnostic.message =
        fmt::format("{} '{}' is {}: elements of less than 8 bits {}", what, printable(name), to_string(type),
                    is_state ? "cannot be a state" : "need sizes that are numbers");
    if (!is_state) diagnostic.help = "bind its dimensions with --dim or --shape";
    diagnostics.add(std::move(diagnostic));
  };
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    check("input", graph.value(graph.inputs()[i]).name, graph.input_type(i));
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    check("output", graph.output_names()[i], graph.output_type(i));
  }
}

std::string filled_text(const Port& port, const std::vector<Port>& outputs) {
  if (!port.counted) return "";
  const std::string& count = outputs[static_cast<std::size_t>(port.counted->count)].c_name;
  return fmt::format("; filled for the first `{}` of axis {}", count, port.counted->axis);
}

}  // namespace gcompile
