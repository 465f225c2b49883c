// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if CUDA_ON_CPU_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

#if defined(__x86_64__)
asm(R"(
.text
.globl cuda_on_cpu_switch
.hidden cuda_on_cpu_switch
.type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl cuda_on_cpu_switch
.hidden cuda_on_cpu_switch
.type cuda_on_cpu_switch, %function
cuda_on_cpu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");
#endif
namespace cuda_on_cpu {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStackBytes = 256 << 10;
constexpr std::size_t kSpread = 128 << 10;

// What a new fiber runs; it is switched to by the host thread that made it.
__thread void (*entry_main)(void*) = nullptr;
__thread void* entry_argument = nullptr;

#if CUDA_ON_CPU_ADDRESS_SANITIZER
// AddressSanitizer is told of every arrival on another stack.
__thread Fiber* left_fiber = nullptr;
__thread Fiber* entered_fiber = nullptr;

__attribute__((noinline)) void arrive() {
  __sanitizer_finish_switch_fiber(entered_fiber->fake_stack, &left_fiber->bottom, &left_fiber->bytes);
}
#else
void arrive() {}
#endif

[[noreturn]] void enter() {
  arrive();
  entry_main(entry_argument);
  std::abort();
}

}  // namespace

void create_fiber(Fiber& fiber, unsigned number, void (*main)(void*), void* argument) {
  void* memory = mmap(nullptr, kPage + kStackBytes + kSpread, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0) die("no memory for a stack");
  char* bottom = static_cast<char*>(memory) + kPage;
  const std::size_t spread = number % 100 * (1024 + 64);
  char* top = bottom + kStackBytes + kSpread - spread;
  entry_main = main;
  entry_argument = argument;
  fiber.bottom = bottom;
  fiber.bytes = static_cast<std::size_t>(top - bottom);
#if defined(__x86_64__)
  // Six registers, then the address that `ret` takes; a function starts 8 bytes beyond a multiple of 16.
  std::memset(top - 64, 0, 64);
  void (*start)() = &enter;
  std::memcpy(top - 16, &start, sizeof(start));
  fiber.stack_pointer = top - 64;
#elif defined(__aarch64__)
  std::memset(top - 160, 0, 160);
  void (*start)() = &enter;
  std::memcpy(top - 160 + 88, &start, sizeof(start));
  fiber.stack_pointer = top - 160;
#else
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = fiber.bytes;
  context->uc_link = nullptr;
  makecontext(context, &enter, 0);
  fiber.context = context;
#endif
}

#if CUDA_ON_CPU_ADDRESS_SANITIZER
__attribute__((noinline)) static void depart(Fiber& from, Fiber& to) {
  left_fiber = &from;
  entered_fiber = &to;
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
}
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
void switch_fiber(Fiber& from, Fiber& to) {
#if CUDA_ON_CPU_ADDRESS_SANITIZER
  depart(from, to);
#endif
  if (from.context == nullptr) from.context = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(from.context), static_cast<ucontext_t*>(to.context));
  arrive();
}
#elif CUDA_ON_CPU_ADDRESS_SANITIZER
void switch_fiber(Fiber& from, Fiber& to) {
  depart(from, to);
  cuda_on_cpu_switch(&from.stack_pointer, to.stack_pointer);
  arrive();
}
#endif

}  // namespace cuda_on_cpu
