// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The scratch of suppress() on a device, which compiler and kernels count alike.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

constexpr int kSuppressLaunches = 2;

// Words: how many each line keeps, then positions and keys of the candidates of each.
constexpr std::ptrdiff_t suppress_device_words(std::ptrdiff_t lines, std::ptrdiff_t boxes) {
  return lines * (1 + 2 * boxes);
}

}  // namespace GCRT_NAMESPACE
