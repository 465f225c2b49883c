#include "codegen/emit/file_marks.h"

#include <fmt/format.h>

#include <cctype>
#include <map>

#include "base/sha256.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

std::string capitals(std::string text) {
  for (char& c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    c = std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return text;
}

namespace {

/// NET_MARK_OF_SRC_KERNELS of src/net_kernels.cpp.
std::string mark_name(const std::string& model, const std::string& path) {
  if (is_interface(path)) return capitals(model) + "_INTERFACE_MARK";
  const std::string stem = path.substr(0, path.rfind('.'));
  return fmt::format("{}_MARK_OF_{}", capitals(model), capitals(replace_all(stem, "/" + model, "")));
}

}  // namespace

bool is_interface(const std::string& path) { return path.starts_with("include/"); }

Json mark_texts(const std::string& model, std::vector<PathAndText>& texts, const std::string& runtime) {
  std::map<std::string, std::string> marked;  // by the name of the digest: what that is the digest of
  const auto is_marked = [](const std::string& text) { return text.find(kMarkStandIn) != std::string::npos; };
  for (const auto& [path, text] : texts) {
    if (!is_marked(text)) continue;
    std::string& lines = marked[mark_name(model, path)];
    lines += fmt::format("{}  {}\n", sha256_hex(text), path);
    if (path == fmt::format("src/{}_internal.h", model)) lines += runtime;
  }
  for (auto& [path, text] : texts) {
    if (!is_marked(text)) continue;
    const std::string name = mark_name(model, path);
    const std::string digest = fmt::format("0x{}", sha256_hex(marked.at(name)).substr(0, 8));
    text = replace_all(replace_all(std::move(text), kMarkNameStandIn, name), kMarkStandIn, digest);
  }
  Json out = {{"marks", Json::array()}};
  for (const auto& [name, lines] : marked) {
    const Json mark = {{"name", name}, {"digest", fmt::format("0x{}", sha256_hex(lines).substr(0, 8))}};
    if (name == mark_name(model, "include/")) {
      out["interface"] = mark;
    } else {
      out["marks"].push_back(mark);
    }
  }
  return out;
}

}  // namespace gcompile
