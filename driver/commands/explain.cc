#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/nearest_name.h"
#include "codegen/emit/embedded.h"
#include "driver/command_line/option_table.h"
#include "driver/commands/commands.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

/// docs/errors/E0401.md: its title is "E0401: Sizes of the inputs".
struct Page {
  std::string code, group, text;
};

std::vector<Page> pages() {
  constexpr std::string_view kFolder = "docs/errors/", kSuffix = ".md", kTitle = "# ", kColon = ": ";
  std::vector<Page> list;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.substr(0, kFolder.size()) != kFolder) continue;
    const std::string_view name = file.path.substr(kFolder.size());
    const std::string code(name.substr(0, name.size() - kSuffix.size()));
    const std::size_t end = file.contents.find('\n');
    const std::size_t group = kTitle.size() + code.size() + kColon.size();
    GC_CHECK(end != std::string_view::npos && end > group);
    std::string text(file.contents.substr(end + 2));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    list.push_back({code, std::string(file.contents.substr(group, end - group)), std::move(text)});
  }
  return list;
}

const Page& page_of(const std::vector<Page>& list, std::string code) {
  std::transform(code.begin(), code.end(), code.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::vector<std::string> known;
  for (const Page& page : list) {
    if (page.code == code) return page;
    known.push_back(page.code);
  }
  const std::string nearest = did_you_mean(code, known);
  usage_error(fmt::format("there is no error or warning '{}'", printable(code)),
              nearest.empty() ? "docs/errors.md lists them" : nearest);
}

}  // namespace

Answer run_explain(const Options& options) {
  const std::vector<Page> list = pages();
  Answer answer;
  answer.result["codes"] = nlohmann::ordered_json::array();
  for (const std::string& code : options.operands) {
    const Page& page = page_of(list, code);
    answer.result["codes"].push_back({{"code", page.code}, {"group", page.group}, {"text", page.text}});
    if (options.json) continue;
    const bool is_first = answer.result["codes"].size() == 1;
    std::puts(fmt::format("{}{}: {}\n\n{}", is_first ? "" : "\n", page.code, page.group, page.text).c_str());
  }
  return answer;
}

}  // namespace gcompile
