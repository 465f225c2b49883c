// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// LSTM, GRU and RNN as ONNX defines them, layout 0, float.
//
// X * W + bias is one matrix product for many steps and both directions. The recurrence itself then runs
// either in one launch, where a block walks the steps of its sequences and keeps their state in shared
// memory, or in one launch per step, where blocks share the units: see plan_rnn. Every sum has a fixed order.
#pragma once

#include "gcrt/cuda/rnn_block.h"

namespace GCRT_NAMESPACE {

// D directions, T steps, B images of the batch, I inputs, H units, P = H rounded up to a multiple of 4, K = I
// rounded up to a multiple of 16. Gates: LSTM i o f c, GRU z r h, RNN one. Optional pointers may be null; all
// weights are 16-byte aligned.
struct RnnOperands {
  const float* x;               // [T][B][I]
  const float* w_packed;        // [D][gates][P][K], zero padded
  const float* r_packed;        // [D][H][gates][P], zero padded: weights to a unit lie along H
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
  float* scratch;               // rnn_scratch_floats, 16-byte aligned
};

// Stores a chunk of X * W + bias.
struct RnnInputEpilogue {
  static constexpr int kMaxLanes = 4;
  float* y;
  const float* bias;
  std::ptrdiff_t row;             // floats of a row: all gates of one sequence in one step
  std::ptrdiff_t direction_size;  // floats of a direction
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    if (bias != nullptr) sums = sums + load(lane, bias + n);
    store(lane, y + m * row + n, sums);
  }
  GCRT_INLINE RnnInputEpilogue at_batch(std::ptrdiff_t z) const {
    return {y + z * direction_size, bias == nullptr ? nullptr : bias + z * row, row, direction_size};
  }
};

// The cells: the state of one unit of one sequence, in registers, and one step of it. `x` and `sums` are what
// X and the state contribute to each gate.
struct LstmUnit {
  static constexpr int kGates = 4;
  float h = 0.0f;
  float c = 0.0f;
  float peepholes[3] = {};
  template <class Place>
  GCRT_DEVICE void load_state(const RnnWork& w, const Place& place) {
    if (w.h_in != nullptr) h = w.h_in[place.state];
    if (w.c_in != nullptr) c = w.c_in[place.state];
    if (w.peepholes == nullptr) return;
    GCRT_UNROLL
    for (int k = 0; k < 3; ++k)
      peepholes[k] = w.peepholes[(place.direction * 3 + k) * w.units + place.unit()];
  }
  template <bool IsUsual>
  GCRT_DEVICE void step(const RnnWork& w, const RnnGate<IsUsual>& gate, const float (&x)[kGates],
                        const float (&sums)[kGates]) {
    const auto peephole = [&](int k) { return peepholes[k]; };
    h = lstm_unit(gate, x[0] + sums[0], x[1] + sums[1], x[2] + sums[2], x[3] + sums[3],
                  w.peepholes != nullptr, peephole, c);
  }
  template <class Place>
  GCRT_DEVICE void store_state(const RnnWork& w, const Place& place) const {
    if (w.h_out != nullptr) w.h_out[place.state] = h;
    if (w.c_out != nullptr) w.c_out[place.state] = c;
  }
};

// linear_before_reset: the reset gate scales what the state contributes, so one product serves all gates.
struct LinearGruUnit {
  static constexpr int kGates = 3;
  float h = 0.0f;
  float bias = 0.0f;
  template <class Place>
  GCRT_DEVICE void load_state(const RnnWork& w, const Place& place) {
    if (w.h_in != nullptr) h = w.h_in[place.state];
    if (w.recurrent_bias != nullptr) bias = w.recurrent_bias[place.direction * w.units + place.unit()];
  }
  template <bool IsUsual>
  GCRT_DEVICE void step(const RnnWork&, const RnnGate<IsUsual>& gate, const float (&x)[kGates],
                        const float (&sums)[kGates]) {
    const float reset = gate.template apply<0>(x[1] + sums[1]);
    h = gru_unit(gate, x[0] + sums[0], fma(reset, sums[2] + bias, x[2]), h);
  }
  template <class Place>
  GCRT_DEVICE void store_state(const RnnWork& w, const Place& place) const {
    if (w.h_out != nullptr) w.h_out[place.state] = h;
  }
};

struct RnnUnit {
  static constexpr int kGates = 1;
  float h = 0.0f;
  template <class Place>
  GCRT_DEVICE void load_state(const RnnWork& w, const Place& place) {
    if (w.h_in != nullptr) h = w.h_in[place.state];
  }
  template <bool IsUsual>
  GCRT_DEVICE void step(const RnnWork&, const RnnGate<IsUsual>& gate, const float (&x)[kGates],
                        const float (&sums)[kGates]) {
    h = gate.template apply<0>(x[0] + sums[0]);
  }
  template <class Place>
  GCRT_DEVICE void store_state(const RnnWork& w, const Place& place) const {
    if (w.h_out != nullptr) w.h_out[place.state] = h;
  }
};

// Cells whose step is one product with the state.
template <class Unit, int kBatchTile, int kKept, bool kIsUsual>
GCRT_GLOBAL(kRnnThreads)
void recurrence_kernel(RnnWork w) {
  constexpr int kGates = Unit::kGates;
  GCRT_DYNAMIC_SHARED(float, rows);
  float* const sums = rows + rnn_state_floats<kBatchTile>(w.shape.hidden);
  const RnnPlace<kBatchTile> place(w);
  const RnnGate<kIsUsual> gate{w.options, place.direction};
  const RnnProduct<kBatchTile, kKept> product(w, place, kGates, 0, kGates);
  Unit unit;
  if (place.is_owner) unit.load_state(w, place);
  place.load_states(w, w.h_in, rows);
  barrier();
  for (int i = 0; i < w.count; ++i) {
    float x[kGates] = {};
    if (place.is_owner) {
      const float* const inputs = place.inputs(w, i, kGates);
      GCRT_UNROLL
      for (int g = 0; g < kGates; ++g) x[g] = inputs[g * w.units];
    }
    product.multiply(rows, sums);
    barrier();
    if (place.is_owner) {
      const int t = place.time(w, i);
      const bool ended = place.has_ended(w, t);
      if (!ended) {
        float from_state[kGates];
        GCRT_UNROLL
        for (int g = 0; g < kGates; ++g) from_state[g] = product.sum(sums, place, g);
        unit.step(w, gate, x, from_state);
        place.own(rows) = unit.h;
      }
      place.store_output(w, t, ended, unit.h);
    }
    barrier();
  }
  if (place.is_owner) unit.store_state(w, place);
}

// GRU whose candidate comes from reset gate * state: two products per step. kFirst: the gates z and r;
// kSecond: the candidate and the new state.
// A launch that computes one of them hands over through w.z and w.reset_h.
template <bool kFirst, bool kSecond, int kBatchTile, int kKept, bool kIsUsual>
GCRT_GLOBAL(kRnnThreads)
void gru_kernel(RnnWork w) {
  GCRT_DYNAMIC_SHARED(float, rows);
  float* const sums = rows + rnn_state_floats<kBatchTile>(w.shape.hidden);
  const RnnPlace<kBatchTile> place(w);
  const RnnGate<kIsUsual> gate{w.options, place.direction};
  const RnnProduct<kBatchTile, kFirst ? kKept : 0> gates(w, place, 3, 0, 2);
  const RnnProduct<kBatchTile, kSecond ? kKept : 0> candidates(w, place, 3, 2, 1);
  float h = place.is_owner && w.h_in != nullptr ? w.h_in[place.state] : 0.0f;
  place.load_states(w, kFirst ? w.h_in : w.reset_h, rows);
  barrier();
  for (int i = 0; i < w.count; ++i) {
    float x[3] = {};
    if (place.is_owner) {
      const float* const inputs = place.inputs(w, i, 3);
      GCRT_UNROLL
      for (int g = 0; g < 3; ++g) x[g] = inputs[g * w.units];
    }
    float z = 0.0f;
    if constexpr (kFirst) {
      gates.multiply(rows, sums);
      barrier();
      if (place.is_owner) {
        z = x[0] + gates.sum(sums, place, 0);
        const float reset = gate.template apply<0>(x[1] + gates.sum(sums, place, 1)) * h;
        if constexpr (kSecond) {
          place.own(rows) = reset;
        } else {
          w.z[place.state] = z;
          w.reset_h[place.state] = reset;
        }
      }
      barrier();
    } else if (place.is_owner) {
      z = w.z[place.state];
    }
    if constexpr (kSecond) {
      candidates.multiply(rows, sums);
      barrier();
      if (place.is_owner) {
        const int t = place.time(w, i);
        const bool ended = place.has_ended(w, t);
        if (!ended) h = gru_unit(gate, z, x[2] + candidates.sum(sums, place, 0), h);
        place.own(rows) = h;
        place.store_output(w, t, ended, h);
      }
      barrier();
    }
  }
  if (kSecond && place.is_owner && w.h_out != nullptr) w.h_out[place.state] = h;
}

// A tile of sequences and of weights in registers: batch_tile and kept of the plan.
template <int kBatchTileOfPlan, int kKeptOfPlan>
struct RnnTile {
  static constexpr int kBatchTile = kBatchTileOfPlan;
  static constexpr int kKept = kKeptOfPlan;
};

// Starts the steps of `w`: all its steps at once, or one.
template <class Unit, class T, bool kIsUsual>
struct StartRecurrence {
  static constexpr int kGates = Unit::kGates;
  static void start(Queue& queue, dim3 grid, std::size_t shared_bytes, const RnnWork& w) {
    launch(queue, grid, dim3(kRnnThreads), shared_bytes,
           recurrence_kernel<Unit, T::kBatchTile, T::kKept, kIsUsual>, w);
  }
};
struct ResetFirstGruUnit {
  static constexpr int kGates = 3;
};
template <class T, bool kIsUsual>
struct StartRecurrence<ResetFirstGruUnit, T, kIsUsual> {
  static constexpr int kGates = 3;
  static void start(Queue& queue, dim3 grid, std::size_t shared_bytes, const RnnWork& w) {
    if constexpr (T::kKept > 0) {
      launch(queue, grid, dim3(kRnnThreads), shared_bytes,
             gru_kernel<true, true, T::kBatchTile, T::kKept, kIsUsual>, w);
    } else {
      launch(queue, grid, dim3(kRnnThreads), shared_bytes,
             gru_kernel<true, false, T::kBatchTile, 0, kIsUsual>, w);
      launch(queue, grid, dim3(kRnnThreads), shared_bytes,
             gru_kernel<false, true, T::kBatchTile, 0, kIsUsual>, w);
    }
  }
};

template <Tile kTile, class T, bool kIsUsual, class Unit, class Split>
inline void run_recurrence(Queue& queue, const RnnShape& s, const RnnOperands& o, const RnnOptions& options,
                           int chunk_steps, const Split& split) {
  using Start = StartRecurrence<Unit, T, kIsUsual>;
  constexpr int kGates = Start::kGates;
  constexpr bool kIsStepwise = T::kKept == 0;
  const RnnPlan plan{T::kBatchTile, T::kKept, 0, chunk_steps};
  const int units = rnn_row_units(s.hidden);
  const int row = kGates * units;
  const int row_depth = (s.input + 15) / 16 * 16;
  const std::ptrdiff_t states = std::ptrdiff_t{s.directions} * s.batch * s.hidden;
  const std::ptrdiff_t direction_size = rnn_chunk_floats(s, kGates, plan);
  float* const xw = o.scratch;
  float* const state = xw + s.directions * direction_size;  // h, h of the next step, c, z, reset_h
  RnnWork w{};
  w.shape = s;
  w.options = options;
  w.units = units;
  w.block_units = rnn_block_units(s, plan);
  w.direction_size = direction_size;
  w.xw = xw;
  w.r = o.r_packed;
  w.recurrent_bias = o.recurrent_bias;
  w.peepholes = o.peepholes;
  w.lengths = o.lengths;
  w.z = state + 3 * states;
  w.reset_h = state + 4 * states;
  w.y = o.y;
  const dim3 grid(blocks_for(units, w.block_units), blocks_for(s.batch, T::kBatchTile),
                  static_cast<unsigned>(s.directions));
  const std::size_t shared_bytes =
      sizeof(float) * static_cast<std::size_t>(rnn_state_floats<T::kBatchTile>(s.hidden) +
                                               RnnProduct<T::kBatchTile, 0>::kSums);
  w.h_in = o.initial_h;
  w.c_in = o.initial_c;
  // `count` steps from w.first on; the states go to the results after the last one.
  const auto run_steps = [&](int count) {
    const bool is_last = w.first + count >= s.steps;
    // Other blocks may still read the old state where blocks share the units.
    float* const next = kIsStepwise && w.h_in == state ? state + states : state;
    w.count = count;
    w.h_out = is_last ? o.y_h : next;
    w.c_out = is_last ? o.y_c : state + 2 * states;
    Start::start(queue, grid, shared_bytes, w);
    w.h_in = w.h_out;
    w.c_in = w.c_out;
    w.first += count;
  };
  if (s.steps == 0) run_steps(0);
  for (w.chunk_first = 0; w.chunk_first < s.steps; w.chunk_first += chunk_steps) {
    const int left = s.steps - w.chunk_first;
    const int count = left < chunk_steps ? left : chunk_steps;
    w.chunk_count = count;
    // Where the chunk begins in x: backwards in time for the reverse direction.
    const std::ptrdiff_t step_size = std::ptrdiff_t{s.batch} * s.input;
    const std::ptrdiff_t forward = w.chunk_first * step_size;
    const std::ptrdiff_t backward = (left - count) * step_size;
    const std::ptrdiff_t first = s.directions == 1 && s.reverse ? backward : forward;
    const GemmBatch directions{s.directions, 1, backward - forward, 0, std::ptrdiff_t{row} * row_depth, 0};
    gemm<Precision::kFp32, kTile>(queue, count * s.batch, row, s.input, o.x + first, s.input, o.w_packed,
                                  row_depth, directions, split,
                                  RnnInputEpilogue{xw, o.bias, row, direction_size});
    if constexpr (kIsStepwise) {
      for (int i = 0; i < count; ++i) run_steps(1);
    } else {
      run_steps(count);
    }
  }
}

// kTile and `split` of plan_rnn_input, RnnTile<batch_tile, kept> and chunk_steps of plan_rnn; kIsUsual:
// is_usual() of every direction. At most rnn_launches launches.
template <Tile kTile, class T, bool kIsUsual, class Split>
inline void lstm(Queue& queue, const RnnShape& s, const RnnOperands& operands, const RnnOptions& options,
                 int chunk_steps, const Split& split) {
  run_recurrence<kTile, T, kIsUsual, LstmUnit>(queue, s, operands, options, chunk_steps, split);
}
// GRU without and with linear_before_reset.
template <Tile kTile, class T, bool kIsUsual, class Split>
inline void gru(Queue& queue, const RnnShape& s, const RnnOperands& operands, const RnnOptions& options,
                int chunk_steps, const Split& split) {
  run_recurrence<kTile, T, kIsUsual, ResetFirstGruUnit>(queue, s, operands, options, chunk_steps, split);
}
template <Tile kTile, class T, bool kIsUsual, class Split>
inline void gru_linear(Queue& queue, const RnnShape& s, const RnnOperands& operands,
                       const RnnOptions& options, int chunk_steps, const Split& split) {
  run_recurrence<kTile, T, kIsUsual, LinearGruUnit>(queue, s, operands, options, chunk_steps, split);
}
template <Tile kTile, class T, bool kIsUsual, class Split>
inline void rnn(Queue& queue, const RnnShape& s, const RnnOperands& operands, const RnnOptions& options,
                int chunk_steps, const Split& split) {
  run_recurrence<kTile, T, kIsUsual, RnnUnit>(queue, s, operands, options, chunk_steps, split);
}

}  // namespace GCRT_NAMESPACE
