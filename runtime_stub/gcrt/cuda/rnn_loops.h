// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// LSTM, GRU and RNN as plain loops over units: a block for every sequence and direction.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/rnn_sequence.h"

namespace GCRT_NAMESPACE {

constexpr int kSequenceThreads = 256;

template <class Cell, class E>
GCRT_GLOBAL(kSequenceThreads)
void recurrence_by_definition_kernel(RnnShape shape, RnnTensors<E> tensors, RnnOptionsOf<E> options) {
  const RnnSequence<E> sequence{shape, tensors, options, Cell::kGates, std::ptrdiff_t{blockIdx.x}};
  const std::ptrdiff_t first = thread_rank();
  for (std::ptrdiff_t unit = first; unit < shape.hidden; unit += kSequenceThreads) sequence.begin(unit);
  barrier();
  for (int i = 0; i < sequence.steps(); ++i) {
    const int t = sequence.step_at(i);
    for (int pass = 0; pass < Cell::kPasses; ++pass) {
      for (std::ptrdiff_t unit = first; unit < shape.hidden; unit += kSequenceThreads)
        Cell::pass(sequence, pass, unit, t);
      barrier();
    }
    for (std::ptrdiff_t unit = first; unit < shape.hidden; unit += kSequenceThreads)
      sequence.advance(unit, t);
    barrier();
  }
  for (std::ptrdiff_t unit = first; unit < shape.hidden; unit += kSequenceThreads) sequence.end(unit);
}

// One launch.
template <class Cell, class E>
inline void recurrence_by_definition(Queue& queue, const RnnShape& shape, const RnnTensors<E>& tensors,
                                     const RnnOptionsOf<E>& options) {
  const auto sequences = static_cast<unsigned>(std::ptrdiff_t{shape.directions} * shape.batch);
  if (sequences == 0) return;
  launch(queue, dim3(sequences), dim3(kSequenceThreads), 0, recurrence_by_definition_kernel<Cell, E>, shape,
         tensors, options);
}

}  // namespace GCRT_NAMESPACE
