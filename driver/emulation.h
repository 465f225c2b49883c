#pragma once
// What CUDA code runs on as verify uses it: the GPU here, or the emulator; how long that takes for a run, and
// which GPUs it stands for.

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "driver/options.h"

namespace gcompile {

/// Without --emulate: the code that the GPU here runs, and the emulator where there is none. Throws
/// CompileError (kUsage) where --arch has no code for it.
void choose_gpu(Options& options);

/// Seconds that the emulator takes for one run on one core.
double emulation_seconds(const Schedule& schedule);

/// GPUs that it is to stand for in the next run, by names of the program's architectures: each of those that
/// the user names, the usual ones in turn, latest first. "": the program's kernels are the same for all, or a
/// GPU runs them.
std::vector<std::string> gpus_to_emulate(const Program& program, const Options& options, std::size_t& turn);

}  // namespace gcompile
