#include "codegen/program/placed_ports.h"

#include <set>

namespace gcompile {

namespace {

struct Uses {
  std::set<int> written, fixed;  // buffers

  void add(const std::vector<LoweredStep>& steps) {
    for (const LoweredStep& step : steps) {
      for (const CallArgument& a : step.call.arguments) {
        if (a.kind != CallArgument::Kind::kStorage) continue;
        if (a.writes) written.insert(a.storage.buffer);
        if (step.call.device && step.call.device->is_fixed) fixed.insert(a.storage.buffer);
      }
      add(step.then_steps);
      add(step.else_steps);
    }
  }
};

}  // namespace

std::map<int, Argument::Space> place_ports(const std::vector<LoweredStep>& steps,
                                           const std::map<int, std::string>& arena_names, PortBuffers inputs,
                                           PortBuffers outputs) {
  Uses uses;
  uses.add(steps);
  std::map<int, Argument::Space> placed;
  const auto place = [&](const PortBuffers& list, Argument::Space space) {
    for (std::size_t i = 0; i < list.ports.size(); ++i) {
      const int buffer = list.buffers[i];
      const auto name = arena_names.find(buffer);
      const bool overwritten = space == Argument::Space::kPlacedInput && uses.written.count(buffer) > 0;
      if (name == arena_names.end() || list.ports[i].type.bytes() == 0 || overwritten ||
          uses.fixed.count(buffer) > 0) {
        continue;
      }
      list.ports[i].place = name->second;
      placed[buffer] = space;
    }
  };
  place(inputs, Argument::Space::kPlacedInput);
  place(outputs, Argument::Space::kPlacedOutput);
  return placed;
}

}  // namespace gcompile
