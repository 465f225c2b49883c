#include "codegen/emit/interface_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "codegen/emit/schedule_tables_json.h"
#include "codegen/emit/size_text.h"
#include "codegen/program/state_tensors.h"
#include "ir/sizes/sizes.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

enum class Which { kAll, kSized, kHolding };

struct StatusRow {
  const char* name;
  int number;  // for good; that of gcrt/status.h
  Which which;
  const char* meaning;  // {} is the prefix of the model
};

constexpr StatusRow kStatuses[] = {
    {"OK", 0, Which::kAll, ""},
    {"INVALID_ARGUMENT", 1, Which::kAll, "outside its range"},
    {"INDEX_OUT_OF_RANGE", 2, Which::kAll, "an index that the model computed is outside its axis"},
    {"SHAPE_MISMATCH", 3, Which::kAll, "the model took a branch whose shapes contradict each other"},
    {"BAD_WEIGHTS", 4, Which::kAll, "the weights are not this model's, or damaged"},
    {"NOT_INITIALIZED", 5, Which::kAll, "{}_init was not called on this instance and these weights"},
    {"DEVICE_ERROR", 6, Which::kAll, "CUDA: the runtime refused; see {}_device_error"},
    {"UNSUPPORTED_PROCESSOR", 7, Which::kAll, "C++: it lacks instructions that the library was built for"},
    {"INVALID_SIZES", 8, Which::kSized, "not among those that {}_sizes lists"},
    {"INVALID_STATE", 9, Which::kHolding, "the state does not hold what a run of these sizes begins with"},
    {"NULL_POINTER", 10, Which::kAll, "where there should be memory, inputs or outputs"},
    {"MISALIGNED", 11, Which::kAll, "memory, or a tensor that is not aligned as its elements are"},
    {"WRONG_SIZE", 12, Which::kAll, "a span has another number of elements than its tensor"},
};

/// Arrays on the stack, with the registers that are saved around them, in KiB: of 16-byte vectors in 16 registers
/// and in 32, of 32-byte ones, of 64-byte ones, as tiles are chosen (TileOfLevel in gcrt/cpu/product/dot.h), and
/// without vectors.
using OfVectors = std::array<std::int64_t, 5>;
struct StackUse {
  const char* header;
  OfVectors kibibytes;
};

/// The stack of kernels, of which one runs at a time.
constexpr StackUse kStackOfKernels[] = {
    {"gcrt/cpu/attention.h", {18, 36, 27, 36, 18}},          // scores and sums of some rows
    {"gcrt/cpu/image/conv_dot.h", {5, 5, 6, 8, 5}},          // sums of some pixels
    {"gcrt/cpu/image/conv_planes.h", {14, 14, 15, 17, 14}},  // edges of images, and sums of a tile
    {"gcrt/cpu/image/conv_tile.h", {18, 18, 18, 19, 3}},     // edges of images, beside zeros
    {"gcrt/cpu/image/winograd.h", {3, 3, 4, 6, 3}},          // products of a strip of tiles
    {"gcrt/cpu/product/decode.h", {21, 21, 21, 50, 21}},     // a part of the decoded weights, and sums
};
/// The stack of any schedule with its kernels' calls;
/// the products of which kernels are made hold at most registers.
constexpr OfVectors kStackOfRun = {5, 5, 6, 12, 3};
/// The stack that products in the tile unit need beyond that holds B as the unit wants it.
constexpr std::int64_t kStackOfTiles = 18;

std::size_t column_of(const Level& level) {
  if (!level.has_vectors()) return 4;
  if (level.vector_bytes >= 32) return level.vector_bytes >= 64 ? 3 : 2;
  return level.registers >= 32 ? 1 : 0;
}

/// What a run takes with vectors of one column, in bytes.
std::int64_t stack_of(const std::vector<std::string>& headers, std::size_t column) {
  std::int64_t largest = 0;
  for (const StackUse& use : kStackOfKernels) {
    if (std::find(headers.begin(), headers.end(), use.header) != headers.end())
      largest = std::max(largest, use.kibibytes[column]);
  }
  return (kStackOfRun[column] + largest) << 10;
}

bool is_of(Which which, const StatusNeeds& needs) {
  switch (which) {
    case Which::kAll:
      return true;
    case Which::kSized:
      return needs.has_sizes;
    case Which::kHolding:
      return needs.has_held_sizes;
  }
  return true;
}

/// C++ of how many rows the state holds after a run of each schedule.
Json rows_after(const Program& program, const HeldSize& held) {
  Json out = Json::array();
  for (std::size_t i = 0; i < program.schedules.size(); ++i) {
    const ir::SizesScope scope(program.schedules[i].formulas.get());
    out.push_back(size_text(program, held.after[i]));
  }
  return out;
}

/// C++ of what has to hold of a run's sizes beside what the state holds, the same in words, and the bounds of
/// what can be held.
void add_held_sizes(Json& out, const Program& program) {
  out["has_held_sizes"] = !program.held_sizes.empty();
  out["description_type"] = program.held_sizes.empty() ? "SizedDescription" : "GrowingDescription";
  for (const char* list : {"goes_on", "goes_on_text", "held_bounds", "rows_after"}) out[list] = Json::array();
  for (const HeldSize& held : program.held_sizes) {
    const Size& size = program.sizes[held.size];
    const std::string& name = size.c_name;
    const bool counts = held.counts_rows();
    out["goes_on"].push_back(counts ? fmt::format("sizes->{0} <= held->{0}", name)
                                    : fmt::format("held->{0} == 0 || sizes->{0} == held->{0}", name));
    out["goes_on_text"].push_back(counts ? fmt::format("{0} at most held.{0}", name)
                                         : fmt::format("{0} as held.{0}, unless that is 0", name));
    out["held_bounds"].push_back(
        fmt::format("sizes->{0} >= 0 && sizes->{0} <= {1}", name, counts ? held.highest : size.bounds.high));
    if (counts) out["rows_after"].push_back({{"size", name}, {"rows", rows_after(program, held)}});
  }
  // In front of the states that the host sees.
  const auto fields = 8 * static_cast<std::int64_t>(program.sizes.size());
  const std::int64_t padding = header_bytes(program.sizes.size()) - fields;
  out["has_state_header"] = !program.held_sizes.empty() && !info_of(program.target).has_device_memory;
  out["held_padding"] = padding;
  out["has_held_padding"] = padding > 0;
}

}  // namespace

nlohmann::ordered_json statuses_json(const std::string& model, const StatusNeeds& needs) {
  std::vector<const StatusRow*> rows;
  for (const StatusRow& row : kStatuses) {
    if (is_of(row.which, needs)) rows.push_back(&row);
  }
  const auto width_of = [](const StatusRow* row) {
    return std::string(row->name).size() + std::to_string(row->number).size();
  };
  std::size_t widest = 0;
  for (const StatusRow* row : rows) widest = std::max(widest, width_of(row));
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const StatusRow* row : rows) {
    const std::string meaning = fmt::format(fmt::runtime(row->meaning), model);
    // Meanings stand below each other, whether a comma stands before them or not.
    std::string behind = row == rows.back() ? "" : ",";
    if (!meaning.empty())
      behind += fmt::format("{:{}}/**< {} */", "", widest - width_of(row) + 2 - behind.size(), meaning);
    out.push_back({{"name", row->name}, {"number", row->number}, {"behind", behind}});
  }
  return out;
}

void add_stack(Json& out, const std::vector<std::string>& headers, const Machine& machine, bool in_tiles) {
  constexpr std::size_t kNeon64 = 1, kNarrow = 0;
  std::int64_t most = 0;
  for (const Level& level : machine.levels) most = std::max(most, stack_of(headers, column_of(level)));
  if (in_tiles && machine.has_tile_unit) most += kStackOfTiles << 10;
  const bool is_for_all = machine.levels.size() > 1;
  out["has_stacks"] = is_for_all;
  out["stack_bytes"] = is_for_all ? stack_of(headers, kNarrow) : most;
  out["stack_bytes_aarch64"] = is_for_all ? stack_of(headers, kNeon64) : most;
  out["stack_bytes_x86_64"] = most;
}

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
    entry["place_type"] = state.place_type.empty() ? "std::byte" : state.place_type;
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
  out["has_dense_states"] = std::any_of(program.states.begin(), program.states.end(),
                                        [](const StateTensor& state) { return !state.grows(); });
  out["state_grows"] = grows;
  out["state_shapes"] = shapes_text(program, shapes);
  add_held_sizes(out, program);
}

}  // namespace gcompile
