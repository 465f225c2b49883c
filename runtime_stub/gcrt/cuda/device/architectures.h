// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Kernels of which a project has several, each for some of the architectures that it was made for. All are
// known to the host, but the machine code of an architecture holds its own alone; of the others it has a
// kernel that traps. The host starts the one for which the code was compiled that the device runs. So do
// CUTLASS (enable_sm90_or_later) and CUB (PtxVersion).
//
// Which architectures there are says a table of the project's own:
//
//     struct Architectures {
//       // The bit of the one whose kernels code has that was compiled for a compute capability, 87;
//       // `has_warpgroups`: for sm_90a.
//       static constexpr unsigned of(int capability, bool has_warpgroups);
//     };
#pragma once

#include "gcrt/cuda/device/code_check.h"
#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {

// An epilogue of kernels for the architectures of a set of such bits.
template <class Table, unsigned kSet, class E>
struct EpilogueOnly : E {
  GCRT_INLINE EpilogueOnly at_batch(std::ptrdiff_t z) const { return {E::at_batch(z)}; }
};

// Whether the code under compilation is to hold kernels with such an output; of the emulator, whether it
// stands for such a device.
template <class Output>
struct ArchitecturesOf {
  GCRT_DEVICE static bool include_this() { return true; }
};
template <template <class> class Output, class E>
struct ArchitecturesOf<Output<E>> : ArchitecturesOf<E> {};
template <class Table, unsigned kSet, class E>
struct ArchitecturesOf<EpilogueOnly<Table, kSet, E>> {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  static constexpr bool kIncludesThis = (Table::of(90, true) & kSet) != 0;
#elif defined(__CUDA_ARCH__)
  static constexpr bool kIncludesThis = (Table::of(__CUDA_ARCH__ / 10, false) & kSet) != 0;
#else
  static constexpr bool kIncludesThis = true;
#endif
  GCRT_DEVICE static bool include_this() {
#if !defined(__CUDACC__)
    return (Table::of(cuda_on_cpu::capability(), cuda_on_cpu::has_warpgroups()) & kSet) != 0;
#else
    return kIncludesThis;
#endif
  }
};

// The first thing that a kernel asks. Where it is false the compiler leaves out all that follows.
template <class Output>
GCRT_DEVICE bool is_compiled_here() {
  if (ArchitecturesOf<Output>::include_this()) return true;
#if defined(__CUDA_ARCH__)
  __trap();
#elif !defined(__CUDACC__)
  cuda_on_cpu::die("a kernel of other architectures was started");
#endif
  return false;
}

// The bit of the architecture whose kernels the device runs. What is asked is the code that the driver has
// loaded, not the device: later ones compile PTX, which has the kernels of the architecture that it is of.
template <class Table>
cudaError_t read_architecture(unsigned* found) {
  CodeNeeds code = {};
  const cudaError_t error = read_code<Table>(&code);
  *found = Table::of(code.capability, code.has_warpgroups);
  return error;
}

}  // namespace GCRT_NAMESPACE
