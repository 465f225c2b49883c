// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The epilogues of kernels. A kernel takes one by value and calls it once for every element, on final sums (a
// pack of L), with n a multiple of L and n + L <= N:
//
//   static constexpr int kMaxLanes;  // the widest L: 1, 2 or 4, which promises the alignment of its accesses
//   epilogue(lane, sums, m, n);      // for row m, from column n on
//   epilogue.at_batch(z);            // the epilogue of entry z of a batch
//
// Some call its two parts, of which the first reads and the second stores:
//
//   epilogue.put(lane, epilogue.value(lane, sums, m, n), m, n);
//
// What a model computes is a functor F with value(). Epilogue<F, kMaxLanes> makes an epilogue of it.
#pragma once

#include <cstddef>
#include <type_traits>

#include "gcrt/cuda/device/architectures.h"
#include "gcrt/loops.h"

namespace GCRT_NAMESPACE {

// A functor with a put() of its own stores by that, any other row m at y + m * y_row.
template <class F, class L, class V>
GCRT_INLINE auto put_result(const F& f, L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n, int)
    -> decltype(f.put(lane, result, m, n)) {
  f.put(lane, result, m, n);
}
template <class F, class L, class V>
GCRT_INLINE void put_result(const F& f, L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n, long) {
  using T = std::remove_pointer_t<decltype(f.y)>;
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    store_from_float(lane, f.y + m * f.y_row + n, result);
  } else {
    store(lane, f.y + m * f.y_row + n, result);
  }
}

// A functor with a move_to_batch() of its own has other operands for each entry of a batch.
template <class F>
GCRT_INLINE auto move_epilogue(F& f, std::ptrdiff_t z, int) -> decltype(f.move_to_batch(z)) {
  f.move_to_batch(z);
}
template <class F>
GCRT_INLINE void move_epilogue(F&, std::ptrdiff_t, long) {}

template <class F, int kLanes>
struct Epilogue : F {
  static constexpr int kMaxLanes = kLanes;
  GCRT_INLINE Epilogue at_batch(std::ptrdiff_t z) const {
    Epilogue moved = *this;
    move_epilogue(static_cast<F&>(moved), z, 0);
    return moved;
  }
  template <class L, class V>
  GCRT_INLINE void put(L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n) const {
    put_result(static_cast<const F&>(*this), lane, result, m, n, 0);
  }
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    put(lane, this->value(lane, sums, m, n), m, n);
  }
};

// The functor that stores the sums as they are.
template <class T>
struct Sums {
  T* y;
  std::ptrdiff_t y_row;
  template <class L, class V>
  GCRT_INLINE V value(L, V sums, std::ptrdiff_t, std::ptrdiff_t) const {
    return sums;
  }
};

template <class F, int kLanes>
struct ArchitecturesOf<Epilogue<F, kLanes>> : ArchitecturesOf<F> {};

}  // namespace GCRT_NAMESPACE
