#include "driver/machine/gpu.h"

#include <dlfcn.h>

namespace gcompile {

namespace {

// CUdevice_attribute of cuda.h.
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

}  // namespace

std::optional<int> gpu_capability() {
  // Neither device files, which have other names on Jetson and under WSL, nor nvidia-smi, which Jetson lacks.
  // The driver stays loaded.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return std::nullopt;
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto get_device = reinterpret_cast<int (*)(int*, int)>(::dlsym(driver, "cuDeviceGet"));
  const auto get_attribute =
      reinterpret_cast<int (*)(int*, int, int)>(::dlsym(driver, "cuDeviceGetAttribute"));
  int device = 0, major = 0, minor = 0;
  const bool is_known = initialise != nullptr && get_device != nullptr && get_attribute != nullptr &&
                        initialise(0) == 0 && get_device(&device, 0) == 0 &&
                        get_attribute(&major, kCapabilityMajor, device) == 0 &&
                        get_attribute(&minor, kCapabilityMinor, device) == 0;
  return is_known ? std::optional(10 * major + minor) : std::nullopt;
}

}  // namespace gcompile
