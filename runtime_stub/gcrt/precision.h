// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The enumeration by itself: the compiler knows it everywhere, and the models of tiles in a few places.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// How the products of a contraction are formed. Sums are float in every mode, int32 in kInt8.
enum class Precision {
  kFp32,  // three TF32 products per product: at most 14 * 2^-23 of the sum of magnitudes; FFMA below sm_80
  kTf32,  // operands rounded to 11 significant bits
  kFp16,
  kBf16,
  kInt8,
  kBf16x3,  // of the CPU: three products of bfloat16 per product (cpu/product/dot_bfloat16.h)
  kBf16x6,
};

}  // namespace GCRT_NAMESPACE
