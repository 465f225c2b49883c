#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "codegen/emit/embedded.h"
#include "driver/command_line/option_table.h"
#include "driver/commands.h"
#include "ir/nearest_name.h"

namespace gcompile {
namespace {

/// A section of docs/errors.md: "### E0401" and what follows it.
struct Page {
  std::string code;
  std::string group;  // "Sizes of the inputs"
  std::string text;
};

std::string without_blank_lines_around(std::string text) {
  while (!text.empty() && text.front() == '\n') text.erase(text.begin());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::vector<Page> pages() {
  const EmbeddedFile* file = find_embedded_file("docs/errors.md");
  GC_CHECK(file != nullptr);
  std::vector<Page> list;
  std::string group;
  std::string_view rest = file->contents;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.compare(0, 3, "## ") == 0) {
      group = line.substr(3);
    } else if (line.compare(0, 4, "### ") == 0) {
      list.push_back({line.substr(4), group, ""});
    } else if (!list.empty()) {
      list.back().text += line + "\n";
    }
  }
  for (Page& page : list) page.text = without_blank_lines_around(page.text);
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
  const std::string nearest = ir::did_you_mean(code, known);
  usage_error(fmt::format("there is no error or warning '{}'", ir::printable(code)),
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
