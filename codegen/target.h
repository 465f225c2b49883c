#pragma once
// What programs are emitted for, and all that differs between targets outside their kernels.

#include <cstdint>
#include <string_view>

namespace gcompile {

enum class Target : std::uint8_t { kCpp, kCuda };

/// What kernel functions take after their tensors: threads to run on, or the queue that work goes to.
struct LastParameter {
  const char* declaration;
  const char* argument;
  const char* header;      // of gcrt, that declares the type where kernels' own headers do not; empty: none
  bool is_for_every_call;  // else for calls that ask for threads
};

struct TargetInfo {
  Target target;
  const char* name;           // of --target, of the manifest, and of the folder of its templates
  const char* source_suffix;  // of the schedule and the kernels
  /// A file has as many as the compiler takes in a few seconds: what several files need, it compiles for each.
  int kernels_per_file;
  LastParameter last_parameter;
  /// Kernels reach the arena and the state, but the caller's memory only if it lies on the device: inputs and
  /// outputs have places in the arena, the host computes what conditions depend on, a run is captured, and
  /// times are predicted.
  bool has_device_memory;
  bool has_thread_pool;  // in a library beside the model's
  /// Schedule and kernels may be compiled for several sets of instructions, beside an API that is for all.
  bool has_levels;
};

const TargetInfo& info_of(Target target);

/// The target of that name; null where there is none.
const TargetInfo* target_named(std::string_view name);

}  // namespace gcompile
