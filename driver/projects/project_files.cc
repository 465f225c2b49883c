#include "driver/projects/project_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "base/diagnostics.h"
#include "frontend/files/file_bytes.h"

namespace gcompile {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void refuse_project(std::string message, std::string help) {
  throw CompileError(ExitCode::kInputOutput, std::move(message), std::move(help));
}

Json json_of_file(const std::string& path, const std::string& help) {
  Json value = Json::parse(frontend::read_file(path, kMostProjectText), nullptr, false);
  if (!value.is_object()) refuse_project(fmt::format("'{}' is not what was expected", printable(path)), help);
  return value;
}

Json manifest_of(const std::string& project) {
  const std::string help = "name a folder that `gcompile MODEL -o DIR` made";
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator at(fs::path(project) / "meta", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".json") found.push_back(at->path().string());
  }
  std::sort(found.begin(), found.end());
  for (const std::string& path : found) {
    Json value = json_of_file(path, help);
    if (value.contains("name") && value["name"].is_string() && value.contains("generator")) return value;
  }
  refuse_project(fmt::format("'{}' is no project of gcompile", printable(project)), help);
}

std::vector<SchedulePart> parts_of(const Json& manifest) {
  if (!manifest.contains("schedules")) return {{"run", manifest.value("layers", Json::array())}};
  std::vector<SchedulePart> parts;
  for (const Json& schedule : manifest["schedules"]) {
    parts.push_back({schedule.value("label", ""), schedule.value("layers", Json::array())});
  }
  return parts;
}

std::vector<std::string> kernels_of(const std::vector<SchedulePart>& parts) {
  std::vector<std::string> names;
  for (const SchedulePart& part : parts) {
    for (const Json& layer : part.layers) {
      for (const Json& name : layer["functions"]) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string find_library(const std::string& place, const std::string& name) {
  std::error_code error;
  if (fs::is_regular_file(place, error)) return place;
  for (const char* suffix : {"a", "so"}) {
    const fs::path library = fs::path(place) / fmt::format("lib{}.{}", name, suffix);
    if (fs::is_regular_file(library, error)) return library.string();
  }
  return "";
}

CodeSizes code_sizes_of(const std::string& path) {
  try {
    return read_code_sizes(frontend::read_file(path, kMostProjectBytes));
  } catch (const std::invalid_argument& reason) {
    refuse_project(fmt::format("the sizes of '{}' cannot be read: {}", printable(path), reason.what()),
                   "name a library, a program or an object file of ELF");
  }
}

}  // namespace gcompile
