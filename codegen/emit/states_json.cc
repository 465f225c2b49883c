#include "codegen/emit/states_json.h"

#include <fmt/format.h>

#include "codegen/emit/schedule_tables_json.h"
#include "codegen/emit/size_text.h"
#include "codegen/program/state_tensors.h"
#include "ir/sizes.h"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// C++ of what has to hold of a run's sizes beside what the state holds.
Json goes_on(const Program& program) {
  Json out = Json::array();
  for (const HeldSize& size : program.held_sizes) {
    const std::string& name = program.sizes[size.size].c_name;
    out.push_back(size.counts_rows() ? fmt::format("sizes->{0} <= held->{0}", name)
                                     : fmt::format("held->{0} == 0 || sizes->{0} == held->{0}", name));
  }
  return out;
}

/// C++ of the bounds of what can be held.
Json held_bounds(const Program& program) {
  Json out = Json::array();
  for (const HeldSize& size : program.held_sizes) {
    const Size& of = program.sizes[size.size];
    const std::int64_t most = size.counts_rows() ? ir::highest(size.after) : of.bounds.high;
    out.push_back(fmt::format("sizes->{0} >= 0 && sizes->{0} <= {1}", of.c_name, most));
  }
  return out;
}

/// The same in words.
Json goes_on_text(const Program& program) {
  Json out = Json::array();
  for (const HeldSize& size : program.held_sizes) {
    const std::string& name = program.sizes[size.size].c_name;
    out.push_back(size.counts_rows() ? fmt::format("{0} at most held.{0}", name)
                                     : fmt::format("{0} as held.{0}, unless that is 0", name));
  }
  return out;
}

void add_held_sizes(Json& out, const Program& program) {
  out["has_held_sizes"] = !program.held_sizes.empty();
  out["goes_on"] = goes_on(program);
  out["goes_on_text"] = goes_on_text(program);
  out["held_bounds"] = held_bounds(program);
  out["rows_after"] = Json::array();
  for (const HeldSize& size : program.held_sizes) {
    if (!size.counts_rows()) continue;
    out["rows_after"].push_back(
        {{"size", program.sizes[size.size].c_name}, {"rows", size_text(program, size.after)}});
  }
  const auto fields = 8 * static_cast<std::int64_t>(program.sizes.size());
  const std::int64_t padding = header_bytes(program.sizes.size()) - fields;
  out["held_padding"] = padding;
  out["has_held_padding"] = padding > 0;
}

}  // namespace

void add_states(Json& out, const Program& program) {
  Json states = Json::array();
  std::string grows;
  std::vector<ir::Shape> shapes;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const StateTensor& state = program.states[i];
    Json entry = port_json(state.c_name, state.input_name, state.c_type, {state.type.element, state.room}, i);
    entry["type"] = to_string(state.type);
    entry["output_name"] = state.output_name;
    entry["offset"] = state.offset;
    entry["grows"] = state.grows();
    const std::int64_t end =
        i + 1 < program.states.size() ? program.states[i + 1].offset : program.state_bytes;
    entry["padding"] = end - state.offset - state.bytes();
    entry["has_padding"] = end - state.offset - state.bytes() > 0;
    grows += fmt::format("{}{}", i > 0 ? ", " : "", state.grows());
    shapes.push_back(state.type.shape);
    states.push_back(std::move(entry));
  }
  out["states"] = std::move(states);
  out["state_count"] = program.states.size();
  out["has_states"] = !program.states.empty();
  out["state_grows"] = grows;
  out["state_shapes"] = shapes_text(program, shapes);
  add_held_sizes(out, program);
}

}  // namespace gcompile
