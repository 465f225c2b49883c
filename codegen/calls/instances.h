#pragma once
// One call for several GPUs. Where the kernels that are chosen for them differ, the call's function
// holds an instance for each, and starts the one for which the code was compiled that the device runs
// (gcrt/cuda/device/architectures.h). Everything else there is once: parameters, epilogue, weights, a workspace
// of the largest size.

#include <string>
#include <vector>

#include "codegen/calls/kernel_call.h"

namespace gcompile {

/// How a call of a device runs on the GPU that it was made for.
Execution execution_of(const KernelCall& call);

class Instances {
 public:
  /// Begins with the call for the oldest GPU.
  explicit Instances(KernelCall oldest, std::string gpu);
  /// Whether there can be others: a kernel without an epilogue is the oldest GPU's on all of them.
  bool can_differ() const { return !call_.functor_name.empty(); }
  /// Whether a later GPU's call reads and writes the same, and so is an instance now. Weights are packed
  /// once, as the oldest GPU's kernel reads them.
  bool add(const KernelCall& call, const std::string& gpu);
  /// The oldest GPU's kernel is the later one's too, where it takes so long.
  void add_oldest(const gcrt::KernelTime& time, const std::string& gpu);
  /// Parameters that are named so far, which other instances know by the same names.
  const SizeParameters& sizes() const { return call_.sizes; }
  /// The call for all of them.
  KernelCall finish();

 private:
  struct Instance {
    Text body;
    std::vector<std::string> gpus;
  };
  bool can_join(const KernelCall& other) const;
  DeviceCall& device() { return *call_.device; }

  KernelCall call_;
  std::vector<Instance> instances_;
};

}  // namespace gcompile
