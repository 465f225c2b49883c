// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#pragma once
// What running sums and running products begin with, and how an element goes into them.

#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {

struct RunningSum {
  template <class T>
  static GCRT_INLINE T identity() {
    return T(0);
  }
  template <class V>
  static GCRT_INLINE V of(V a, V b) {
    return add(a, b);
  }
};

struct RunningProduct {
  template <class T>
  static GCRT_INLINE T identity() {
    return T(1);
  }
  template <class V>
  static GCRT_INLINE V of(V a, V b) {
    return mul(a, b);
  }
};

}  // namespace GCRT_NAMESPACE
