// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Rows that a group of threads keeps in registers: each element is read or computed once, however many
// reductions go over the row. The calls are those of cuda/device/loops.h with a Row in place of the count:
//
//     constexpr Row<128, 4> row{};
//     const auto kept0 = keep(group, row, [&](auto lane, auto i) { return load(lane, x + i); });
//     const float largest = reduce_max<float>(group, row, kept0);
//     const auto kept1 = keep(group, row, [&](auto lane, auto i) { return exp(kept0(lane, i) - largest); });
//     const float sum = reduce_add<float>(group, row, kept1);
//     vectorize(group, row, [&](auto lane, auto i) { store(lane, y + i, kept1(lane, i) / sum); });
//
// No loop is left at run time, so what is kept has registers for its home.
#pragma once

#include "gcrt/cuda/device/loops.h"

namespace GCRT_NAMESPACE {

// Count elements in packs of L. Of Threads threads each has every Threads-th pack: its slots.
template <int Count, int L>
struct Row {
  static_assert(Count > 0 && Count % L == 0, "whole packs");
  static constexpr int kPacks = Count / L;
  template <int Threads>
  static constexpr int kSlots = (kPacks + Threads - 1) / Threads;
};

// The element at which a pack begins, and the slot in which its thread has it.
struct RowPlace {
  int element;
  int slot;
  GCRT_DEVICE operator int() const { return element; }
};

template <int Slot, int Count, int L, int Threads, class F>
GCRT_DEVICE void visit_slot(const Group<Threads>& group, Row<Count, L>, const F& visit) {
  constexpr int packs = Row<Count, L>::kPacks;
  const int pack = Slot * Threads + group.rank();
  if ((Slot + 1) * Threads <= packs || pack < packs) visit(RowPlace{pack * L, Slot});
}
template <int Count, int L, int Threads, class F, int... Slot>
GCRT_DEVICE void visit_slots(const Group<Threads>& group, Row<Count, L> row, const F& visit,
                             std::integer_sequence<int, Slot...>) {
  (visit_slot<Slot>(group, row, visit), ...);
}

// visit(place) for the packs of the calling thread, written out: every slot is a constant.
template <int Count, int L, int Threads, class F>
GCRT_DEVICE void each_pack(const Group<Threads>& group, Row<Count, L> row, const F& visit) {
  visit_slots(group, row, visit, std::make_integer_sequence<int, Row<Count, L>::template kSlots<Threads>>{});
}

// What one thread keeps. P is a pack, or one value where all elements of a pack have the same.
template <class P, int Slots>
struct Kept {
  P slot[Slots] = {};
  template <class L>
  GCRT_DEVICE const P& operator()(L, RowPlace place) const {
    return slot[place.slot];
  }
};

template <int Count, int L, int Threads, class F>
GCRT_DEVICE auto keep(const Group<Threads>& group, Row<Count, L> row, const F& body) {
  Kept<decltype(body(Lanes<L>{}, RowPlace{})), Row<Count, L>::template kSlots<Threads>> kept;
  each_pack(group, row,
            [&](RowPlace place) GCRT_LAMBDA_INLINE { kept.slot[place.slot] = body(Lanes<L>{}, place); });
  return kept;
}

template <int Count, int L, int Threads, class F>
GCRT_DEVICE void vectorize(const Group<Threads>& group, Row<Count, L> row, const F& body) {
  each_pack(group, row, [&](RowPlace place) GCRT_LAMBDA_INLINE { body(Lanes<L>{}, place); });
}

template <class T, int Count, int L, int Threads, class Combine, class F>
GCRT_DEVICE T reduce_row_part(const Group<Threads>& group, Row<Count, L> row, T identity,
                              const Combine& combine, const F& body) {
  auto result = splat(Lanes<L>{}, identity);
  each_pack(group, row,
            [&](RowPlace place) GCRT_LAMBDA_INLINE { result = combine(result, body(Lanes<L>{}, place)); });
  return reduce_lanes(combine, result);
}

// reduce_add<T>(group, row, body or what is kept).
#define GCRT_ROW_REDUCTION(name, function, identity)                                                        \
  template <class T, int Count, int L, int Threads, class F>                                                \
  GCRT_DEVICE T reduce_##name(Group<Threads>& group, Row<Count, L> row, const F& body) {                    \
    return combine_##name(                                                                                  \
        group,                                                                                              \
        reduce_row_part<T>(                                                                                 \
            group, row, identity, [](auto a, auto b) GCRT_LAMBDA_INLINE { return function(a, b); }, body)); \
  }
GCRT_ROW_REDUCTION(add, add, T(0))
GCRT_ROW_REDUCTION(mul, mul, T(1))
GCRT_ROW_REDUCTION(max, max, std::numeric_limits<T>::has_infinity ? T(-kInfinity<T>) : kLowest<T>)
GCRT_ROW_REDUCTION(min, min, std::numeric_limits<T>::has_infinity ? kInfinity<T> : kLargest<T>)
#undef GCRT_ROW_REDUCTION

}  // namespace GCRT_NAMESPACE
