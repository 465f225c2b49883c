// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Sizes of scatters that the compiler shares with the kernels. Needs no CUDA header.
#pragma once

#include "gcrt/cuda/sort_plan.h"

namespace GCRT_NAMESPACE {

// Words of scratch for `updates` updates of any of `targets` places. Replacing notes the last update of each
// place; reductions sort the updates by place.
constexpr std::ptrdiff_t scatter_scratch_words(bool replaces, std::ptrdiff_t targets,
                                               std::ptrdiff_t updates) {
  if (replaces) return targets + updates;
  return updates <= kSortInBlock ? 2 * updates : 4 * updates + sort_counts(updates);
}

// Launches, one for a copy of the data included.
constexpr int scatter_launches(bool replaces, std::ptrdiff_t targets, std::ptrdiff_t updates) {
  if (replaces) return 4;
  return updates <= kSortInBlock ? 3 : 3 + (key_bits(targets) + 7) / 8 * 3;
}

}  // namespace GCRT_NAMESPACE
