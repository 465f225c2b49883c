// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Sizes of LSTM, GRU and RNN. Needs no other header, so the compiler includes it too.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

struct RnnShape {
  int steps, batch, input, hidden;
  int directions;  // 2: forward, then reverse
  bool reverse;    // of a single direction
};

}  // namespace GCRT_NAMESPACE
