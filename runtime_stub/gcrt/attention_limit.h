// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What every attention kernel takes, whatever the target. The compiler has the same number in
// codegen/families/attention_flash.cc, kLargestHead.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Elements of a head, of queries and keys as of values: a row's sums lie on the stack or in registers.
constexpr int kAttentionLargestHead = 256;

}  // namespace GCRT_NAMESPACE
