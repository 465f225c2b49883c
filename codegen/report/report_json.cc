#include "codegen/report/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/interrupt.h"
#include "codegen/program/statistics.h"
#include "codegen/report/quantities.h"
#include "codegen/report/report_parts.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// A name inside inline code of Markdown; what Markdown or HTML would read as markup becomes a character
/// reference. A `_` between letters and digits is none.
std::string markdown_escape(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::string text;
  const std::string plain = comment_escape(name);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    const bool joins_words = c == '_' && i > 0 && i + 1 < plain.size() && is_alphanumeric(plain[i - 1]) &&
                             is_alphanumeric(plain[i + 1]);
    if (!joins_words && std::string_view("`|[]()<>&_!#~$\"").find(c) != std::string_view::npos) {
      text += fmt::format("&#{};", static_cast<int>(c));
    } else {
      text += c;
    }
  }
  return text;
}

Json ports(const std::vector<Port>& list) {
  Json out = Json::array();
  for (const Port& port : list) {
    poll_interrupt();
    out.push_back({{"c_name", port.c_name},
                   {"c_type", port.c_type},
                   {"model_name", markdown_escape(port.model_name)},
                   {"type", to_string(port.type)},
                   {"filled", filled_text(port, list)}});
  }
  return out;
}

/// "12.3 us".
std::string time_of(std::int64_t picoseconds) {
  return fmt::format("{:.3g} us", static_cast<double>(picoseconds) / 1e6);
}

/// "conv.direct (tile 3): 1.2 us", or why it does not serve.
std::string text_of(const Json& family) {
  std::string text = family["family"];
  if (family.contains("plan")) text += fmt::format(" ({})", family["plan"].get<std::string>());
  if (family.contains("refusal")) return text + ": " + family["refusal"].get<std::string>();
  text += ": " + time_of(family["picoseconds"]);
  if (!family.contains("extra_weights")) return text;
  return text + fmt::format(", weights {} larger", human_bytes(family["extra_weights"]));
}

/// The choices of kernels as rows: who serves, and what the others said.
Json choice_rows(const Json& choices) {
  Json out = Json::array();
  for (const Json& choice : choices) {
    const Json& families = choice["families"];
    std::string others;
    for (std::size_t i = 1; i < families.size(); ++i) {
      others += (others.empty() ? "" : "; ") + text_of(families[i]);
    }
    const Json& taken = families.front();
    out.push_back({{"step", choice["step"]},
                   {"problem", choice["problem"]},
                   {"family", taken["family"]},
                   {"plan", taken.value("plan", "")},
                   {"time", time_of(taken["picoseconds"])},
                   {"picoseconds", taken["picoseconds"]},
                   {"others", others}});
  }
  return out;
}

/// Work by family of kernels, the largest first.
Json families(const Schedule& schedule) {
  struct Sum {
    std::string family;
    std::int64_t calls = 0, multiply_adds = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const Layer& layer : schedule.layers) {
    poll_interrupt();
    Sum& sum = sums[layer.family];
    sum.family = layer.family;
    ++sum.calls;
    sum.multiply_adds += layer.multiply_adds;
    sum.bytes += layer.bytes_read + layer.bytes_written;
  }
  std::vector<Sum> order;
  for (const auto& [name, sum] : sums) order.push_back(sum);
  std::stable_sort(order.begin(), order.end(), [](const Sum& a, const Sum& b) {
    return a.multiply_adds != b.multiply_adds ? a.multiply_adds > b.multiply_adds : a.bytes > b.bytes;
  });
  Json out = Json::array();
  for (const Sum& sum : order) {
    out.push_back({{"family", sum.family},
                   {"calls", grouped(sum.calls)},
                   {"multiply_adds", grouped(sum.multiply_adds)},
                   {"share", share_text(sum.multiply_adds, schedule.statistics.multiply_adds)},
                   {"bytes", human_bytes(sum.bytes)},
                   {"products", sum.multiply_adds},
                   {"moved", sum.bytes}});
  }
  return out;
}

}  // namespace

std::string share_text(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "";
  const std::int64_t thousandths = (part * 1000 + whole / 2) / whole;
  return fmt::format("{}.{} %", thousandths / 10, thousandths % 10);
}

void add_report(Json& out, const Program& program, const Schedule& schedule) {
  const Statistics& s = schedule.statistics;
  Json report = Json::object();
  report["id"] = program.sizes.empty() ? "run" : out["label"];
  report["inputs"] = ports(schedule.inputs);
  report["outputs"] = ports(schedule.outputs);
  report["states"] = Json::array();
  for (const StateTensor& state : program.states) {
    report["states"].push_back({{"c_name", state.c_name},
                                {"model_name", markdown_escape(state.input_name)},
                                {"output_name", markdown_escape(state.output_name)},
                                {"type", to_string(state.type)}});
  }
  report["memory"] = memory_part(schedule);
  report["flash"] = flash_part(program);
  report["time"] = time_part(program, schedule);
  report["graph"] = graph_part(schedule);
  report["rewrites"] = rewrites_part(schedule);
  report["choices"] = choice_rows(out["choices"]);
  report["has_choices"] = !report["choices"].empty();
  report["families"] = families(schedule);
  report["packed_weights"] = Json::array();
  for (const ir::PackedWeight& weight : program.packed_weights) {
    report["packed_weights"].push_back(
        {{"name", weight.name},
         {"shape", fmt::format("{} x {}", weight.rows, weight.columns)},
         {"bytes", human_bytes(weight.bytes)},
         {"relative_error", fmt::format("{:.2e}", weight.relative_error)},
         {"largest_difference", fmt::format("{:.2e}", weight.largest_difference)}});
  }
  report["has_packed_weights"] = !program.packed_weights.empty();
  report["nodes_imported"] = grouped(s.nodes_imported);
  report["nodes_optimised"] = grouped(s.nodes_optimised);
  report["kernels"] = grouped(static_cast<std::int64_t>(program.kernels.size()));
  report["calls"] = grouped(static_cast<std::int64_t>(schedule.layers.size()));
  report["multiply_adds"] = grouped(s.multiply_adds);
  report["arena"] = human_bytes(schedule.arena_bytes);
  report["arena_of_bound"] = share_text(schedule.arena_bytes, s.arena_lower_bound);
  report["lower_bound"] = human_bytes(s.arena_lower_bound);
  report["bare_first_fit"] = human_bytes(s.bare_first_fit);
  report["scratch"] = human_bytes(s.scratch_bytes);
  report["weights"] = human_bytes(weights_file_bytes(program));
  report["state"] = human_bytes(program.state_bytes);
  report["buffers"] = grouped(static_cast<std::int64_t>(schedule.buffers.size()));
  report["plan_order"] = schedule.plan.order_used +
                         (schedule.plan.proven_optimal ? "; no plan for this schedule is smaller" : "");
  out["report"] = std::move(report);
}

}  // namespace gcompile
