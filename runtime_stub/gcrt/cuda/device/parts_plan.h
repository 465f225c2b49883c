// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Into how many parts rows are divided that several blocks share, which the compiler shares with the kernels.
// Needs no CUDA header.
#pragma once

#include <cstddef>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// A cell of the workspace, in bytes: what a block leaves of its part, or what is known of a whole row.
constexpr int kRowCellBytes = 16;

// Parts of each of `rows` rows of `count` elements: as many as make `blocks` blocks of all rows together,
// while none is shorter than `least` elements. One where rows are blocks enough.
constexpr int row_parts(std::ptrdiff_t rows, std::ptrdiff_t count, int blocks, std::ptrdiff_t least) {
  if (rows <= 0 || rows >= blocks) return 1;
  const std::ptrdiff_t by_blocks = blocks / rows, by_length = count / least;
  const std::ptrdiff_t parts = by_blocks < by_length ? by_blocks : by_length;
  return parts < 1 ? 1 : static_cast<int>(parts);
}

}  // namespace GCRT_NAMESPACE
