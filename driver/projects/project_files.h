#pragma once
// Reads what compilation left in the folder of a project.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/projects/code_sizes.h"
#include "nlohmann/json.hpp"

namespace gcompile {

/// Bytes of a page, a manifest or a table of times, at most.
constexpr std::int64_t kMostProjectText = std::int64_t{1} << 26;
/// Bytes of any other file of a project, or of a library with its weights, at most.
constexpr std::int64_t kMostProjectBytes = std::int64_t{1} << 31;

/// Throws CompileError (kInputOutput).
[[noreturn]] void refuse_project(std::string message, std::string help);

/// The object in a file of JSON. `help` is for who gives another file. Throws CompileError (kInputOutput).
nlohmann::ordered_json json_of_file(const std::string& path, const std::string& help);

/// The manifest of a project: meta/NAME.json (docs/manifest.md). Throws CompileError (kInputOutput).
nlohmann::ordered_json manifest_of(const std::string& project);

/// What a schedule is called in the page, and its layers.
struct SchedulePart {
  std::string id;
  nlohmann::ordered_json layers;
};

std::vector<SchedulePart> parts_of(const nlohmann::ordered_json& manifest);

/// Names of all kernels, sorted, each once.
std::vector<std::string> kernels_of(const std::vector<SchedulePart>& parts);

/// lib`name`.a or .so in a build folder, or the place itself where that is a file; empty: there is none.
std::string find_library(const std::string& place, const std::string& name);

/// What the code of a library, a program or an object file takes. Throws CompileError (kInputOutput).
CodeSizes code_sizes_of(const std::string& path);

}  // namespace gcompile
