#include "driver/verify/emulation.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/diagnostics.h"
#include "driver/machine/cuda_arch.h"
#include "driver/machine/gpu.h"
#include "driver/machine/local_files.h"
#include "driver/verify/build_project.h"

namespace gcompile {

namespace {

/// The oldest there is, whose code is another one whatever the kernels.
bool has_sm_75(const Program& program) {
  return program.device && program.device->architectures.front().capability == 75;
}

/// What a project is handed over; returns its path.
std::string write_weights(const FileSet& files, const std::string& folder) {
  for (const auto& [path, file] : files.files()) {
    if (path.rfind("data/", 0) != 0 || path.find(".weights.bin") == std::string::npos) continue;
    write_text_file(folder, "weights.bin", file.bytes);
    return folder + "/weights.bin";
  }
  return "";
}

/// Without a GPU, a run that takes longer must be asked for by --emulate.
constexpr double kLongEmulation = 600;

std::string duration_text(double seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 120) return fmt::format("about {:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("about {:.0f} minutes", seconds / 60);
  return fmt::format("about {:.0f} hours", seconds / 3600);
}

/// That the emulator takes for one run on one core.
double emulation_seconds(const Schedule& schedule) {
  // Multiply-adds and bytes per second as measured on x86-64 at 2 to 3 GHz.
  constexpr double kMultiplyAdds = 2e8, kBytes = 1e8;
  double bytes = 0;
  for (const Layer& layer : schedule.layers)
    bytes += static_cast<double>(layer.bytes_read + layer.bytes_written);
  return static_cast<double>(schedule.statistics.multiply_adds) / kMultiplyAdds + bytes / kBytes;
}

}  // namespace

void choose_gpu(Options& options) {
  if (options.emulate || !info_of(options.target).has_device_memory) return;
  const std::optional<int> capability = gpu_capability();
  options.emulate = !capability;
  if (capability) options.gpu_code = code_for(*capability, cuda_architectures(options.arch));
}

std::string emulation_notice(const Program& program, bool is_asked_for) {
  const double seconds = emulation_seconds(program.schedules.back());
  std::string text = fmt::format("no GPU is used: the kernels run on the CPU, {} of one core for each run",
                                 duration_text(seconds));
  if (seconds > kLongEmulation && !is_asked_for) {
    throw CompileError(ExitCode::kUsage,
                       text + "; --emulate if it shall, or smaller shapes by --dim and --shape");
  }
  return text;
}

std::vector<std::string> gpus_to_emulate(const Program& program, const Options& options, std::size_t& turn) {
  if (!options.emulate || !program.device) return {""};
  // Without a word the emulator is an sm_90a: too old for what is made for later devices.
  constexpr int kUsual = 90;
  const GpuArchitecture& oldest = program.device->architectures.front();
  if (!program.device->has_instances && oldest.capability > kUsual) return {name_of(oldest)};
  if (!program.device->has_instances && !has_sm_75(program)) return {""};
  std::vector<std::string> names;
  for (const GpuArchitecture& gpu : program.device->architectures) names.insert(names.begin(), name_of(gpu));
  if (options.arch == kDefaultCudaArch) return {names[turn++ % names.size()]};
  return names;
}

Runners::Runners(const FileSet& files, const Program& program, const std::string& folder,
                 const Options& options, Terminal& terminal) {
  if (options.weights == WeightsMode::kFile || options.weights == WeightsMode::kExtern)
    weights_ = write_weights(files, folder);
  if (!options.runner.empty()) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(options.runner, error)) {
      throw CompileError(ExitCode::kInputOutput,
                         fmt::format("there is no runner '{}'", printable(options.runner)),
                         "name build/NAME_run of the project, after `make`");
    }
    usual_ = std::filesystem::absolute(options.runner).string();
    return;
  }
  const bool has_older = options.emulate && has_sm_75(program);
  if (has_older) {
    Options older = options;
    older.gpu_code = "sm_75";
    of_sm_75_ = build_runner(files, program.name, folder + "/sm_75", older, terminal);
  }
  if (!has_older || program.device->architectures.size() > 1)
    usual_ = build_runner(files, program.name, folder, options, terminal);
}

CommandLine Runners::command_as(const std::string& gpu) const {
  CommandLine command;
  if (!gpu.empty()) command = {"env", "CUDA_ON_CPU_ARCHITECTURE=" + gpu.substr(gpu.find('_') + 1)};
  command.push_back(gpu == "sm_75" ? of_sm_75_ : usual_);
  if (!weights_.empty()) command.insert(command.end(), {"--weights", weights_});
  return command;
}

}  // namespace gcompile
