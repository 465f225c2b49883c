#include "codegen/emit/schedule_tables_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "base/interrupt.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/emit/size_text.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// Pairs of buffers that one static_assert looks at; clang evaluates about 10^6 steps in one constant.
constexpr std::int64_t kPairsPerCheck = 20'000;

Json shape_json(const ir::Shape& shape) {
  Json dims = Json::array();
  for (const ir::Dim dim : shape) dims.push_back(ir::highest(dim));
  return dims;
}

/// A line of the plan, `what` behind it where it fits, else above it.
Json place_json(const std::string& name, const std::string& c_type, const std::string& initialiser,
                const std::string& what) {
  // Behind the constant where it fits.
  constexpr std::size_t kLineWidth = 110;
  const std::string line =
      fmt::format("constexpr Buffer<{}> {}{{{}}};  // {}", c_type, name, initialiser, what);
  const bool is_long = line.size() > kLineWidth;
  Json lines = Json::array();
  if (is_long) {
    for (std::string& part : comment_lines(what, kLineWidth - 3)) lines.push_back(std::move(part));
  }
  return {{"name", name},
          {"c_type", c_type.empty() ? "std::byte" : c_type},
          {"what", what},
          {"is_long", is_long},
          {"comment_lines", std::move(lines)}};
}

/// A list of names in lines that fit behind so many columns.
Json wrapped(const std::vector<std::string>& names, std::size_t columns = 4) {
  const std::size_t width = 110 - columns;
  Json lines = Json::array();
  std::string line;
  for (const std::string& name : names) {
    if (!line.empty() && line.size() + name.size() + 2 > width) lines.push_back(std::exchange(line, ""));
    line += fmt::format("{}{},", line.empty() ? "" : " ", name);
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

/// The plan as emitted code checks it: sorted by the begin of lives, so that only pairs that overlap in time
/// are compared, in several constants of bounded work.
void add_plan(Json& out, const Schedule& schedule) {
  std::vector<std::size_t> order(schedule.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return schedule.buffers[a].begin_step < schedule.buffers[b].begin_step;
  });
  Json plan = Json::array(), checks = Json::array();
  std::vector<std::string> names;
  std::int64_t pairs = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    poll_interrupt();
    const Buffer& buffer = schedule.buffers[order[i]];
    const Offset& offset = schedule.arena_offsets[order[i]];
    const std::int64_t bytes = (buffer.size + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
    plan.push_back(place_json(
        offset.name, offset.c_type,
        fmt::format("{}, {}, {}, {}", offset.value, bytes, buffer.begin_step, buffer.end_step), offset.what));
    plan.back()["offset"] = offset.value;
    plan.back()["bytes"] = bytes;
    plan.back()["begin"] = buffer.begin_step;
    plan.back()["end"] = buffer.end_step;
    names.push_back(offset.name);
    const auto behind = order.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    pairs += std::partition_point(
                 behind, order.end(),
                 [&](std::size_t other) { return schedule.buffers[other].begin_step < buffer.end_step; }) -
             behind;
    if (pairs > kPairsPerCheck || i + 1 == order.size()) {
      checks.push_back({{"first", first}, {"last", i + 1}});
      first = i + 1;
      pairs = 0;
    }
  }
  out["plan"] = std::move(plan);
  out["plan_lines"] = wrapped(names);
  out["plan_checks"] = std::move(checks);
  out["has_plan"] = !order.empty();
}

/// Dimensions of outputs, which are others for other choices of sizes where the model drops
/// axes of one element.
void add_output_ranks(Json& out, const Program& program, const Schedule& schedule) {
  std::vector<int> ranks;
  for (const Port& port : schedule.outputs) ranks.push_back(port.type.rank());
  out["output_ranks"] = fmt::format("{}", fmt::join(ranks, ", "));
  const std::vector<Port>& first = program.schedules.front().outputs;
  bool differ = false;
  for (const Schedule& each : program.schedules) {
    differ |= !std::equal(first.begin(), first.end(), each.outputs.begin(), each.outputs.end(),
                          [](const Port& a, const Port& b) { return a.type.rank() == b.type.rank(); });
  }
  out["output_ranks_differ"] = differ;
  out["output_rank"] = differ ? "kOutputRanks[choice][output]" : "kOutputs[output].rank";
  out["output_rank_of_sizes"] = fmt::format(
      fmt::runtime(differ ? "{}_output_rank(&sizes, output)" : "{}_describe()->outputs[output].rank"),
      program.name);
  for (Json& port : out["outputs"]) {
    port["rank_of_run"] =
        differ ? fmt::format("{}_output_rank(&sizes, {})", program.name, port["index"].get<int>())
               : std::to_string(port["rank"].get<int>());
  }
}

/// What passes the checks of a run, for those who make inputs up.
void add_example(Json& entry, const Port& port) {
  entry["has_example"] = port.example.has_value();
  if (!port.example) return;
  std::vector<std::string> elements;
  for (const std::byte each : port.example->bytes())
    elements.push_back(std::to_string(std::to_integer<unsigned>(each)));
  entry["example"] = wrapped(elements, 8);
  entry["remark"] = entry["remark"].get<std::string>() + "; checked by each run";
}

/// How much of an output a run fills, where data decides.
void add_count(Json& entry, const Port& port, const std::vector<Port>& ports) {
  entry["is_counted"] = port.counted.has_value();
  if (!port.counted) return;
  entry["counted_axis"] = port.counted->axis;
  entry["count"] = port.counted->count;
  entry["remark"] = entry["remark"].get<std::string>() + filled_text(port, ports);
}

/// `first_block`: where their pointers begin among those of a run.
Json ports_json(const Program& program, const std::vector<Port>& ports, std::size_t first_block) {
  Json entries = Json::array();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    poll_interrupt();
    entries.push_back(port_json(ports[i].c_name, ports[i].model_name, ports[i].c_type, ports[i].type, i));
    entries.back()["block"] = first_block + i;
    add_example(entries.back(), ports[i]);
    add_count(entries.back(), ports[i], ports);
    entries.back()["is_placed"] = !ports[i].place.empty();
    entries.back()["place"] = ports[i].place;
    const ir::Dim bytes = ports[i].type.bytes();
    const std::string text = size_text(program, bytes);
    entries.back()["run_bytes"] =
        bytes.is_constant() ? text : fmt::format("static_cast<std::size_t>({})", text);
    // Behind the tensor where that leaves room for it in a line of 110 columns.
    entries.back()["has_long_bytes"] = !bytes.is_constant() && ports[i].c_name.size() + text.size() > 60;
  }
  return entries;
}

/// What the host reads, at any sizes, for the caller has one place for an input.
void add_host_inputs(Json& out, const Program& program) {
  std::set<int> host_inputs;
  for (const Schedule& each : program.schedules) {
    if (each.device) host_inputs.insert(each.device->host_inputs.begin(), each.device->host_inputs.end());
  }
  std::vector<std::string> named, tests;
  for (const int index : host_inputs) {
    Json& input = out["inputs"][static_cast<std::size_t>(index)];
    const bool is_checked = input["has_example"].get<bool>();
    input["remark"] = input["remark"].get<std::string>() +
                      (is_checked ? "; host memory" : "; host memory, for it chooses a branch");
    named.push_back(fmt::format("`{}`", input["c_name"].get<std::string>()));
    tests.push_back(fmt::format("input == {}", index));
  }
  out["has_host_inputs"] = !host_inputs.empty();
  out["host_inputs_text"] = fmt::format("{}", fmt::join(named, ", "));
  out["is_host_input"] = fmt::format("{}", fmt::join(tests, " || "));
}

/// How documents and comments run the model.
void add_examples(Json& out, const Schedule& schedule) {
  // The braces of an initialiser: "input3, mask".
  const auto names = [](const std::vector<Port>& ports) {
    std::string text;
    for (const Port& port : ports) text += (text.empty() ? "" : ", ") + port.c_name;
    return text;
  };
  out["example_inputs"] = names(schedule.inputs);
  out["example_outputs"] = names(schedule.outputs);
  out["first_input"] = schedule.inputs.empty() ? "" : schedule.inputs[0].c_name;
  out["first_result"] = schedule.outputs.empty() ? "" : "outputs->" + schedule.outputs[0].c_name;
  out["first_result_type"] = schedule.outputs.empty() ? "" : schedule.outputs[0].c_type;
}

void add_ports(Json& out, const Program& program, const Schedule& schedule) {
  out["inputs"] = ports_json(program, schedule.inputs, 0);
  out["outputs"] = ports_json(program, schedule.outputs, schedule.inputs.size());
  out["has_counted_outputs"] = std::any_of(out["outputs"].begin(), out["outputs"].end(),
                                           [](const Json& port) { return port["is_counted"].get<bool>(); });
  add_host_inputs(out, program);
  add_examples(out, schedule);
  const auto is_placed = [](const Port& port) { return !port.place.empty(); };
  out["has_placed"] = std::any_of(schedule.inputs.begin(), schedule.inputs.end(), is_placed) ||
                      std::any_of(schedule.outputs.begin(), schedule.outputs.end(), is_placed);
  const auto shapes = [&](const std::vector<Port>& ports) {
    std::vector<ir::Shape> each;
    for (const Port& port : ports) each.push_back(port.type.shape);
    return shapes_text(program, each);
  };
  out["input_shapes"] = shapes(schedule.inputs);
  out["output_shapes"] = shapes(schedule.outputs);
  const auto has_elements = [](const Port& port) { return ir::highest(port.type.count()) > 0; };
  out["has_port_elements"] = false;
  out["ports_without_elements"] = Json::array();
  for (const auto& [name, ports] : {std::pair("inputs", &schedule.inputs), {"outputs", &schedule.outputs}}) {
    if (std::any_of(ports->begin(), ports->end(), has_elements)) {
      out["has_port_elements"] = true;
    } else {
      out["ports_without_elements"].push_back(name);
    }
  }
  out["has_ports"] = !schedule.inputs.empty() || !schedule.outputs.empty();
  out["has_inputs"] = !schedule.inputs.empty();
  out["has_checked_inputs"] = std::any_of(schedule.inputs.begin(), schedule.inputs.end(),
                                          [](const Port& port) { return port.example.has_value(); });
  out["has_outputs"] = !schedule.outputs.empty();
  out["input_count"] = schedule.inputs.size();
  out["output_count"] = schedule.outputs.size();
  int rank = 1;
  for (const Schedule& each : program.schedules) {
    for (const Port& port : each.inputs) rank = std::max(rank, port.type.rank());
    for (const Port& port : each.outputs) rank = std::max(rank, port.type.rank());
  }
  for (const StateTensor& state : program.states) rank = std::max(rank, state.type.rank());
  out["max_rank"] = rank;
  add_output_ranks(out, program, schedule);
}

void add_statistics(Json& out, const Program& program, const Schedule& schedule) {
  const Statistics& s = schedule.statistics;
  out["statistics"] = {{"nodes_imported", s.nodes_imported},       {"nodes_optimised", s.nodes_optimised},
                       {"kernels", program.kernels.size()},        {"calls", schedule.layers.size()},
                       {"arena_lower_bound", s.arena_lower_bound}, {"bare_first_fit", s.bare_first_fit},
                       {"scratch_bytes", s.scratch_bytes},         {"multiply_adds", s.multiply_adds},
                       {"parameter_bytes", s.parameter_bytes}};
}

/// Steps that several kernel families were asked to serve: what they were asked, then who serves, and what
/// the others said; manifest and report tell it from here.
void add_choices(Json& out, const Schedule& schedule) {
  out["choices"] = Json::array();
  for (std::size_t i = 0; i < schedule.layers.size(); ++i) {
    poll_interrupt();
    const Layer& layer = schedule.layers[i];
    if (layer.rivals.empty()) continue;
    Json families = Json::array();
    for (const Rival& rival : layer.rivals) {
      Json family = {{"family", rival.family}};
      if (!rival.plan.empty()) family["plan"] = rival.plan;
      if (rival.refusal.empty()) {
        family["picoseconds"] = rival.picoseconds;
        if (rival.extra_weights > 0) family["extra_weights"] = rival.extra_weights;
      } else {
        family["refusal"] = rival.refusal;
      }
      families.push_back(std::move(family));
    }
    out["choices"].push_back({{"step", i},
                              {"kernel", layer.function},
                              {"problem", layer.problem},
                              {"families", std::move(families)}});
  }
}

/// The terms of the model of time are in microseconds (gcrt/cuda/device/time_model.h).
Json terms_json(const gcrt::KernelTime& time) {
  Json terms = Json::object();
  for (const auto& [name, microseconds] : terms_of(time))
    terms[name] = std::round(microseconds * 1000) / 1000;
  return terms;
}

/// On a device: what the model of time says of a layer, and the bytes that it moves beside those that it
/// cannot do without; with several architectures, what runs on each.
void add_terms(Json& layer, const Layer& from, const Program& program) {
  layer["predicted"] = terms_json(from.execution.time);
  for (std::size_t i = 0; i < from.executions.size(); ++i) {
    const Execution& on = from.executions[i];
    Json entry = {{"architecture", name_of(program.device->architectures[i])},
                  {"family", on.family},
                  {"choice", on.choice},
                  {"launches", on.launches},
                  {"picoseconds", picoseconds_of(on.time)},
                  {"predicted", terms_json(on.time)}};
    if (on.time.blocks > 0) entry["blocks"] = on.time.blocks;
    layer["architectures"].push_back(std::move(entry));
  }
  layer["launches"] = from.execution.launches;
  if (from.execution.time.blocks > 0) layer["blocks"] = from.execution.time.blocks;
  layer["necessary_bytes"] = from.bytes_read + from.bytes_written - from.scratch_bytes;
  layer["moved_bytes"] = from.bytes_read + from.bytes_written + from.scratch_bytes;
}

/// A number, or C++ of the sizes of a run; of a formula that cannot be written, what it is at the largest.
std::string figure_text(const Program& program, ir::Dim formula, std::int64_t at_largest) {
  const auto text = [&](ir::Dim size) { return size_text(program, size, "sizes."); };
  const ir::Dim written = figure(at_largest, [&] {
    static_cast<void>(text(formula));
    return formula;
  });
  return written.is_constant() ? text(written) : fmt::format("static_cast<double>({})", text(written));
}

/// The layers as tables of programs that time them have them: with the figures of a run.
void add_layer_rows(Json& out, const Program& program, const std::vector<RunFigures>& figures) {
  bool have_formulas = false;  // each stands in a line of its own
  Json rows = out["layers"];
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const RunFigures& of_run = figures[i];
    Json& row = rows[i];
    bool has_formulas = false;
    const auto text = [&](ir::Dim formula, const char* key) {
      has_formulas |= !formula.is_constant();
      return figure_text(program, formula, row[key].get<std::int64_t>());
    };
    const std::string texts[] = {text(of_run.multiply_adds, "multiply_adds"),
                                 row["has_bytes_text"].get<std::string>(), text(of_run.bytes, "bytes"),
                                 text(of_run.weight_bytes, "weight_bytes")};
    row["figures"] = fmt::format("{}", fmt::join(texts, has_formulas ? ",\n" : ", "));
    have_formulas |= has_formulas;
  }
  out["layer_rows"] = std::move(rows);
  out["layers_parameter"] = have_formulas ? "sizes" : "/*sizes*/";
}

/// What the calls of the schedule do, in their order, for programs that time them.
void add_layers(Json& out, const Program& program, const Schedule& schedule) {
  out["layers"] = Json::array();
  std::vector<RunFigures> figures;
  bool joins = false;  // layers that hand each other strips have one time
  for (const Layer& layer : schedule.layers) {
    poll_interrupt();
    const std::int64_t bytes = layer.bytes_read - layer.weight_bytes + layer.bytes_written;
    if (joins) {
      Json& whole = out["layers"].back();
      for (const auto& [key, text] :
           {std::pair("function", layer.function), {"family", layer.family}, {"origins", layer.origins}}) {
        whole[key] = whole[key].get<std::string>() + ", " + text;
      }
      whole["functions"].push_back(layer.function);
      for (const auto& [key, number] : {std::pair("multiply_adds", layer.multiply_adds),
                                        {"bytes", bytes},
                                        {"weight_bytes", layer.weight_bytes},
                                        {"picoseconds", layer.picoseconds}}) {
        whole[key] = whole[key].get<std::int64_t>() + number;
      }
      const auto add = [&](ir::Dim RunFigures::*part, const char* key) {
        ir::Dim& sum = figures.back().*part;
        sum = sum_of({sum, layer.figures.*part}, whole[key].get<std::int64_t>());
      };
      add(&RunFigures::multiply_adds, "multiply_adds");
      add(&RunFigures::bytes, "bytes");
      add(&RunFigures::weight_bytes, "weight_bytes");
    } else {
      figures.push_back(layer.figures);
      out["layers"].push_back({{"function", layer.function},
                               {"functions", Json::array({layer.function})},
                               {"family", layer.family},
                               {"origins", layer.origins},
                               {"multiply_adds", layer.multiply_adds},
                               {"multiplies_bytes", layer.multiplies_bytes},
                               {"bytes", bytes},
                               {"weight_bytes", layer.weight_bytes},
                               {"picoseconds", layer.picoseconds}});
      if (info_of(program.target).has_device_memory) add_terms(out["layers"].back(), layer, program);
    }
    joins = layer.hands_over_strips;
  }
  constexpr std::size_t kTextWidth = 98;  // of a string in an initialiser, within 110 columns
  for (Json& layer : out["layers"]) {
    layer["computes_lines"] = c_string_lines(layer["origins"].get<std::string>(), kTextWidth);
    layer["has_bytes_text"] = layer["multiplies_bytes"].get<bool>() ? "true" : "false";
  }
  add_layer_rows(out, program, figures);
  set_timed(out, false);
}

}  // namespace

void set_timed(Json& out, bool is_timed) {
  out["is_timed"] = is_timed;
  out["marks_parameter"] = is_timed ? "LayerMarks& marks, " : "";
  out["marks_argument"] = is_timed ? "marks, " : "";
}

namespace {

/// What the type of a pointer does not say of the elements.
std::string remark_of(ir::ElementType element) {
  if (is_computable(element)) return "";
  if (bits_of(element) == 8) return "; codes";
  return fmt::format("; {} in a byte, the first in the lowest bits", 8 / bits_of(element));
}

}  // namespace

Json port_json(const std::string& c_name, const std::string& model_name, const std::string& c_type,
               const ir::TensorType& type, std::size_t index) {
  Json port = Json::object();
  port["index"] = index;
  port["c_name"] = c_name;
  port["model_name"] = model_name;
  port["c_type"] = c_type;
  port["type"] = to_string(type);
  port["element"] = name_of(type.element);
  port["rank"] = type.rank();
  port["shape"] = shape_json(type.shape);
  port["has_shape"] = type.rank() > 0;
  // The caller has elements of less than 8 bits as bytes.
  const bool is_packed = bits_of(type.element) < 8;
  port["elements"] = ir::highest(is_packed ? type.bytes() : type.count());
  port["element_bytes"] = is_packed ? 1 : bits_of(type.element) / 8;
  port["bytes"] = ir::highest(type.bytes());
  port["has_elements"] = ir::highest(type.count()) > 0;
  port["is_packed"] = is_packed;
  port["offset"] = 0;
  port["remark"] = remark_of(type.element);
  return port;
}

std::string shapes_text(const Program& program, const std::vector<ir::Shape>& shapes) {
  std::string text;
  std::size_t line = 0;  // where it begins
  for (const ir::Shape& shape : shapes) {
    std::string dims;
    for (const ir::Dim dim : shape) dims += (dims.empty() ? "" : ", ") + size_text(program, dim);
    constexpr std::size_t kLineWidth = 60;  // behind what declares the list
    const bool is_full = text.size() - line + dims.size() > kLineWidth;
    if (is_full) line = text.size() + 1;
    text += fmt::format("{}{{{}}}", text.empty() ? "" : is_full ? ",\n      " : ", ", dims);
  }
  return text;
}

Json offset_json(const Offset& offset) {
  Json place = place_json(offset.name, offset.c_type, std::to_string(offset.value), offset.what);
  place["offset"] = offset.value;
  return place;
}

void add_schedule_tables(Json& out, const Program& program, const Schedule& schedule) {
  add_ports(out, program, schedule);
  out["has_parts"] = !schedule.parts.empty();
  out["parts"] = Json::array();
  for (const BufferPart& part : schedule.parts) {
    Json entry =
        place_json(part.name, part.c_type, fmt::format("{}.offset + {}", part.whole, part.offset), part.what);
    entry["whole"] = part.whole;
    entry["offset"] = part.offset;
    out["parts"].push_back(std::move(entry));
  }
  const DeviceSchedule device = schedule.device.value_or(DeviceSchedule{});
  out["graph_steps"] = std::max<std::int64_t>(1, device.graph_steps);
  out["has_host"] = device.host_bytes > 0;
  // Within the lists of parameters and arguments of the steps on CUDA.
  out["host_parameter"] = device.host_bytes > 0 ? ", std::byte* host" : "";
  out["host_argument"] = device.host_bytes > 0 ? ", CapturedRun<Schedule>::of(memory)->host" : "";
  out["host_bytes"] = device.host_bytes;
  out["has_host_weights"] = !device.host_weights.empty();
  out["host_weights"] = Json::array();
  for (const HostWeights& weights : device.host_weights)
    out["host_weights"].push_back({{"place", weights.place}, {"at", weights.at}, {"bytes", weights.bytes}});
  out["has_trap"] = device.trap_offset >= 0;
  out["trap_offset"] = device.trap_offset;
  out["has_counters"] = device.counters_offset >= 0;
  out["counters_offset"] = device.counters_offset;
  out["has_zeroed"] = device.zeroed_bytes > 0;
  out["zeroed_offset"] = device.zeroed_offset;
  out["zeroed_bytes"] = device.zeroed_bytes;
  out["has_steps"] = !schedule.steps.empty();
  add_plan(out, schedule);
  add_statistics(out, program, schedule);
  add_choices(out, schedule);
  add_layers(out, program, schedule);
}

}  // namespace gcompile
