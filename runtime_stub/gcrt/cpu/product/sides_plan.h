// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the compiler shares with the kernel of product_int8.h: the size of its scratch.
#pragma once

#include "gcrt/conv_shape.h"

namespace GCRT_NAMESPACE {

// Words of 32 bits for both sides of an integer product, in the larger of two forms:
// the same for every machine.
constexpr std::ptrdiff_t integer_sides_size(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                            std::ptrdiff_t depth) {
  const std::ptrdiff_t lines = ceil_div(columns, 16) * 16;
  const std::ptrdiff_t widened = (lines + rows) * ceil_div(depth, 2);
  const std::ptrdiff_t bytes = lines * ceil_div(depth, 4) + columns + rows;
  return widened < bytes ? bytes : widened;
}

}  // namespace GCRT_NAMESPACE
