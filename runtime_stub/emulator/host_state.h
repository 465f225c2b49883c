// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the host side of the emulator shares: limits, errors, checks of copies.
#pragma once

#include "cuda_on_cpu.h"

namespace cuda_on_cpu {

// A device with few multiprocessors, so that kernels which size their grids by the device stay small.
constexpr int kMultiprocessors = 4;
constexpr int kMostThreads = 1024;
constexpr unsigned kMostClusterThreads = 2048;  // that are run together: 64 warps
constexpr std::size_t kSharedBytesWithoutAsking = 48 << 10;

/// Shared memory of one block, on such a device (CUDA C++ Programming Guide, technical specifications per
/// compute capability).
std::size_t most_shared_bytes();

/// Keeps `error` for cudaGetLastError and returns it.
cudaError_t fail(cudaError_t error);

/// Dies if the guard behind a block of device memory has been written.
void check_ends();

/// Both ranges lie inside their allocations, and those are what `kind` says.
bool copy_is_valid(const void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind);

}  // namespace cuda_on_cpu
