// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// LSTM, GRU and RNN as ONNX defines them, layout 0, float.
//
// X * W + bias is one matrix product for a block of steps; each step then multiplies the state by the packed
// recurrence weights and applies the gates, vectorised over units. In memory every gate is padded to a
// multiple of 16 units, so that no vector straddles two gates; the padding computes to zero and is never
// handed out.
#pragma once

#include "gcrt/cpu/product/gemm.h"
#include "gcrt/rnn_cell.h"

namespace GCRT_NAMESPACE {

// D directions, T steps, B images of the batch, I inputs, H units, P = H rounded up to a multiple of 16.
// Gates: LSTM i o f c, GRU z r h, RNN one. Optional pointers may be null.
struct RnnOperands {
  const float* x;               // [T][B][I]
  const float* w_packed;        // [D][gates][P / 16][I][16], zero padded
  const float* r_packed;        // [D][gates][P / 16][H][16], zero padded
  const float* bias;            // [D][gates][P], W's and R's added (see recurrent_bias); optional
  const float* recurrent_bias;  // GRU with linear_before_reset: [D][P], R's bias of gate h, which `bias`
                                // leaves out; optional
  const float* peepholes;       // LSTM: [D][3][P] for i o f; optional
  const std::int32_t* lengths;  // [B] steps of each sequence; later outputs are zero; optional
  const float* initial_h;       // [D][B][H]; optional
  const float* initial_c;       // [D][B][H]; optional
  float* y;                     // [T][D][B][H]; optional
  float* y_h;                   // [D][B][H]; optional
  float* y_c;                   // [D][B][H]; optional
  float* scratch;               // rnn_scratch_floats
};

constexpr std::ptrdiff_t rnn_padded_units(int hidden) { return (hidden + 15) / 16 * 16; }

// Floats of scratch; gates: LSTM 4, GRU 3, RNN 1; block: steps whose X * W is computed at once.
constexpr std::ptrdiff_t rnn_scratch_floats(const RnnShape& s, int gates, int block) {
  return rnn_padded_units(s.hidden) * s.batch * (gates * (block + 1) + 3);
}

// The most steps whose X * W fits `floats` of scratch, which hold that of one; rows beyond 96 gain nothing.
constexpr int rnn_steps_at_once(const RnnShape& s, int gates, std::ptrdiff_t floats) {
  if (s.batch == 0) return 1;
  const std::ptrdiff_t fits = (floats / (rnn_padded_units(s.hidden) * s.batch) - 3) / gates - 1;
  const std::ptrdiff_t useful = s.batch < 96 ? 96 / s.batch : 1;
  return static_cast<int>(fits < useful ? fits : useful);
}

// Stores sums, plus the elements at `addend` if that is not null.
struct RnnSumEpilogue {
  float* y;
  std::ptrdiff_t stride;
  const float* addend;
  std::ptrdiff_t addend_stride;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    if (addend != nullptr) sums = sums + load(lane, addend + m * addend_stride + n);
    store(lane, y + m * stride + n, sums);
  }
};

// What one step of one direction works on. Rows of all arrays are images of the batch.
struct RnnStep {
  const RnnShape& shape;
  const RnnOperands& operands;
  const RnnOptions& options;
  int direction;
  std::ptrdiff_t units;  // padded
  int gate_count;
  const float* xw;  // [B][gates][P] of this step
  float* gates;     // [B][gates][P]
  float* h;         // [B][P]
  float* c;         // [B][P]
  float* reset_h;   // [B][P]

  // gates[first, last) = rows * R (+ addend).
  void multiply(const float* rows, int first, int last, const float* addend,
                std::ptrdiff_t addend_stride) const {
    const std::ptrdiff_t gate_weights = units * shape.hidden;
    const float* const r = operands.r_packed + (direction * gate_count + first) * gate_weights;
    const std::ptrdiff_t stride = gate_count * units;
    gemm(shape.batch, (last - first) * units, shape.hidden, rows, units, r,
         RnnSumEpilogue{gates + first * units, stride, addend, addend_stride});
  }
};

// Calls body(i) for every vector of units.
template <class F>
GCRT_INLINE void for_each_unit(std::ptrdiff_t units, const F& body) {
  for (std::ptrdiff_t i = 0; i < units; i += kLanes) body(i);
}

struct LstmCell {
  static constexpr int kGates = 4;
  static constexpr int kActivations = 3;
  GCRT_INLINE static void multiply(const RnnStep& step) {
    step.multiply(step.h, 0, kGates, step.xw, kGates * step.units);
  }
  template <bool IsUsual>
  static void update(const RnnStep& step, int b) {
    constexpr Lanes<kLanes> lane{};
    const RnnGate<IsUsual> gate{step.options, step.direction};
    const std::ptrdiff_t units = step.units;
    const float* const gates = step.gates + b * kGates * units;
    const float* const peep =
        step.operands.peepholes == nullptr ? nullptr : step.operands.peepholes + step.direction * 3 * units;
    float* const c = step.c + b * units;
    float* const h = step.h + b * units;
    for_each_unit(units, [&](std::ptrdiff_t u) GCRT_LAMBDA_INLINE {
      auto state = load(lane, c + u);
      const auto peephole = [&](int k) GCRT_LAMBDA_INLINE { return load(lane, peep + k * units + u); };
      const auto sum = [&](int k) GCRT_LAMBDA_INLINE { return load(lane, gates + k * units + u); };
      store(lane, h + u, lstm_unit(gate, sum(0), sum(1), sum(2), sum(3), peep != nullptr, peephole, state));
      store(lane, c + u, state);
    });
  }
};

struct GruCell {
  static constexpr int kGates = 3;
  static constexpr int kActivations = 2;
  GCRT_INLINE static void multiply(const RnnStep& step) {
    const std::ptrdiff_t units = step.units;
    step.multiply(step.h, 0, 2, step.xw, kGates * units);
    if (step.options.linear_before_reset) {
      const float* const bias = step.operands.recurrent_bias;
      step.multiply(step.h, 2, 3, bias == nullptr ? nullptr : bias + step.direction * units, 0);
      return;
    }
    const bool usual = is_usual(step.options, step.direction, 1);
    for (int b = 0; b < step.shape.batch; ++b) {
      if (usual) {
        reset<true>(step, b);
      } else {
        reset<false>(step, b);
      }
    }
    step.multiply(step.reset_h, 2, 3, step.xw + 2 * units, kGates * units);
  }
  // reset_h = r * h.
  template <bool IsUsual>
  GCRT_INLINE static void reset(const RnnStep& step, int b) {
    constexpr Lanes<kLanes> lane{};
    const RnnGate<IsUsual> gate{step.options, step.direction};
    const float* const r = step.gates + (b * kGates + 1) * step.units;
    for_each_unit(step.units, [&](std::ptrdiff_t u) GCRT_LAMBDA_INLINE {
      store(lane, step.reset_h + b * step.units + u,
            gate.template apply<0>(load(lane, r + u)) * load(lane, step.h + b * step.units + u));
    });
  }
  template <bool IsUsual>
  static void update(const RnnStep& step, int b) {
    constexpr Lanes<kLanes> lane{};
    const RnnGate<IsUsual> gate{step.options, step.direction};
    const std::ptrdiff_t units = step.units;
    const float* const gates = step.gates + b * kGates * units;
    const float* const xw = step.xw + b * kGates * units;
    float* const h = step.h + b * units;
    for_each_unit(units, [&](std::ptrdiff_t u) GCRT_LAMBDA_INLINE {
      auto candidate = load(lane, gates + 2 * units + u);
      if (step.options.linear_before_reset) {
        const auto r = gate.template apply<0>(load(lane, gates + units + u));
        candidate = fma(r, candidate, load(lane, xw + 2 * units + u));
      }
      store(lane, h + u, gru_unit(gate, load(lane, gates + u), candidate, load(lane, h + u)));
    });
  }
};

struct RnnCell {
  static constexpr int kGates = 1;
  static constexpr int kActivations = 1;
  GCRT_INLINE static void multiply(const RnnStep& step) { step.multiply(step.h, 0, 1, step.xw, step.units); }
  template <bool IsUsual>
  static void update(const RnnStep& step, int b) {
    constexpr Lanes<kLanes> lane{};
    const RnnGate<false> gate{step.options, step.direction};
    for_each_unit(step.units, [&](std::ptrdiff_t u) GCRT_LAMBDA_INLINE {
      const auto sum = gate.template apply<0>(load(lane, step.gates + b * step.units + u));
      store(lane, step.h + b * step.units + u, sum);
    });
  }
};

// Copies rows of H units from [B][H] (null: zeros) into padded rows.
inline void load_state(const float* from, int batch, int hidden, std::ptrdiff_t units, float* to) {
  for (int b = 0; b < batch; ++b) {
    for (std::ptrdiff_t u = 0; u < units; ++u) {
      to[b * units + u] = from != nullptr && u < hidden ? from[std::ptrdiff_t{b} * hidden + u] : 0.0f;
    }
  }
}
inline void store_state(const float* from, int batch, int hidden, std::ptrdiff_t units, float* to) {
  if (to == nullptr) return;
  for (int b = 0; b < batch; ++b) {
    __builtin_memcpy(to + std::ptrdiff_t{b} * hidden, from + b * units, static_cast<std::size_t>(hidden) * 4);
  }
}

// One step: new states of the sequences that have not ended, and their outputs.
template <class Cell>
inline void rnn_step(const RnnStep& step, bool is_usual_cell, int t) {
  const RnnShape& s = step.shape;
  Cell::multiply(step);
  for (int b = 0; b < s.batch; ++b) {
    const std::int32_t* const lengths = step.operands.lengths;
    const bool has_ended = lengths != nullptr && t >= lengths[b];
    if (!has_ended) {
      if (is_usual_cell) {
        Cell::template update<true>(step, b);
      } else {
        Cell::template update<false>(step, b);
      }
    }
    if (step.operands.y == nullptr) continue;
    float* const y =
        step.operands.y + ((std::ptrdiff_t{t} * s.directions + step.direction) * s.batch + b) * s.hidden;
    if (has_ended) {
      __builtin_memset(y, 0, static_cast<std::size_t>(s.hidden) * 4);
    } else {
      __builtin_memcpy(y, step.h + b * step.units, static_cast<std::size_t>(s.hidden) * 4);
    }
  }
}

template <class Cell>
inline void rnn_direction(const RnnShape& s, const RnnOperands& o, const RnnOptions& options, int block,
                          int direction) {
  constexpr int kGates = Cell::kGates;
  const std::ptrdiff_t units = rnn_padded_units(s.hidden);
  const std::ptrdiff_t row = kGates * units;
  const std::ptrdiff_t states = std::ptrdiff_t{direction} * s.batch * s.hidden;
  const bool reverse = s.directions == 2 ? direction == 1 : s.reverse;
  float* const h = o.scratch;
  float* const c = h + s.batch * units;
  float* const reset_h = c + s.batch * units;
  float* const gates = reset_h + s.batch * units;
  float* const xw = gates + s.batch * row;
  RnnStep step{s, o, options, direction, units, kGates, xw, gates, h, c, reset_h};
  load_state(o.initial_h == nullptr ? nullptr : o.initial_h + states, s.batch, s.hidden, units, h);
  load_state(o.initial_c == nullptr ? nullptr : o.initial_c + states, s.batch, s.hidden, units, c);
  const bool is_usual_cell = is_usual(options, direction, Cell::kActivations);
  for (int done = 0; done < s.steps; done += block) {
    const int count = s.steps - done < block ? s.steps - done : block;
    const int first = reverse ? s.steps - done - count : done;
    gemm(std::ptrdiff_t{count} * s.batch, row, s.input, o.x + std::ptrdiff_t{first} * s.batch * s.input,
         s.input, o.w_packed + direction * row * s.input,
         RnnSumEpilogue{xw, row, o.bias == nullptr ? nullptr : o.bias + direction * row, 0});
    for (int i = 0; i < count; ++i) {
      const int within = reverse ? count - 1 - i : i;
      step.xw = xw + within * s.batch * row;
      rnn_step<Cell>(step, is_usual_cell, first + within);
    }
  }
  store_state(h, s.batch, s.hidden, units, o.y_h == nullptr ? nullptr : o.y_h + states);
  store_state(c, s.batch, s.hidden, units, o.y_c == nullptr ? nullptr : o.y_c + states);
}

template <class Cell>
inline void run_recurrence(const RnnShape& s, const RnnOperands& operands, const RnnOptions& options,
                           int block) {
  for (int d = 0; d < s.directions; ++d) rnn_direction<Cell>(s, operands, options, block, d);
}

inline void lstm(const RnnShape& s, const RnnOperands& operands, const RnnOptions& options, int block) {
  run_recurrence<LstmCell>(s, operands, options, block);
}
inline void gru(const RnnShape& s, const RnnOperands& operands, const RnnOptions& options, int block) {
  run_recurrence<GruCell>(s, operands, options, block);
}
inline void rnn(const RnnShape& s, const RnnOperands& operands, const RnnOptions& options, int block) {
  run_recurrence<RnnCell>(s, operands, options, block);
}

}  // namespace GCRT_NAMESPACE
