// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the recurrent kernels of the CPU and of CUDA share: options, activations, and the arithmetic of one
// unit of a cell, on vectors of any width.
#pragma once

#include "gcrt/rnn_shape.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {

enum class RnnFunction : std::uint8_t {
  sigmoid,
  tanh,
  relu,
  affine,            // alpha * x + beta
  leaky_relu,        // x < 0 ? alpha * x : x
  thresholded_relu,  // x > alpha ? x : 0
  scaled_tanh,       // alpha * tanh(beta * x)
  hard_sigmoid,      // min(max(alpha * x + beta, 0), 1)
  elu,               // x < 0 ? alpha * (exp(x) - 1) : x
  softsign,          // x / (1 + |x|)
  softplus           // log(1 + exp(x))
};
template <class T>
struct RnnActivationOf {
  RnnFunction function;
  T alpha;
  T beta;
};
using RnnActivation = RnnActivationOf<float>;

template <class T>
struct RnnOptionsOf {
  RnnActivationOf<T> activations[2][3];  // per direction: f, g, h (GRU: f, g; RNN: f)
  T clip;                                // bound of what enters an activation; 0: none
  bool input_forget;                     // LSTM: forget gate = 1 - input gate
  bool linear_before_reset;              // GRU
};
using RnnOptions = RnnOptionsOf<float>;

template <class T, class V>
GCRT_INLINE V rnn_function(const RnnActivationOf<T>& a, V x) {
  const V alpha = splat_like<V>(a.alpha);
  const V beta = splat_like<V>(a.beta);
  const V zero = {};
  switch (a.function) {
    case RnnFunction::sigmoid:
      return sigmoid(x);
    case RnnFunction::tanh:
      return tanh(x);
    case RnnFunction::relu:
      return max(x, zero);
    case RnnFunction::affine:
      return alpha * x + beta;
    case RnnFunction::leaky_relu:
      return blend(x < zero, alpha * x, x);
    case RnnFunction::thresholded_relu:
      return blend(x > alpha, x, zero);
    case RnnFunction::scaled_tanh:
      return alpha * tanh(beta * x);
    case RnnFunction::hard_sigmoid:
      return min(max(alpha * x + beta, zero), splat_like<V>(1));
    case RnnFunction::elu:
      return blend(x < zero, alpha * expm1(x), x);
    case RnnFunction::softsign:
      return x / (splat_like<V>(1) + abs(x));
    case RnnFunction::softplus:
      return softplus(x);
  }
  return x;
}

// Any activation. Not inlined on the CPU: the usual functions have paths of their own.
#if GCRT_CUDA
template <class T, class V>
GCRT_INLINE V rnn_activate(const RnnActivationOf<T>& a, V x) {
  return rnn_function(a, x);
}
#else
template <class T, class V>
GCRT_NOINLINE void rnn_activate_in_memory(const RnnActivationOf<T>& a, V& x) {
  x = rnn_function(a, x);
}
template <class T, class V>
GCRT_INLINE V rnn_activate(const RnnActivationOf<T>& a, V x) {
  rnn_activate_in_memory(a, x);
  return x;
}
#endif

// Sigmoid for the gates and tanh for the rest, without clip; `count` activations are looked at.
constexpr bool is_usual(const RnnOptions& options, int direction, int count) {
  const RnnActivation* a = options.activations[direction];
  bool result = options.clip <= 0.0f && a[0].function == RnnFunction::sigmoid;
  for (int i = 1; i < count; ++i) result = result && a[i].function == RnnFunction::tanh;
  return result;
}

// Applies the clip and one of the activations of a direction. IsUsual: sigmoid, tanh, tanh without clip.
template <bool IsUsual, class T = float>
struct RnnGate {
  const RnnOptionsOf<T>& options;
  int direction;
  template <int Index, class V>
  GCRT_INLINE V apply(V x) const {
    if constexpr (IsUsual) {
      if constexpr (Index == 0) return sigmoid(x);
      return tanh(x);
    } else {
      if (options.clip > T(0)) x = min(max(x, splat_like<V>(-options.clip)), splat_like<V>(options.clip));
      return rnn_activate(options.activations[direction][Index], x);
    }
  }
  // What an LSTM unit hands out of its state, to which the clip does not apply.
  template <class V>
  GCRT_INLINE V output(V state) const {
    if constexpr (IsUsual) {
      return tanh(state);
    } else {
      return rnn_activate(options.activations[direction][2], state);
    }
  }
};

// The new state of an LSTM unit, in `state`, and its output. i, o, f and c are the sums that enter the
// activations; peephole(0..2) are the weights of i, o and f, not called without peepholes.
template <bool IsUsual, class T, class V, class F>
GCRT_INLINE V lstm_unit(const RnnGate<IsUsual, T>& gate, V i, V o, V f, V c, bool has_peepholes,
                        const F& peephole, V& state) {
  const V old = state;
  if (has_peepholes) {
    i = fma(peephole(0), old, i);
    f = fma(peephole(2), old, f);
  }
  i = gate.template apply<0>(i);
  f = gate.options.input_forget ? splat_like<V>(1) - i : gate.template apply<0>(f);
  const V candidate = gate.template apply<1>(c);
  state = fma(f, old, i * candidate);
  if (has_peepholes) o = fma(peephole(1), state, o);
  return gate.template apply<0>(o) * gate.output(state);
}

// The output of a GRU unit: (1 - z) * candidate + z * h.
// z and candidate are the sums that enter the activations.
template <bool IsUsual, class T, class V>
GCRT_INLINE V gru_unit(const RnnGate<IsUsual, T>& gate, V z, V candidate, V h) {
  z = gate.template apply<0>(z);
  candidate = gate.template apply<1>(candidate);
  return fma(z, h - candidate, candidate);
}

}  // namespace GCRT_NAMESPACE
