#include "codegen/program/addresses.h"

#include <fmt/format.h>

#include <functional>
#include <tuple>

#include "base/names.h"
#include "codegen/loops/c_types.h"

namespace gcompile {

Argument Addresses::of(const Storage& storage, ir::ElementType element) const {
  const StorageBuffer& buffer = buffers_[storage.buffer];
  Argument argument;
  argument.extra = storage.offset * (bits_of(element) / 8);
  argument.elements = storage.offset;
  switch (buffer.space) {
    case Space::kArena:
      argument.space = Argument::Space::kArena;
      argument.place = arena_names.at(storage.buffer);
      if (const auto at = placed.find(storage.buffer); at != placed.end()) argument.space = at->second;
      break;
    case Space::kInput:
      argument.space = Argument::Space::kInput;
      break;
    case Space::kOutput:
      argument.space = Argument::Space::kOutput;
      break;
    case Space::kState:
      argument.space = Argument::Space::kState;
      argument.place = fmt::format("state_{}", program_.states[static_cast<std::size_t>(buffer.port)].c_name);
      break;
    case Space::kHost:
      argument.space = Argument::Space::kHost;
      argument.place = std::to_string(buffer.port);
      break;
    case Space::kWeights:
      argument.space = Argument::Space::kWeights;
      argument.place = name_of_weight(buffer.weights_entry);
      break;
  }
  argument.port = buffer.port;
  argument.c_type = kernel_type(element);
  return argument;
}

Argument Addresses::of(const CallArgument& from) const {
  Argument argument;
  if (from.kind == CallArgument::Kind::kWeights) {
    argument.space = Argument::Space::kWeights;
    argument.place = name_of_weight(from.weights);
  } else if (from.kind == CallArgument::Kind::kStrip) {
    argument.space = Argument::Space::kStrip;
    argument.port = from.strip;
  } else {
    argument = of(from.storage, from.element);
  }
  if (argument.c_type != from.c_type && argument.extra != 0) argument.elements.reset();
  argument.c_type = from.c_type;
  argument.value = from.value;
  argument.layout = from.layout;
  argument.writes = from.writes;
  return argument;
}

std::string Addresses::name_of_weight(int entry) const {
  return program_.weight_offsets[weights_[static_cast<std::size_t>(entry)]].name;
}

std::map<int, std::string> name_arena(Schedule& schedule, const std::vector<StorageBuffer>& buffers,
                                      const std::vector<int>& planned, Names& names) {
  std::map<int, std::string> by_buffer;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const StorageBuffer& buffer = buffers[planned[i]];
    Offset offset;
    offset.name = names(name_in_code(buffer), "at_");
    offset.value = schedule.plan.offsets[i];
    offset.bytes = buffer.bytes;
    offset.what =
        buffer.scratch ? "scratch of one step" : layout_text(buffer.name, buffer.type, buffer.strides);
    by_buffer[planned[i]] = offset.name;
    schedule.arena_offsets.push_back(std::move(offset));
  }
  return by_buffer;
}

namespace {

/// Visits the arguments of all steps.
void each_argument(std::vector<Step>& steps, const std::function<void(Argument&)>& visit) {
  for (Step& step : steps) {
    for (Argument& argument : step.arguments) visit(argument);
    each_argument(step.then_steps, visit);
    each_argument(step.else_steps, visit);
    each_argument(step.strip_steps, visit);
  }
}

}  // namespace

void name_parts(Schedule& schedule, Names& names) {
  std::map<std::tuple<std::string, std::int64_t, std::string>, std::string> known;
  each_argument(schedule.steps, [&](Argument& argument) {
    if (argument.space != Argument::Space::kArena || argument.value.empty()) return;
    if (!argument.extra.is_constant() || argument.extra == 0) return;
    std::string& name = known[{argument.place, argument.extra.constant(), argument.value}];
    if (name.empty()) {
      name = names(argument.value, "at_");
      schedule.parts.push_back(
          {name, argument.place, argument.extra.constant(), argument.layout, argument.c_type});
    }
    argument.place = name;
    argument.extra = 0;
    argument.elements = 0;
  });
}

void note_element_types(Program& program, Schedule& schedule) {
  std::map<std::string, std::string*> types;
  for (Offset& offset : schedule.arena_offsets) types[offset.name] = &offset.c_type;
  for (Offset& offset : program.weight_offsets) types[offset.name] = &offset.c_type;
  for (StateTensor& state : program.states) types["state_" + state.c_name] = &state.place_type;
  each_argument(schedule.steps, [&](Argument& argument) {
    const auto at = types.find(argument.place);
    if (at != types.end() && argument.extra == 0 && at->second->empty()) *at->second = argument.c_type;
  });
}

void name_weights(Program& program, const WeightBlob& weights) {
  Names names;
  for (const WeightBlob::Entry& entry : weights.entries()) {
    Offset offset;
    offset.name = names(entry.name.empty() ? "constant" : entry.name, "w_");
    offset.value = entry.offset;
    offset.bytes = entry.bytes;
    offset.what = fmt::format("{} {}", entry.name, entry.what);
    program.weight_offsets.push_back(std::move(offset));
  }
}

}  // namespace gcompile
