// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How a recurrence is spread over blocks and launches, computed when the model is compiled.
// Needs no CUDA header.
#pragma once

#include "gcrt/cuda/product/tile_model.h"
#include "gcrt/rnn_shape.h"

namespace GCRT_NAMESPACE {

constexpr int kRnnThreads = 512;
constexpr int kRnnParts = 32;        // of the depth of a product, at most
constexpr int kRnnBlockUnits = 16;   // of a block, where a launch computes one step
constexpr int kRnnMostUnits = 8192;  // hidden units that fit the shared memory of every device

struct RnnPlan {
  int batch_tile;     // sequences per block: 1, 2 or 4
  int kept;           // packs of weights that a thread keeps in registers; 0: a launch for each step
  int step_launches;  // of one step, where each has its own
  int chunk_steps;    // whose X * W is held at a time
};

constexpr int rnn_row_units(int hidden) { return (hidden + 3) / 4 * 4; }

// Units of one gate in a block.
constexpr int rnn_block_units(const RnnShape& s, const RnnPlan& plan) {
  return plan.kept > 0 ? rnn_row_units(s.hidden) : kRnnBlockUnits;
}

// Into how many parts a block splits the depth of a product with that many columns, 4 to a thread.
GCRT_INLINE constexpr int rnn_parts(int columns) {
  const int parts = kRnnThreads / (columns / 4);
  return parts < kRnnParts ? parts : kRnnParts;
}

// gates: LSTM 4, GRU 3, RNN 1. is_reset_first:
// of a GRU, whose candidate waits for the reset gate of all units.
//
// One block walks all steps of its sequences while the weights are few: it reads those that its registers do
// not hold in every step, at the speed of one multiprocessor. Beyond that a launch per step, over many
// blocks, is faster.
constexpr RnnPlan plan_rnn(const RnnShape& s, int gates, bool is_reset_first) {
  constexpr std::ptrdiff_t kWeightsPerLaunch = 80 * 1024;  // floats read in the time of a launch
  constexpr std::ptrdiff_t kMostSteps = 4096;              // with launches of their own
  constexpr std::ptrdiff_t kChunkFloats = 16 * 1024 * 1024;
  constexpr std::ptrdiff_t kBusyBlocks = 64;
  const int units = rnn_row_units(s.hidden);
  const std::ptrdiff_t weights = std::ptrdiff_t{gates} * units * s.hidden;
  RnnPlan plan{1, 0, is_reset_first ? 2 : 1, 1};
  const bool is_persistent = units <= kRnnThreads && (weights <= kWeightsPerLaunch * plan.step_launches ||
                                                      s.steps * plan.step_launches > kMostSteps);
  const auto blocks = [&](int tile) { return ceil_div(s.batch, tile) * s.directions; };
  if (is_persistent) {
    while (plan.batch_tile < 4 && 2 * plan.batch_tile * units <= kRnnThreads &&
           blocks(plan.batch_tile) > kBusyBlocks) {
      plan.batch_tile *= 2;
    }
    const std::ptrdiff_t needed = ceil_div(s.hidden, rnn_parts((is_reset_first ? 2 : gates) * units));
    const int most = (plan.batch_tile > 1 ? 8 : 12) / plan.step_launches;  // that fit the registers
    plan.kept = 1;
    while (plan.kept < needed && plan.kept < most) plan.kept = 2 * plan.kept < most ? 2 * plan.kept : most;
  } else {
    while (plan.batch_tile < 4 && plan.batch_tile < s.batch &&
           2 * plan.batch_tile * s.hidden <= kRnnMostUnits) {
      plan.batch_tile *= 2;
    }
  }
  const std::ptrdiff_t step_floats = std::ptrdiff_t{s.directions} * s.batch * gates * units;
  while (plan.chunk_steps < s.steps && 2 * plan.chunk_steps * step_floats <= kChunkFloats) {
    plan.chunk_steps *= 2;
  }
  if (plan.chunk_steps > s.steps && s.steps > 0) plan.chunk_steps = s.steps;
  return plan;
}

// Floats of X * W of one direction of a chunk.
constexpr std::ptrdiff_t rnn_chunk_floats(const RnnShape& s, int gates, const RnnPlan& plan) {
  return std::ptrdiff_t{plan.chunk_steps} * s.batch * gates * rnn_row_units(s.hidden);
}

// Floats of scratch: X * W of a chunk, and five states.
constexpr std::ptrdiff_t rnn_scratch_floats(const RnnShape& s, int gates, const RnnPlan& plan) {
  return s.directions * (rnn_chunk_floats(s, gates, plan) + 5 * std::ptrdiff_t{s.batch} * s.hidden);
}

// The product X * W of a chunk, for both directions at once.
constexpr Plan plan_rnn_input(const DeviceModel& device, const RnnShape& s, int gates, const RnnPlan& plan) {
  return plan_gemm(device, Precision::kFp32, std::ptrdiff_t{plan.chunk_steps} * s.batch,
                   std::ptrdiff_t{gates} * rnn_row_units(s.hidden), s.input, s.directions);
}

constexpr std::ptrdiff_t rnn_launches(const RnnShape& s, const RnnPlan& plan) {
  const std::ptrdiff_t steps = s.steps > 0 ? s.steps : 1;
  const std::ptrdiff_t chunks = ceil_div(steps, plan.chunk_steps);
  return chunks + (plan.kept > 0 ? chunks : steps * plan.step_launches);
}

// Microseconds of a recurrence: the products X * W, then steps that wait for one another, each as long as a
// block takes for its sequences, or as launches of its own take.
constexpr double rnn_microseconds(const DeviceModel& device, const RnnShape& s, int gates,
                                  const RnnPlan& plan, const Plan& product) {
  constexpr double kStepClocks = 600;  // two barriers, the functions of the gates
  const double chunks = real(ceil_div(s.steps > 0 ? s.steps : 1, plan.chunk_steps));
  const double weights = 1.0 * gates * rnn_row_units(s.hidden) * s.hidden;
  const double steps = real(s.steps);
  if (plan.kept > 0) {
    const double step = kStepClocks + weights * plan.batch_tile / scalar_products_per_clock(device);
    return chunks * (product.time.microseconds() + started(device, false).microseconds()) +
           clocks_to_microseconds(device, steps * step);
  }
  const double products = weights * s.batch * s.directions;
  const double bytes = 4 * weights * s.directions;  // which stay in the cache
  return chunks * product.time.microseconds() + steps * streaming_time(device, plan.step_launches, false, 0,
                                                                       bytes, products,
                                                                       scalar_products_per_clock(device))
                                                            .microseconds();
}

}  // namespace GCRT_NAMESPACE
