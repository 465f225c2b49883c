// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The scratch of suppress(), which compiler and kernel count alike.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

constexpr int kScoreBuckets = 1024;

// Boxes that are kept stand in whole vectors, of whatever level.
constexpr std::ptrdiff_t kept_room(std::ptrdiff_t most) { return (most + 15) / 16 * 16; }

// Words of one line at a time: its candidates twice, where buckets begin, and five numbers of each box kept.
constexpr std::ptrdiff_t suppress_part_words(std::ptrdiff_t boxes, std::ptrdiff_t most) {
  return 2 * boxes + kScoreBuckets + 1 + 5 * kept_room(most);
}

// Words of `parts` lines at a time, behind which lie the numbers and the positions of what lines keep.
constexpr std::ptrdiff_t suppress_words(std::ptrdiff_t lines, std::ptrdiff_t boxes, std::ptrdiff_t most,
                                        std::ptrdiff_t parts) {
  return parts * suppress_part_words(boxes, most) + lines * (1 + most);
}

}  // namespace GCRT_NAMESPACE
