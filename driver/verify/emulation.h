#pragma once
// What CUDA code runs on as verify uses it: the GPU here, or the emulator; how long that takes for a run, and
// which GPUs it stands for.

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "codegen/program/program.h"
#include "driver/command_line/options.h"
#include "driver/machine/process.h"
#include "driver/machine/terminal.h"

namespace gcompile {

/// Without --emulate: the code that the GPU here runs, and the emulator where there is none. Throws
/// CompileError (kUsage) where --arch has no code for it.
void choose_gpu(Options& options);

/// Says that no GPU runs the kernels, and how long a run takes then. Throws CompileError (kUsage) where that is
/// long and nobody has asked for it.
std::string emulation_notice(const Program& program, bool is_asked_for);

/// GPUs that it is to stand for in the next run, by names of the program's architectures: each of those that
/// the user names, the usual ones in turn, latest first. "": what runs is the same for all, or a GPU runs it.
std::vector<std::string> gpus_to_emulate(const Program& program, const Options& options, std::size_t& turn);

/// The program of a project; where the emulator is to stand for them, one for sm_75 and one for later GPUs.
class Runners {
 public:
  /// Builds them in `folder`, as build_runner() does, or takes --runner.
  Runners(const FileSet& files, const Program& program, const std::string& folder, const Options& options,
          Terminal& terminal);
  /// What starts the one for a GPU of gpus_to_emulate().
  CommandLine command_as(const std::string& gpu) const;

 private:
  std::string usual_;
  std::string of_sm_75_;
  std::string weights_;  // the file that the program reads; empty where they are linked in
};

}  // namespace gcompile
