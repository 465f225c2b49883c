#include "codegen/program/addresses.h"

#include <fmt/format.h>

#include "codegen/loops/c_types.h"
#include "codegen/program/names.h"

namespace gcompile {

Argument Addresses::of(const Storage& storage, ir::ElementType element) const {
  const StorageBuffer& buffer = buffers_[static_cast<std::size_t>(storage.buffer)];
  Argument argument;
  argument.extra = storage.offset * (bits_of(element) / 8);
  switch (buffer.space) {
    case Space::kArena:
      argument.space = Argument::Space::kArena;
      argument.offset_constant = arena_names.at(storage.buffer);
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
      argument.offset_constant =
          fmt::format("state_{}", program_.states[static_cast<std::size_t>(buffer.port)].c_name);
      break;
    case Space::kHost:
      argument.space = Argument::Space::kHost;
      argument.offset_constant = std::to_string(buffer.port);
      break;
    case Space::kWeights:
      argument.space = Argument::Space::kWeights;
      argument.offset_constant = name_of_weight(buffer.weights_entry);
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
    argument.offset_constant = name_of_weight(from.weights);
  } else if (from.kind == CallArgument::Kind::kStrip) {
    argument.space = Argument::Space::kStrip;
    argument.port = from.strip;
  } else {
    argument = of(from.storage, from.element);
  }
  argument.c_type = from.c_type;
  argument.writes = from.writes;
  return argument;
}

std::string Addresses::name_of_weight(int entry) const {
  return program_.weight_offsets[weights_[static_cast<std::size_t>(entry)]].name;
}

std::map<int, std::string> name_arena(Schedule& schedule, const std::vector<StorageBuffer>& buffers,
                                      const std::vector<int>& planned) {
  std::map<int, std::string> by_buffer;
  Names names;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const StorageBuffer& buffer = buffers[static_cast<std::size_t>(planned[i])];
    Offset offset;
    offset.name = names(buffer.name.empty() ? "value" : buffer.name, "at_");
    offset.value = schedule.plan.offsets[i];
    offset.bytes = buffer.bytes;
    offset.what =
        buffer.scratch ? "scratch of one step" : fmt::format("{} {}", buffer.name, to_string(buffer.type));
    by_buffer[planned[i]] = offset.name;
    schedule.arena_offsets.push_back(std::move(offset));
  }
  return by_buffer;
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
