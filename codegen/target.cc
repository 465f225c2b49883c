#include "codegen/target.h"

#include "base/diagnostics.h"

namespace gcompile {
namespace {

constexpr TargetInfo kTargets[] = {
    {
        .target = Target::kCpp,
        .name = "cpp",
        .source_suffix = "cpp",
        .kernels_per_file = 100,
        .last_parameter = {"const Threads* threads", "threads", "gcrt/parallel.h", false},
        .has_device_memory = false,
        .has_thread_pool = true,
        .has_levels = true,
    },
    {
        .target = Target::kCuda,
        .name = "cuda",
        .source_suffix = "cu",
        .kernels_per_file = 12,
        .last_parameter = {"Queue& queue", "queue", "", true},
        .has_device_memory = true,
        .has_thread_pool = false,
        .has_levels = false,
    },
};

}  // namespace

const TargetInfo& info_of(Target target) {
  const TargetInfo& info = kTargets[static_cast<std::size_t>(target)];
  GC_CHECK(info.target == target);
  return info;
}

const TargetInfo* target_named(std::string_view name) {
  for (const TargetInfo& info : kTargets) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace gcompile
