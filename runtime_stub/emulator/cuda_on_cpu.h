// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the parts of the emulator share. Kernels and emitted projects see cuda_runtime.h only.
#pragma once

#include "cuda_runtime.h"

namespace cuda_on_cpu {

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef CUDA_ON_CPU_ADDRESS_SANITIZER
#define CUDA_ON_CPU_ADDRESS_SANITIZER 0
#endif

/// What memory holds before a kernel writes it: NaN as any floating type, -1 as an integer.
constexpr int kPoison = 0xff;

/// The address at which shared memory starts. Kernels are promised a multiple of 128.
constexpr std::uint32_t kSharedAddress = 1024 + 128;

/// Bytes behind a block that end_is_whole() compares. AddressSanitizer sees its ends by itself.
constexpr std::size_t kGuardBytes = CUDA_ON_CPU_ADDRESS_SANITIZER ? 0 : 256;

/// A block of exactly `bytes` bytes, poisoned, with a guarded end.
unsigned char* allocate_exact(std::size_t bytes, std::size_t alignment);
void free_exact(unsigned char* memory);
/// Makes memory such a block: the guard lies behind its `bytes` bytes.
void poison(unsigned char* memory, std::size_t bytes);
bool end_is_whole(const unsigned char* memory, std::size_t bytes);
/// Whether all of it is device memory of one allocation.
bool is_device_memory(const void* memory, std::size_t bytes);

struct Launch {
  const void* kernel;
  const Signature* signature;
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  void* const* arguments;
  bool starts_early = false;  // so that every thread must wait for the grid before
  unsigned cluster = 1;       // blocks, along x, that run together
};
/// What a thread waits for: the condition is asked whenever no thread can run.
struct Poll {
  bool (*holds)(void* context);
  void* context;
};

/// A place where a number of threads wait for each other.
struct Meeting {
  unsigned arrived = 0;
  unsigned long generation = 0;
};

/// Runs every block to its end. `launch` is a valid configuration.
void run_grid(const Launch& launch);

/// Dies where the device is older than an instruction, or is not the one of which alone it is, sm_90a.
void require_capability(int least, const char* instruction);
void require_warpgroups(const char* instruction);

/// The value of an environment variable, or `otherwise` where it is not set.
long environment_number(const char* name, long otherwise);

}  // namespace cuda_on_cpu
