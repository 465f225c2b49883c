#include "codegen/emit/file_set.h"

#include <algorithm>
#include <utility>

#include "base/diagnostics.h"
#include "base/sha256.h"
#include "fmt/format.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

constexpr std::size_t kMaxPathBytes = 1024;
constexpr std::size_t kMaxPartBytes = 255;

bool is_output_path_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-';
}

bool is_output_path_part(std::string_view part) {
  return !part.empty() && part.size() <= kMaxPartBytes && part != "." && part != ".." &&
         std::all_of(part.begin(), part.end(), is_output_path_character);
}

[[noreturn]] void refuse(std::string_view path, std::string_view reason) {
  throw CompileError(ExitCode::kInternal,
                     fmt::format("internal compiler error: output path '{}' {}", printable(path), reason));
}

}  // namespace

bool is_output_path(std::string_view path) {
  if (path.size() > kMaxPathBytes) return false;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    if (!is_output_path_part(path.substr(0, slash))) return false;
    path.remove_prefix(slash + 1);
  }
  return is_output_path_part(path);
}

void FileSet::add(std::string path, SharedBytes bytes, bool executable) {
  if (!is_output_path(path)) refuse(path, "is not allowed");
  if (!manifest_path_.empty()) refuse(path, "comes after the manifest");
  if (files_.count(path) > 0) refuse(path, "is taken");
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (files_.count(path.substr(0, slash)) > 0) refuse(path, "lies below a file");
  }
  const auto below = files_.lower_bound(path + "/");
  if (below != files_.end() && below->first.compare(0, path.size() + 1, path + "/") == 0) {
    refuse(path, "is a directory");
  }
  files_.emplace(std::move(path), OutputFile{std::move(bytes), executable});
}

void FileSet::add_manifest(const std::string& name, const nlohmann::ordered_json& content) {
  nlohmann::ordered_json manifest = {{"generator", "gcompile"}};
  for (const auto& [key, value] : content.items()) manifest[key] = value;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [path, file] : files_) {
    list.push_back({{"path", path}, {"bytes", file.bytes.size()}, {"sha256", sha256_hex(file.bytes)}});
  }
  manifest["files"] = std::move(list);
  std::string path = "meta/" + name + ".json";
  add(path, json_text(manifest));
  manifest_path_ = std::move(path);
}

const OutputFile* FileSet::find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace gcompile
