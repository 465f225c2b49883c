// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the compiler knows of a captured run (cuda/device/captured_run.h). Needs no CUDA header.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Runs that an instance remembers, each by a graph of its own: two buffers in turn for inputs and for outputs
// are four sets of pointers, and so are two sizes with two buffers.
constexpr int kRememberedRuns = 4;

// Bytes that an instance has at least room for.
constexpr std::int64_t instance_room(std::int64_t steps, std::int64_t ports, std::int64_t sizes,
                                     std::int64_t host_bytes) {
  return 256 + 8 * sizes + host_bytes + kRememberedRuns * (64 + 8 * (ports + sizes) + 16 * steps);
}

}  // namespace GCRT_NAMESPACE
