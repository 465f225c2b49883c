// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The epilogue of kernels behind which nothing else is computed.
#pragma once

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

// Stores the sum of row m and column n at y + m * y_row + n.
template <class T>
struct StoreRows {
  T* y;
  std::ptrdiff_t y_row;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sum, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * y_row + n, sum);
  }
};

}  // namespace GCRT_NAMESPACE
