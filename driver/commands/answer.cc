#include "driver/commands/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/machine/version.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;

Json list_of(const std::vector<Diagnostic>& diagnostics, Severity severity) {
  Json list = Json::array();
  for (const Diagnostic& d : diagnostics) {
    if (d.severity != severity) continue;
    list.push_back({{"code", d.code},
                    {"message", d.message},
                    {"location", d.location},
                    {"details", d.details},
                    {"help", d.help}});
  }
  return list;
}

}  // namespace

std::string answer_json(const Answer& answer, const char* command,
                        const std::vector<Diagnostic>& diagnostics) {
  Json out = {{"gcompile", tool_version()},
              {"command", command},
              {"exit_code", static_cast<int>(answer.code)},
              {"errors", list_of(diagnostics, Severity::kError)},
              {"warnings", list_of(diagnostics, Severity::kWarning)}};
  out.update(answer.result);
  return json_text(out);
}

std::string summary_line(const Answer& answer, const char* command,
                         const std::vector<Diagnostic>& diagnostics) {
  const auto count = [&](Severity severity) {
    return std::count_if(diagnostics.begin(), diagnostics.end(),
                         [&](const Diagnostic& d) { return d.severity == severity; });
  };
  std::string line =
      fmt::format("summary: command={} exit_code={} errors={} warnings={}", command,
                  static_cast<int>(answer.code), count(Severity::kError), count(Severity::kWarning));
  for (const auto& [key, value] : answer.result.items()) {
    if (value.is_structured()) continue;
    line +=
        fmt::format(" {}={}", key, value.is_string() ? shell_word(value.get<std::string>()) : value.dump());
  }
  return line;
}

}  // namespace gcompile
