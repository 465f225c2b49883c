#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/interrupt.h"
#include "codegen/program/statistics.h"
#include "codegen/report/charts.h"
#include "codegen/report/memory_map_svg.h"
#include "codegen/report/quantities.h"
#include "codegen/report/report_parts.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

std::int64_t whole_bytes(const Buffer& buffer) {
  return (buffer.size + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
}

/// The first step at which most bytes live.
std::int64_t peak_step(const std::vector<Buffer>& buffers) {
  std::map<std::int64_t, std::int64_t> change;
  for (const Buffer& buffer : buffers) {
    change[buffer.begin_step] += whole_bytes(buffer);
    change[buffer.end_step] -= whole_bytes(buffer);
  }
  std::int64_t live = 0, most = -1, at = 0;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    if (live > most) most = live, at = step;
  }
  return at;
}

}  // namespace

std::string shown_name(const Buffer& buffer) {
  return buffer.name.empty() ? fmt::format("result of step {}", buffer.begin_step) : buffer.name;
}

namespace {

Json buffer_row(const Schedule& schedule, std::size_t i, std::int64_t whole) {
  poll_interrupt();
  const Buffer& buffer = schedule.buffers[i];
  return {{"name", shown_name(buffer)},
          {"kind", buffer_kind_name(buffer.kind)},
          {"size", whole_bytes(buffer)},
          {"bytes", human_bytes(whole_bytes(buffer))},
          {"share", share_text(whole_bytes(buffer), whole)},
          {"offset", schedule.plan.offsets[i]},
          {"begin", buffer.begin_step},
          {"end", buffer.end_step - 1}};
}

}  // namespace

Json memory_part(const Schedule& schedule) {
  const std::vector<Buffer>& buffers = schedule.buffers;
  const std::int64_t step = peak_step(buffers);
  std::vector<std::size_t> order(buffers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].size > buffers[b].size; });
  std::int64_t live = 0;
  std::vector<std::size_t> at_peak;
  for (const std::size_t i : order) {
    if (buffers[i].begin_step > step || buffers[i].end_step <= step) continue;
    at_peak.push_back(i);
    live += whole_bytes(buffers[i]);
  }
  Json out = Json::object();
  out["step"] = step;
  out["live"] = human_bytes(live);
  out["has_buffers"] = !buffers.empty();
  out["peak"] = Json::array();
  for (const std::size_t i : at_peak) out["peak"].push_back(buffer_row(schedule, i, live));
  out["buffers"] = Json::array();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    out["buffers"].push_back(buffer_row(schedule, i, schedule.arena_bytes));
  }
  out["count"] = counted(static_cast<std::int64_t>(buffers.size()), "buffer");
  out["picture"] = memory_map_svg(buffers, schedule.plan);
  return out;
}

Json flash_part(const Program& program) {
  Json out = Json::object();
  std::vector<Tile> tiles;
  out["rows"] = Json::array();
  for (const Offset& weight : program.weight_offsets) {
    poll_interrupt();
    tiles.push_back({weight.what, human_bytes(weight.bytes), weight.bytes});
    out["rows"].push_back({{"constant", weight.name},
                           {"what", weight.what},
                           {"size", weight.bytes},
                           {"bytes", human_bytes(weight.bytes)},
                           {"share", share_text(weight.bytes, program.weights_bytes)},
                           {"offset", weight.value}});
  }
  std::stable_sort(out["rows"].begin(), out["rows"].end(), [](const Json& a, const Json& b) {
    return a["size"].get<std::int64_t>() > b["size"].get<std::int64_t>();
  });
  out["has_rows"] = !out["rows"].empty();
  out["total"] = human_bytes(weights_file_bytes(program));
  out["count"] = counted(static_cast<std::int64_t>(tiles.size()), "constant");
  out["picture"] = tile_map_svg("weights by tensor", std::move(tiles));
  return out;
}

namespace {

/// "launch 0.34, fill 0.72, memory 1.10".
std::string terms_text(const gcrt::KernelTime& time) {
  std::string text;
  for (const auto& [name, microseconds] : terms_of(time)) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", name, microseconds);
  }
  return text;
}

/// "16x64, fp16; 96 blocks".
std::string grid_text(const std::string& choice, const gcrt::KernelTime& time) {
  if (time.blocks == 0) return choice;
  return fmt::format("{}{}{}", choice, choice.empty() ? "" : "; ", counted(time.blocks, "block"));
}

/// CUDA: the cells of a layer; with several architectures, "sm_80, sm_90: 16x64; 96 blocks. sm_87: ...".
Json cells_of(const Program& program, const Layer& layer) {
  if (layer.executions.empty())
    return Json::array(
        {grid_text(layer.execution.choice, layer.execution.time), terms_text(layer.execution.time)});
  std::vector<std::pair<std::string, std::string>> grids;  // and who has them
  std::string terms;
  for (std::size_t i = 0; i < layer.executions.size(); ++i) {
    const Execution& on = layer.executions[i];
    const std::string gpu = name_of(program.device->architectures[i]), grid = grid_text(on.choice, on.time);
    const auto same =
        std::find_if(grids.begin(), grids.end(), [&](const auto& g) { return g.first == grid; });
    if (same == grids.end()) {
      grids.emplace_back(grid, gpu);
    } else {
      same->second += ", " + gpu;
    }
    terms += fmt::format("{}{}: {}", i ? ". " : "", gpu, terms_text(on.time));
  }
  if (grids.size() == 1) return Json::array({grids[0].first, terms});
  std::string text;
  for (const auto& [grid, gpus] : grids)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ". ", gpus, grid);
  return Json::array({text, terms});
}

}  // namespace

Json time_part(const Program& program, const Schedule& schedule) {
  const bool is_cuda = info_of(program.target).has_device_memory;
  std::int64_t total = 0;
  for (const Layer& layer : schedule.layers) total += layer.picoseconds;
  Json out = Json::object();
  out["headings"] = is_cuda ? Json::array({"grid", "predicted, in us"}) : Json::array();
  out["rows"] = Json::array();
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < schedule.layers.size(); ++i) {
    poll_interrupt();
    const Layer& layer = schedule.layers[i];
    const double microseconds = static_cast<double>(layer.picoseconds) / 1e6;
    const std::int64_t bytes = layer.bytes_read + layer.bytes_written;
    out["rows"].push_back({{"step", i},
                           {"function", layer.function},
                           {"origins", layer.origins},
                           {"launches", layer.execution.launches},
                           {"picoseconds", layer.picoseconds},
                           {"time", human_time(microseconds)},
                           {"share", share_text(layer.picoseconds, total)},
                           {"products", layer.multiply_adds},
                           {"multiply_adds", grouped(layer.multiply_adds)},
                           {"moved", bytes},
                           {"bytes", human_bytes(bytes)},
                           {"cells", is_cuda ? cells_of(program, layer) : Json::array()}});
    bars.push_back({fmt::format("step {}: {}\n{} predicted\n{}", i, layer.function, human_time(microseconds),
                                layer.origins),
                    microseconds});
  }
  out["total"] = human_time(static_cast<double>(total) / 1e6);
  out["has_rows"] = !bars.empty();
  out["picture"] = bars_svg("predicted time of every step", "predicted, step by step", bars);
  return out;
}

}  // namespace gcompile
