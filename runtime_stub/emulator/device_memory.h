// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The addresses of device memory, which the host cannot use: only kernels and copies reach what lies there.
#pragma once

#include "cuda_on_cpu.h"

namespace cuda_on_cpu {

/// As long as one lives, the device works, or the emulator does its bookkeeping, and device memory is open.
/// Host code that touches it at any other time ends the program, which says so, as a GPU's host would crash.
/// Under AddressSanitizer, which knows the blocks of the allocator alone, device memory is always open.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

/// A block of exactly `bytes` bytes of device memory, like allocate_exact().
unsigned char* allocate_on_device(std::size_t bytes);
void free_on_device(unsigned char* block, std::size_t bytes);

}  // namespace cuda_on_cpu
