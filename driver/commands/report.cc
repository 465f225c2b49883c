// gcompile report: adds to a project's report what only a build or a run of it tells.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "codegen/emit/emit.h"
#include "codegen/report/charts.h"
#include "codegen/report/quantities.h"
#include "codegen/report/report_parts.h"
#include "driver/command_line/option_table.h"
#include "driver/commands/commands.h"
#include "driver/machine/local_files.h"
#include "driver/projects/project_files.h"
#include "frontend/files/file_bytes.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Puts a part of the page where its template left a place for it.
void insert(std::string& page, const std::string& mark, const std::string& part) {
  const std::size_t at = page.find(mark);
  if (at == std::string::npos) {
    refuse_project("report.html is not the one that this gcompile wrote",
                   "compile the model again with this gcompile");
  }
  page.insert(at + mark.size(), "\n" + part);
}

/// Whether a timed layer is that layer of the schedule; layers that hand each other strips have one time.
bool fits(const Json& timed, const Json& layers) {
  return std::all_of(timed.begin(), timed.end(), [&](const Json& layer) {
    const std::size_t i = layer.value("layer", ~std::size_t{0});
    return i < layers.size() && layers[i]["function"] == layer.value("kernel", "");
  });
}

/// How the least measured time of a layer compares to the predicted one: "1.3 x".
std::string factor(double measured, double predicted) {
  return predicted > 0 ? fmt::format("{:.2g} x", measured / predicted) : "";
}

Json measured_rows(const Json& times, const SchedulePart& part, double sum, std::vector<Bar>& bars) {
  Json rows = Json::array();
  for (const Json& timed : times["layers"]) {
    const Json& layer = part.layers[timed["layer"].get<std::size_t>()];
    const double predicted = layer["picoseconds"].get<double>() / 1e6;
    const double least = timed.value("min_ms", 0.0) * 1000, bound = timed.value("bound_ms", 0.0) * 1000;
    rows.push_back(
        {{"layer", timed["layer"]},
         {"function", layer["function"]},
         {"origins", layer["origins"]},
         {"nanoseconds", static_cast<std::int64_t>(least * 1000)},
         {"time", human_time(least)},
         {"share", share_text(static_cast<std::int64_t>(least * 1000), static_cast<std::int64_t>(sum * 1e6))},
         {"predicted", human_time(predicted)},
         {"picoseconds", layer["picoseconds"]},
         {"factor", factor(least, predicted)},
         {"permille", predicted > 0 ? static_cast<std::int64_t>(1000 * least / predicted) : 0},
         {"bound", bound > 0 ? human_time(bound) : ""},
         {"bound_picoseconds", static_cast<std::int64_t>(bound * 1e6)}});
    bars.push_back(
        {fmt::format("layer {}: {}\n{} measured, {} predicted\n{}", timed["layer"].get<std::size_t>(),
                     layer["function"].get<std::string>(), human_time(least), human_time(predicted),
                     layer["origins"].get<std::string>()),
         least, predicted});
  }
  return rows;
}

/// The times of NAME_bench --layers --json, beside the predicted ones.
void add_times(std::string& page, const std::vector<SchedulePart>& parts, const std::string& path) {
  const std::string help = "give the output of NAME_bench --layers --json of this project";
  const Json times = json_of_file(path, help);
  const bool has_layers = times.contains("layers") && times["layers"].is_array() && !times["layers"].empty();
  const auto part = std::find_if(parts.begin(), parts.end(), [&](const SchedulePart& candidate) {
    return has_layers && fits(times["layers"], candidate.layers);
  });
  if (part == parts.end()) {
    refuse_project(fmt::format("'{}' has no times of this project's layers", printable(path)), help);
  }
  const double run = times.value("run_min_ms", 0.0), sum = times.value("layers_min_ms", 0.0);
  std::vector<Bar> bars;
  Json data = Json::object();
  data["rows"] = measured_rows(times, *part, sum, bars);
  data["run"] = human_time(run * 1000);
  data["sum"] = human_time(sum * 1000);
  data["has_bound"] = times.contains("bound_ms");  // of a device there are predictions instead
  data["bound"] = human_time(times.value("bound_ms", 0.0) * 1000);
  data["predicted"] = human_time(times.value("predicted_ms", 0.0) * 1000);
  data["event"] = human_time(times.value("event_ms", 0.0) * 1000);
  data["threads"] = counted(times.value("threads", 1), "thread");
  data["repeat"] = counted(times.value("repeat", 1), "run");
  data["picture"] =
      bars_svg("measured time of every layer", "bars: measured, least of all runs; lines: predicted", bars);
  insert(page, fmt::format("<!-- gcompile: times of {} -->", part->id),
         render_template("report/times.j2", data));
}

/// The library in a build folder, or the file itself.
std::string library_in(const std::string& place, const std::string& name) {
  std::string found = find_library(place, name);
  if (!found.empty()) return found;
  refuse_project(
      fmt::format("there is no lib{}.a in '{}'", name, printable(place)),
      "name the folder in which the project was built, or the library, program or object file itself");
}

/// The first word of a demangled name that is the name of a kernel.
std::string kernel_in(const std::string& symbol, const std::vector<std::string>& kernels) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = 0; at < symbol.size();) {
    std::size_t end = at;
    while (end < symbol.size() && is_word(symbol[end])) ++end;
    const std::string word = symbol.substr(at, end - at);
    if (std::binary_search(kernels.begin(), kernels.end(), word)) return word;
    at = std::max(end, at + 1);
  }
  return "";
}

/// "void gcrt::k::conv<A, B>(int)" -> "gcrt::k::conv": what several kernels share.
std::string without_arguments(const std::string& symbol) {
  const std::string name =
      symbol.substr(0, symbol.find_first_of("<(", symbol.find("(anonymous") == 0 ? 1 : 0));
  const std::size_t blank = name.rfind(' ');
  return blank == std::string::npos ? name : name.substr(blank + 1);
}

struct CodeOfName {
  std::string name;
  std::int64_t bytes = 0, functions = 0;
  bool is_kernel = false;
};

std::vector<CodeOfName> code_by_name(const CodeSizes& sizes, const std::vector<SchedulePart>& parts) {
  const std::vector<std::string> kernels = kernels_of(parts);
  std::map<std::string, CodeOfName> sums;
  for (const CodeSymbol& symbol : sizes.symbols) {
    if (!symbol.is_function) continue;
    const std::string kernel = kernel_in(symbol.name, kernels);
    const std::string name = kernel.empty() ? without_arguments(symbol.name) : kernel;
    CodeOfName& sum = sums[name];
    sum.name = name;
    sum.is_kernel = !kernel.empty();
    sum.bytes += symbol.bytes;
    ++sum.functions;
  }
  std::vector<CodeOfName> rows;
  for (const auto& [name, sum] : sums) rows.push_back(sum);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CodeOfName& a, const CodeOfName& b) { return a.bytes > b.bytes; });
  return rows;
}

void add_code(std::string& page, const Json& manifest, const std::vector<SchedulePart>& parts,
              const std::string& place) {
  const CodeSizes sizes = code_sizes_of(library_in(place, manifest["name"]));
  std::int64_t weights = 0;
  for (const CodeSymbol& symbol : sizes.symbols) {
    if (!symbol.is_function && symbol.name == manifest["name"].get<std::string>() + "_weights_data")
      weights += symbol.bytes;
  }
  std::vector<Tile> tiles;
  Json data = Json::object();
  data["rows"] = Json::array();
  for (const CodeOfName& row : code_by_name(sizes, parts)) {
    data["rows"].push_back({{"name", row.name},
                            {"what", row.is_kernel ? "kernel" : "shared, or not a kernel"},
                            {"size", row.bytes},
                            {"bytes", human_bytes(row.bytes)},
                            {"share", share_text(row.bytes, sizes.code)},
                            {"functions", row.functions}});
    const std::size_t last = row.name.rfind("::");
    tiles.push_back({last == std::string::npos ? row.name : row.name.substr(last + 2), human_bytes(row.bytes),
                     row.bytes});
  }
  data["code"] = human_bytes(sizes.code);
  data["device"] = human_bytes(sizes.device);
  data["has_device"] = sizes.device > 0;
  data["constants"] = human_bytes(sizes.constants - weights - sizes.device);
  data["variables"] = human_bytes(sizes.variables);
  data["zeros"] = human_bytes(sizes.zeros);
  data["picture"] = tile_map_svg("code by function", std::move(tiles));
  // The code of all schedules together stands at the first.
  insert(page, fmt::format("<!-- gcompile: code of {} -->", parts.front().id),
         render_template("report/code.j2", data));
}

}  // namespace

Answer run_report(const Options& options) {
  const std::string& project = options.operands.front();
  const Json manifest = manifest_of(project);
  std::string page = frontend::read_file((fs::path(project) / "report.html").string(), kMostProjectText);
  std::string read = project;  // whose members are looked at
  try {
    const std::vector<SchedulePart> parts = parts_of(manifest);
    read = options.layer_times;
    if (!options.layer_times.empty()) add_times(page, parts, options.layer_times);
    read = project;
    if (!options.sizes_from.empty()) add_code(page, manifest, parts, options.sizes_from);
  } catch (const Json::exception&) {
    refuse_project(fmt::format("'{}' is not what was expected: a member is of another kind", printable(read)),
                   "give what gcompile, and NAME_bench --layers --json, have written");
  }
  write_local_file(options.output, page);
  Answer answer;
  answer.result["name"] = manifest["name"];
  answer.result["output"] = options.output;
  return answer;
}

}  // namespace gcompile
