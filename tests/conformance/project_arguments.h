#pragma once
// Options that every program over a CaseProject takes.

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

#include "tests/conformance/case_project.h"

namespace gcompile::conformance {

inline void add_project_arguments(CLI::App& app, ProjectOptions& project) {
  app.add_option("--build", project.folder, "Folder for the emitted code; emptied")->required();
  app.add_option("--cxx", project.compiler, "Compiler")->default_val("c++");
  app.add_option("--cxxflags", project.flags, "Its further flags");
  app.add_flag_callback(
      "--cuda", [&project] { project.target = Target::kCuda; }, "Emits for CUDA, and runs on the emulator");
  app.add_option("--jobs", project.jobs, "Compiler processes");
}

/// GCOMPILE_LONG_TESTS=1: all cases, and every check of each.
inline bool is_long_test() {
  const char* const value = std::getenv("GCOMPILE_LONG_TESTS");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace gcompile::conformance
