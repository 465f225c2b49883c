// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// TopK by its definition: every element counts those before it.
#pragma once

#include "gcrt/top_k_order.h"

namespace GCRT_NAMESPACE {

// Elements [begin, end).
template <bool Largest, class T>
inline void top_k_by_rank(const TopKByRank<Largest, T>& store, std::ptrdiff_t begin, std::ptrdiff_t end) {
  for (std::ptrdiff_t element = begin; element < end; ++element) store(element);
}

}  // namespace GCRT_NAMESPACE
