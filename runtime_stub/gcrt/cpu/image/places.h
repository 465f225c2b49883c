// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Addresses of neighbours in an image, of which few registers are needed.
#pragma once

#include <cstddef>

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

// Places that are `distance` elements apart, one behind the other. Three of them have addresses that x86
// computes in the load: base, base + distance, base + 2 * distance; the base is computed where it is used,
// for compilers would rather keep every address of a tile on the stack. Loads of vectors multiply an index by
// the size of an element on x86, but not on AArch64, where bytes save a shift for each load.
template <class T>
struct Places {
  GCRT_INLINE Places(const T* first, std::ptrdiff_t distance) : base(hidden(first)), step(distance * kUnit) {}
  GCRT_INLINE const T* operator[](int i) const {
    if constexpr (kUnit == 1) {
      return base + i * step;
    } else {
      return reinterpret_cast<const T*>(reinterpret_cast<const unsigned char*>(base) + i * step);
    }
  }
  GCRT_INLINE void skip(int count) { base = hidden((*this)[count]); }
  static GCRT_INLINE const T* hidden(const T* address) {
    GCRT_FORGET(address);
    return address;
  }
  static constexpr int kGroup = 3;
  static constexpr std::ptrdiff_t kUnit = GCRT_NEON64 ? sizeof(T) : 1;
  const T* base;
  std::ptrdiff_t step;
};

}  // namespace GCRT_NAMESPACE
