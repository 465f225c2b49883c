#include "driver/publish/overwritten.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/diagnostics.h"
#include "base/sha256.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

namespace fs = std::filesystem;

/// Nobody edits a larger file by hand: those are weights.
constexpr std::uintmax_t kLargestEdited = std::uintmax_t{1} << 26;
constexpr std::size_t kMostNamed = 5;

std::optional<std::string> read_regular(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(fs::symlink_status(path, failure)) ||
      fs::file_size(path, failure) > kLargestEdited || failure)
    return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  if (!stream) return std::nullopt;
  return bytes.str();
}

/// Adds the listed files that are neither what the manifest says nor what is going to be written.
void add_edited(const nlohmann::ordered_json& manifest, const FileSet& files, const fs::path& directory,
                std::vector<std::string>& edited) {
  for (const auto& entry : manifest.value("files", nlohmann::ordered_json::array())) {
    if (!entry.is_object() || !entry.contains("path") || !entry["path"].is_string()) continue;
    const std::string path = entry["path"];
    if (!is_output_path(path) || !entry.contains("sha256")) continue;
    const std::optional<std::string> found = read_regular(directory / path);
    if (!found) continue;
    const OutputFile* const next = files.find(path);
    if (next && std::string_view(next->bytes) == *found) continue;
    if (entry["sha256"] == sha256_hex(*found)) continue;
    edited.push_back(printable(path));
  }
}

}  // namespace

std::vector<std::string> told_before_overwriting(const FileSet& files, const std::string& directory) {
  std::vector<std::string> others, edited, out;
  std::error_code failure;
  std::vector<fs::path> manifests;
  for (fs::directory_iterator at(fs::path(directory) / "meta", failure), end; !failure && at != end;
       at.increment(failure)) {
    if (at->path().extension() == ".json") manifests.push_back(at->path());
  }
  std::sort(manifests.begin(), manifests.end());
  for (const fs::path& path : manifests) {
    const std::optional<std::string> text = read_regular(path);
    if (!text) continue;
    const auto manifest = nlohmann::ordered_json::parse(*text, nullptr, false);
    if (!manifest.is_object() || manifest.value("generator", nlohmann::ordered_json()) != "gcompile")
      continue;
    if ("meta/" + path.filename().string() != files.manifest_path())
      others.push_back(printable(path.stem().string()));
    add_edited(manifest, files, directory, edited);
  }
  const std::string shown = printable(directory);
  if (!others.empty()) {
    out.push_back(
        fmt::format("'{}' held the project '{}', which this one replaces", shown, fmt::join(others, "', '")));
  }
  if (!edited.empty()) {
    const std::size_t count = edited.size();
    const std::string more = count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "";
    edited.resize(std::min(count, kMostNamed));
    out.push_back(fmt::format("edits in '{}' are overwritten: {}{}", shown, fmt::join(edited, ", "), more));
  }
  return out;
}

}  // namespace gcompile
