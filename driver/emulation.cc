#include "driver/emulation.h"

#include <optional>

#include "driver/cuda_arch.h"
#include "driver/gpu.h"

namespace gcompile {

void choose_gpu(Options& options) {
  if (options.emulate || !info_of(options.target).has_device_memory) return;
  const std::optional<int> capability = gpu_capability();
  options.emulate = !capability;
  if (capability) options.gpu_code = code_for(*capability, cuda_architectures(options.arch));
}

double emulation_seconds(const Schedule& schedule) {
  // Multiply-adds and bytes per second as measured on x86-64 at 2 to 3 GHz.
  constexpr double kMultiplyAdds = 2e8, kBytes = 1e8;
  double bytes = 0;
  for (const Layer& layer : schedule.layers)
    bytes += static_cast<double>(layer.bytes_read + layer.bytes_written);
  return static_cast<double>(schedule.statistics.multiply_adds) / kMultiplyAdds + bytes / kBytes;
}

std::vector<std::string> gpus_to_emulate(const Program& program, const Options& options, std::size_t& turn) {
  if (!options.emulate || !program.has_instances) return {""};
  std::vector<std::string> names;
  for (const GpuArchitecture& gpu : program.architectures) names.insert(names.begin(), name_of(gpu));
  if (options.arch == kDefaultCudaArch) return {names[turn++ % names.size()]};
  return names;
}

}  // namespace gcompile
