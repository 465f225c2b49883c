#pragma once

#include <string>

#include "codegen/emit/file_set.h"
#include "driver/command_line/options.h"
#include "driver/machine/terminal.h"

namespace gcompile {

/// Writes a project to `folder` and builds its runner with one compiler call for each source, with the flags
/// of its CMakeLists.txt but -O2. The compiler is --cxx, else $CXX (which may hold words, "ccache g++"), else
/// c++; with --target cuda nvcc, or with --emulate the same over an emulator, for `options.gpu_code`. Returns
/// the path of the runner. Throws CompileError: kInternal when emitted code does not compile.
std::string build_runner(const FileSet& files, const std::string& name, const std::string& folder,
                         const Options& options, Terminal& terminal);

}  // namespace gcompile
