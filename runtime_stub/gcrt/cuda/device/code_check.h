// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Which machine code of this library the driver has loaded, asked before the first kernel is started: a
// launch that finds no code is an error that a product has to handle anywhere, and code that lacks the
// instructions of a kernel would end the context. Nothing runs, and the context stays as it is.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {

// What kernels were chosen for.
struct CodeNeeds {
  int capability;       // 10 * major + minor, and all later ones
  bool has_warpgroups;  // sm_90a, and no other
};

// Loaded and never run. The runtime tells code of sm_90a from that of sm_90 by nothing but its shared memory.
template <class Owner>
GCRT_GLOBAL(kWarpThreads)
void code_kernel() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ volatile int mark;
  mark = 0;
  static_cast<void>(mark);
#endif
}

// For which architecture the code was compiled, or the PTX that it was compiled from.
template <class Owner>
cudaError_t read_code(CodeNeeds* found) {
#if !defined(__CUDACC__)
  cuda_on_cpu::declare_kernel(code_kernel<Owner>);
#endif
  cudaFuncAttributes attributes = {};
  const cudaError_t error =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(code_kernel<Owner>));
  // Told by the status, and by nothing that comes later.
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  found->capability = attributes.ptxVersion;
#if !defined(__CUDACC__)
  found->has_warpgroups = cuda_on_cpu::has_warpgroups();
#else
  found->has_warpgroups = attributes.sharedSizeBytes > 0;
#endif
  return error;
}

template <class Owner>
cudaError_t check_code(const CodeNeeds& needs) {
  CodeNeeds found = {};
  const cudaError_t error = read_code<Owner>(&found);
  if (error != cudaSuccess) return error;
  const bool fits = found.capability >= needs.capability && (found.has_warpgroups || !needs.has_warpgroups);
  return fits ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}

}  // namespace GCRT_NAMESPACE
