// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// LSTM, GRU and RNN as plain loops over units.
#pragma once

#include "gcrt/rnn_sequence.h"

namespace GCRT_NAMESPACE {

// Sequences [begin, end) of the D * B.
template <class Cell, class E>
inline void recurrence_by_definition(const RnnShape& shape, const RnnTensors<E>& tensors,
                                     const RnnOptionsOf<E>& options, std::ptrdiff_t begin,
                                     std::ptrdiff_t end) {
  for (std::ptrdiff_t number = begin; number < end; ++number) {
    const RnnSequence<E> sequence{shape, tensors, options, Cell::kGates, number};
    for (std::ptrdiff_t unit = 0; unit < shape.hidden; ++unit) sequence.begin(unit);
    for (int i = 0; i < sequence.steps(); ++i) {
      const int t = sequence.step_at(i);
      for (int pass = 0; pass < Cell::kPasses; ++pass) {
        for (std::ptrdiff_t unit = 0; unit < shape.hidden; ++unit) Cell::pass(sequence, pass, unit, t);
      }
      for (std::ptrdiff_t unit = 0; unit < shape.hidden; ++unit) sequence.advance(unit, t);
    }
    for (std::ptrdiff_t unit = 0; unit < shape.hidden; ++unit) sequence.end(unit);
  }
}

}  // namespace GCRT_NAMESPACE
