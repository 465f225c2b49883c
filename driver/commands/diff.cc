// gcompile diff: how two projects differ, and whether figures grew by more than they may.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/nearest_name.h"
#include "codegen/report/quantities.h"
#include "driver/command_line/option_table.h"
#include "driver/commands/commands.h"
#include "driver/projects/project_diff.h"

namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPicosecondsOfMicrosecond = 1e6;

bool is_time(const DiffFigure& figure) { return std::string_view(figure.unit) == "picoseconds"; }

std::string amount_text(const DiffFigure& figure, std::optional<std::int64_t> amount) {
  if (!amount) return "not built";
  if (is_time(figure))
    return fmt::format("{:.2f} us", static_cast<double>(*amount) / kPicosecondsOfMicrosecond);
  return grouped(*amount);
}

/// "+3.1 %"; empty where there is nothing to compare with.
std::string percent_text(const DiffFigure& figure) {
  if (!figure.is_known() || figure.change() == 0 || *figure.before == 0) return "";
  return fmt::format("{:+.1f} %",
                     100.0 * static_cast<double>(figure.change()) / static_cast<double>(*figure.before));
}

std::string change_text(const DiffFigure& figure) {
  if (!figure.is_known() || figure.change() == 0) return "";
  const std::string amount = amount_text(figure, std::abs(figure.change()));
  return (figure.change() < 0 ? "-" : "+") + amount;
}

void print_figures(const ProjectDiff& diff) {
  std::puts(fmt::format("{:<14}{:>16}{:>16}{:>16}{:>10}", "", "before", "after", "change", "").c_str());
  for (const DiffFigure& figure : diff.figures) {
    const std::string line =
        fmt::format("{:<14}{:>16}{:>16}{:>16}{:>10}", figure.name, amount_text(figure, figure.before),
                    amount_text(figure, figure.after), change_text(figure), percent_text(figure));
    std::puts(line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

std::string text_of(const Json& call, const char* member) { return call.value(member, std::string()); }

/// "step 12 conv3x3_64_relu (conv.direct, 12.30 us): Conv 'c1', Relu 'r1'".
std::string call_text(const Json& call) {
  return fmt::format("step {} {} ({}, {:.2f} us): {}", call["step"].get<std::int64_t>(),
                     text_of(call, "function"), text_of(call, "family"),
                     call.value("picoseconds", 0.0) / kPicosecondsOfMicrosecond, text_of(call, "origins"));
}

/// What is another thing in a call of the same name.
std::string plan_text(const Json& before, const Json& after) {
  std::vector<std::string> changes;
  for (const char* member : kPlanMembers) {
    const Json a = before.value(member, Json()), b = after.value(member, Json());
    if (a == b) continue;
    if (std::string_view(member) == "picoseconds") {
      changes.push_back(fmt::format("{:.2f} -> {:.2f} us",
                                    before.value(member, 0.0) / kPicosecondsOfMicrosecond,
                                    after.value(member, 0.0) / kPicosecondsOfMicrosecond));
    } else if (a.is_string() && b.is_string()) {
      changes.push_back(fmt::format("{} -> {}", a.get<std::string>(), b.get<std::string>()));
    } else {
      changes.push_back(fmt::format(
          "{} {} -> {}", std::string_view(member) == "bytes" ? "bytes" : "bytes of weights",
          grouped(before.value(member, std::int64_t{0})), grouped(after.value(member, std::int64_t{0}))));
    }
  }
  return fmt::format("{}", fmt::join(changes, "; "));
}

const char* kind_of(const DiffCall& call) {
  return call.before.is_null() ? "added" : call.after.is_null() ? "removed" : "changed";
}

void print_calls(const ProjectDiff& diff) {
  if (diff.calls.empty()) return;
  std::string schedule = "run";
  std::puts("\ncalls");
  for (const DiffCall& call : diff.calls) {
    if (call.schedule != schedule) std::puts(fmt::format("{}:", call.schedule).c_str());
    schedule = call.schedule;
    const Json& shown = call.after.is_null() ? call.before : call.after;
    std::string line;
    if (call.before.is_null() || call.after.is_null()) {
      line = fmt::format("  {} {}", call.before.is_null() ? '+' : '-', call_text(shown));
    } else {
      line = fmt::format("  ~ step {} -> {} {} ({}): {}", call.before["step"].get<std::int64_t>(),
                         call.after["step"].get<std::int64_t>(), text_of(shown, "function"),
                         plan_text(call.before, call.after), text_of(shown, "origins"));
    }
    std::puts(line.c_str());
  }
}

void print_files(const ProjectDiff& diff) {
  if (diff.files.empty()) return;
  std::puts("\nfiles");
  for (const DiffFile& file : diff.files) {
    const std::string lines =
        file.removed + file.added == 0 ? "other bytes" : fmt::format("-{} +{}", file.removed, file.added);
    std::puts(fmt::format("  {:<40} {}", file.path, lines).c_str());
  }
}

struct Excess {
  std::string figure;
  double growth = 0, most = 0;  // in the unit, or in percent
  bool is_percent = false;
};

/// The growth of a figure as its limit counts it.
double growth_of(const DiffFigure& figure, bool is_percent) {
  const auto change = static_cast<double>(figure.change());
  if (!is_percent) return is_time(figure) ? change / kPicosecondsOfMicrosecond : change;
  if (figure.change() <= 0) return 0;
  return *figure.before == 0 ? HUGE_VAL : 100 * change / static_cast<double>(*figure.before);
}

std::vector<Excess> excesses(const ProjectDiff& diff, const std::vector<MostGrowth>& limits) {
  std::vector<Excess> out;
  for (const MostGrowth& limit : limits) {
    const auto figure =
        std::find_if(diff.figures.begin(), diff.figures.end(),
                     [&](const DiffFigure& candidate) { return candidate.name == limit.figure; });
    if (!figure->is_known()) {
      usage_error(fmt::format("--max-regression {}: a project was not built", limit.figure),
                  "build both in their folders, `cmake -S DIR -B DIR/build && cmake --build DIR/build`");
    }
    const double growth = growth_of(*figure, limit.is_percent);
    if (growth > limit.amount) out.push_back({limit.figure, growth, limit.amount, limit.is_percent});
  }
  return out;
}

void expect_figures(const std::vector<MostGrowth>& limits) {
  const std::vector<std::string> known = diff_figure_names();
  for (const MostGrowth& limit : limits) {
    if (std::find(known.begin(), known.end(), limit.figure) != known.end()) continue;
    const std::string nearest = did_you_mean(limit.figure, known);
    usage_error(fmt::format("--max-regression: there is no figure '{}'", printable(limit.figure)),
                nearest.empty() ? fmt::format("there are {}", fmt::join(known, ", ")) : nearest);
  }
}

Diagnostic diagnostic_of(const Excess& excess) {
  const std::string unit = excess.is_percent ? " %" : excess.figure == "time" ? " us" : "";
  Diagnostic out;
  out.message = fmt::format("{} grows by {:.6g}{}, of {:.6g}{} at most", excess.figure, excess.growth, unit,
                            excess.most, unit);
  out.help =
      "the calls that `gcompile diff` lists say where; where it is meant, let --max-regression allow it";
  return out;
}

Json diff_json(const ProjectDiff& diff, const std::vector<Excess>& grown) {
  Json out = Json::object();
  out["figures"] = out["calls"] = out["files"] = out["exceeded"] = Json::array();
  for (const DiffFigure& figure : diff.figures) {
    out["figures"].push_back({{"name", figure.name},
                              {"unit", figure.unit},
                              {"before", figure.before ? Json(*figure.before) : Json()},
                              {"after", figure.after ? Json(*figure.after) : Json()}});
  }
  for (const DiffCall& call : diff.calls) {
    out["calls"].push_back({{"schedule", call.schedule},
                            {"change", kind_of(call)},
                            {"before", call.before},
                            {"after", call.after}});
  }
  for (const DiffFile& file : diff.files)
    out["files"].push_back({{"path", file.path}, {"removed", file.removed}, {"added", file.added}});
  for (const Excess& excess : grown) {
    out["exceeded"].push_back({{"figure", excess.figure},
                               {"growth", std::isfinite(excess.growth) ? Json(excess.growth) : Json()},
                               {"most", excess.most},
                               {"is_percent", excess.is_percent}});
  }
  return out;
}

}  // namespace

Answer run_diff(const Options& options, Terminal& terminal) {
  expect_figures(options.max_regression);
  const ProjectDiff diff = diff_projects(options.operands[0], options.operands[1]);
  const std::vector<Excess> grown = excesses(diff, options.max_regression);
  Answer answer;
  answer.code = grown.empty() ? ExitCode::kOk : ExitCode::kMismatch;
  for (const Excess& excess : grown) terminal.diagnostic(diagnostic_of(excess));
  if (options.json) {
    answer.result = diff_json(diff, grown);
    return answer;
  }
  print_figures(diff);
  print_calls(diff);
  print_files(diff);
  return answer;
}

}  // namespace gcompile
