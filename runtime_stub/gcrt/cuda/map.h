// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Maps of which every thread computes several packs.
//
//     map_packs<4, 1024, 4000>(thread, [&](int pack) {
//       return exp(load(lane, x + pack * 4));
//     }, [&](int pack, auto value) {
//       store(lane, y + pack * 4, value);
//     });
#pragma once

#include "gcrt/cuda/device/device.h"

namespace GCRT_NAMESPACE {

// store_value(pack, value(pack)) for the packs `thread`, `thread` + Threads and so on below Count: at most
// Packs of them. Threads call it that are numbered from 0 to Threads - 1.
//
// A thread computes all its values before it stores the first. The result may lie where an operand does, so
// the compiler lets no read pass a write: pack by pack,
// one read of each operand would be on its way at a time.
template <int Packs, std::ptrdiff_t Threads, std::ptrdiff_t Count, class I, class Value, class Store>
GCRT_DEVICE void map_packs(I thread, const Value& value, const Store& store_value) {
  static_assert((Packs - 1) * Threads < Count && Count <= Packs * Threads, "only the last round has gaps");
  constexpr bool is_full = Count == Packs * Threads;
  constexpr I last = static_cast<I>((Packs - 1) * Threads);
  const bool has_last = is_full || thread < static_cast<I>(Count) - last;
  decltype(value(thread)) values[Packs];
  GCRT_UNROLL
  for (int k = 0; k < Packs; ++k) {
    // Where the last is missing the first is computed again: no branch parts the reads.
    values[k] = value(k < Packs - 1 || has_last ? thread + static_cast<I>(k * Threads) : thread);
  }
  GCRT_UNROLL
  for (int k = 0; k < Packs; ++k) {
    if (k < Packs - 1 || has_last) store_value(thread + static_cast<I>(k * Threads), values[k]);
  }
}

// The same for a number of packs that only the run knows; `threads` is at least a Packs-th of them.
template <int Packs, class I, class Value, class Store>
GCRT_DEVICE void map_packs(I threads, I count, I thread, const Value& value, const Store& store_value) {
  if (thread >= count) return;
  decltype(value(thread)) values[Packs];
  GCRT_UNROLL
  for (int k = 0; k < Packs; ++k) {
    const I pack = thread + static_cast<I>(k) * threads;
    values[k] = value(pack < count ? pack : thread);
  }
  GCRT_UNROLL
  for (int k = 0; k < Packs; ++k) {
    const I pack = thread + static_cast<I>(k) * threads;
    if (pack < count) store_value(pack, values[k]);
  }
}

}  // namespace GCRT_NAMESPACE
