// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// LSTM, GRU and RNN by their definition, of any floating type and with weights where ONNX has them: one
// sequence in one direction, a unit at a time. What plain loops of the CPU and of CUDA share.
#pragma once

#include "gcrt/rnn_cell.h"
#if !GCRT_CUDA
#include "gcrt/loops.h"
#endif

namespace GCRT_NAMESPACE {

// D directions, T steps, B images of the batch, I inputs, H units. Gates: LSTM i o f c, GRU z r h, RNN one.
// Optional pointers may be null.
template <class E>
struct RnnTensors {
  const E* x;                   // [T][B][I]
  const E* w;                   // [D][gates][H][I]
  const E* r;                   // [D][gates][H][H]
  const E* bias;                // [D][2][gates][H], W's and R's; optional
  const E* peepholes;           // LSTM: [D][3][H] for i o f; optional
  const std::int32_t* lengths;  // [B] steps of each sequence; later outputs are zero; optional
  const E* initial_h;           // [D][B][H]; optional
  const E* initial_c;           // [D][B][H]; optional
  E* y;                         // [T][D][B][H]; optional
  E* y_h;                       // [D][B][H]; optional
  E* y_c;                       // [D][B][H]; optional
  E* scratch;                   // [D][B][kRnnSequenceRows][H]
};
constexpr int kRnnSequenceRows = 4;

template <class E>
GCRT_INLINE E rnn_dot(std::ptrdiff_t count, const E* a, const E* b) {
#if GCRT_CUDA
  E sum = E(0);
  for (std::ptrdiff_t i = 0; i < count; ++i) sum = fma(a[i], b[i], sum);
  return sum;
#else
  return reduce_add<E>(count, [&](auto lane, std::ptrdiff_t i)
                                  GCRT_LAMBDA_INLINE { return load(lane, a + i) * load(lane, b + i); });
#endif
}

// Sequence number d * B + b. The units of one pass do not read what others of the same pass write, so they
// may be computed in any order, or at once.
template <class E>
struct RnnSequence {
  const RnnShape& shape;
  const RnnTensors<E>& tensors;
  const RnnOptionsOf<E>& options;
  int gates;
  std::ptrdiff_t number;

  GCRT_INLINE std::ptrdiff_t units() const { return shape.hidden; }
  GCRT_INLINE int direction() const { return static_cast<int>(number / shape.batch); }
  GCRT_INLINE std::ptrdiff_t image() const { return number % shape.batch; }
  GCRT_INLINE RnnGate<false, E> gate() const { return {options, direction()}; }
  GCRT_INLINE E* row(int i) const { return tensors.scratch + (number * kRnnSequenceRows + i) * units(); }
  GCRT_INLINE E* h() const { return row(0); }      // of the step before
  GCRT_INLINE E* next() const { return row(1); }   // of this step
  GCRT_INLINE E* c() const { return row(2); }      // LSTM
  GCRT_INLINE E* reset() const { return row(3); }  // GRU: gate r, times h unless linear_before_reset

  GCRT_INLINE int steps() const {
    if (tensors.lengths == nullptr) return shape.steps;
    const std::int32_t length = tensors.lengths[image()];
    return length < 0 ? 0 : length > shape.steps ? shape.steps : length;
  }
  // The step that comes i-th.
  GCRT_INLINE int step_at(int i) const {
    const bool reverse = shape.directions == 2 ? direction() == 1 : shape.reverse;
    return reverse ? steps() - 1 - i : i;
  }

  GCRT_INLINE std::ptrdiff_t weight_row(int g, std::ptrdiff_t unit) const {
    return (std::ptrdiff_t{direction()} * gates + g) * units() + unit;
  }
  GCRT_INLINE E bias(int part, int g, std::ptrdiff_t unit) const {
    if (tensors.bias == nullptr) return E(0);
    return tensors.bias[((std::ptrdiff_t{direction()} * 2 + part) * gates + g) * units() + unit];
  }
  // What the inputs of step t, and a state, contribute to a gate.
  GCRT_INLINE E from_input(int g, std::ptrdiff_t unit, int t) const {
    const E* const x = tensors.x + (std::ptrdiff_t{t} * shape.batch + image()) * shape.input;
    return bias(0, g, unit) + rnn_dot<E>(shape.input, tensors.w + weight_row(g, unit) * shape.input, x);
  }
  GCRT_INLINE E from_state(int g, std::ptrdiff_t unit, const E* state) const {
    return bias(1, g, unit) + rnn_dot<E>(units(), tensors.r + weight_row(g, unit) * units(), state);
  }
  GCRT_INLINE E sum(int g, std::ptrdiff_t unit, int t) const {
    return from_input(g, unit, t) + from_state(g, unit, h());
  }

  GCRT_INLINE void begin(std::ptrdiff_t unit) const {
    const std::ptrdiff_t at = number * units() + unit;
    h()[unit] = tensors.initial_h == nullptr ? E(0) : tensors.initial_h[at];
    c()[unit] = tensors.initial_c == nullptr ? E(0) : tensors.initial_c[at];
  }
  GCRT_INLINE void output(std::ptrdiff_t unit, int t, E value) const {
    if (tensors.y == nullptr) return;
    const std::ptrdiff_t rows = std::ptrdiff_t{shape.directions} * shape.batch;
    tensors.y[(t * rows + number) * units() + unit] = value;
  }
  GCRT_INLINE void advance(std::ptrdiff_t unit, int t) const {
    h()[unit] = next()[unit];
    output(unit, t, next()[unit]);
  }
  GCRT_INLINE void end(std::ptrdiff_t unit) const {
    const std::ptrdiff_t at = number * units() + unit;
    for (int t = steps(); t < shape.steps; ++t) output(unit, t, E(0));
    if (tensors.y_h != nullptr) tensors.y_h[at] = h()[unit];
    if (tensors.y_c != nullptr) tensors.y_c[at] = c()[unit];
  }
};

// Cells: the passes of a step over a unit; the last one gives next().
struct RnnByDefinition {
  static constexpr int kGates = 1;
  static constexpr int kPasses = 1;
  template <class E>
  GCRT_INLINE static void pass(const RnnSequence<E>& s, int, std::ptrdiff_t unit, int t) {
    s.next()[unit] = s.gate().template apply<0>(s.sum(0, unit, t));
  }
};

struct LstmByDefinition {
  static constexpr int kGates = 4;
  static constexpr int kPasses = 1;
  template <class E>
  GCRT_INLINE static void pass(const RnnSequence<E>& s, int, std::ptrdiff_t unit, int t) {
    const E* const peepholes =
        s.tensors.peepholes == nullptr ? nullptr : s.tensors.peepholes + s.direction() * 3 * s.units();
    const auto peephole = [&](int k) { return peepholes[k * s.units() + unit]; };
    s.next()[unit] = lstm_unit(s.gate(), s.sum(0, unit, t), s.sum(1, unit, t), s.sum(2, unit, t),
                               s.sum(3, unit, t), peepholes != nullptr, peephole, s.c()[unit]);
  }
};

struct GruByDefinition {
  static constexpr int kGates = 3;
  static constexpr int kPasses = 2;
  template <class E>
  GCRT_INLINE static void pass(const RnnSequence<E>& s, int number, std::ptrdiff_t unit, int t) {
    const bool linear = s.options.linear_before_reset;
    const E h = s.h()[unit];
    if (number == 0) {
      const E gate = s.gate().template apply<0>(s.sum(1, unit, t));
      s.reset()[unit] = linear ? gate : gate * h;
      return;
    }
    const E state =
        linear ? s.reset()[unit] * s.from_state(2, unit, s.h()) : s.from_state(2, unit, s.reset());
    s.next()[unit] = gru_unit(s.gate(), s.sum(0, unit, t), s.from_input(2, unit, t) + state, h);
  }
};

}  // namespace GCRT_NAMESPACE
