#include <fmt/format.h>

#include <cstdio>

#include "driver/commands.h"
#include "ir/operator.h"
#include "template/text.h"

namespace gcompile {

int run_ops(const Options& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ir::Operator* op : ir::all_operators()) {
    if (op->domain == "gcompile") continue;  // internal: no model can name it
    list.push_back({{"name", op->name},
                    {"domain", op->domain.empty() ? "ai.onnx" : op->domain},
                    {"versions", op->versions},
                    {"summary", op->summary}});
  }
  if (options.json) {
    std::fputs(json_text(list).c_str(), stdout);
    return static_cast<int>(ir::ExitCode::kOk);
  }
  for (const nlohmann::ordered_json& op : list) {
    std::string versions;
    for (const auto& version : op["versions"]) versions += (versions.empty() ? "" : ", ") + version.dump();
    const std::string domain = op["domain"] == "ai.onnx" ? "" : op["domain"].get<std::string>() + ".";
    std::puts(fmt::format("{:<32} {:<20} {}", domain + op["name"].get<std::string>(), versions,
                          op["summary"].get<std::string>())
                  .c_str());
  }
  std::puts(fmt::format("{} operators", list.size()).c_str());
  return static_cast<int>(ir::ExitCode::kOk);
}

}  // namespace gcompile
