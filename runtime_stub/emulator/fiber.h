// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Stacks of their own and the switch between them. Only callee-saved registers travel; the floating-point
// control words are the same on all fibers of a host thread.
#pragma once

#include <cstddef>

#include "cuda_on_cpu.h"

#if defined(__x86_64__) || defined(__aarch64__)
/// Saves the callee-saved registers on the stack and the stack pointer in *saved,
/// then goes on from `continued`.
extern "C" void cuda_on_cpu_switch(void** saved, void* continued);
#endif

namespace cuda_on_cpu {

struct Fiber {
  void* stack_pointer = nullptr;
  // For AddressSanitizer; of the host's own stack they are known once it has been left.
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake_stack = nullptr;
  void* context = nullptr;  // ucontext_t where there is no switch of our own
};

/// `main(argument)` runs when `fiber` is first switched to, and never returns. Stacks live as long as the
/// process and end at a page that may not be touched. `number` spreads the tops over the sets of the caches:
/// the same lines of 32 stacks are in use at once.
void create_fiber(Fiber& fiber, unsigned number, void (*main)(void*), void* argument);

/// Leaves `from` for `to`; returns when something switches back to `from`.
#if (defined(__x86_64__) || defined(__aarch64__)) && !CUDA_ON_CPU_ADDRESS_SANITIZER
inline void switch_fiber(Fiber& from, Fiber& to) {
  cuda_on_cpu_switch(&from.stack_pointer, to.stack_pointer);
}
#else
void switch_fiber(Fiber& from, Fiber& to);
#endif

}  // namespace cuda_on_cpu
