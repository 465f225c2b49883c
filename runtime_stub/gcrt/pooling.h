// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What pooling does to the elements of a window, over packs and scalars.
#pragma once

#include <limits>

#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// Maximum of the elements inside the image; the smallest value if there are none. NaN wins.
struct MaxPooling {
  template <class V>
  GCRT_INLINE V start() const {
    using T = ElementOf<V>;
    return splat_like<V>(std::numeric_limits<T>::has_infinity ? static_cast<T>(-kInfinity<T>) : kLowest<T>);
  }
  template <class V>
  GCRT_INLINE V combine(V sum, V value) const {
    return max(sum, value);
  }
  template <class V>
  GCRT_INLINE V finish(V sum, int) const {
    return sum;
  }
};

// Sum divided by the number of elements counted; 0 if there are none. Floating point only.
struct AveragePooling {
  template <class V>
  GCRT_INLINE V start() const {
    return V{};
  }
  template <class V>
  GCRT_INLINE V combine(V sum, V value) const {
    return sum + value;
  }
  template <class V>
  GCRT_INLINE V finish(V sum, int count) const {
    return sum / splat_like<V>(static_cast<ElementOf<V>>(count > 0 ? count : 1));
  }
};

}  // namespace GCRT_NAMESPACE
