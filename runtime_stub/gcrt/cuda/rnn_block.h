// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the blocks of a recurrence are made of:
// their place in the work, and products of the state with weights.
#pragma once

#include "gcrt/cuda/product/gemm.h"
#include "gcrt/cuda/rnn_plan.h"
#include "gcrt/rnn_cell.h"

namespace GCRT_NAMESPACE {

// The work of one launch: `count` steps of a chunk. States are [D][B][H]; h_in may be null for zeros, h_out,
// c_out and y where nobody asks for them.
struct RnnWork {
  RnnShape shape;
  RnnOptions options;
  int units;                      // of a gate, padded
  int block_units;                // of a gate in one block
  int first;                      // steps before this launch, counted as the recurrence runs
  int count;                      // steps of this launch
  int chunk_first;                // steps before the chunk
  int chunk_count;                // steps of the chunk
  std::ptrdiff_t direction_size;  // floats from one direction to the next in xw
  const float* xw;                // [D] of [chunk_count][B][gates][units], in the order of time
  const float* r;                 // [D][H][gates][units]
  const float* recurrent_bias;    // [D][units]
  const float* peepholes;         // [D][3][units]
  const std::int32_t* lengths;
  const float* h_in;
  float* h_out;
  const float* c_in;
  float* c_out;
  float* z;        // GRU with two launches per step: between them
  float* reset_h;  // likewise
  float* y;
};

// Where the calling thread stands: its block computes `block_units` units of all gates for kBatchTile
// sequences, and the thread owns one unit of one sequence.
template <int kBatchTile>
struct RnnPlace {
  int direction;
  int first_sequence;
  int first_unit;
  int block_units;
  int local_sequence;
  int local_unit;
  bool is_owner;
  bool is_reverse;
  std::ptrdiff_t state;  // of the owned unit in [D][B][H]

  GCRT_DEVICE explicit RnnPlace(const RnnWork& w) {
    const int thread = static_cast<int>(threadIdx.x);
    direction = static_cast<int>(blockIdx.z);
    first_sequence = static_cast<int>(blockIdx.y) * kBatchTile;
    first_unit = static_cast<int>(blockIdx.x) * w.block_units;
    block_units = w.units - first_unit < w.block_units ? w.units - first_unit : w.block_units;
    local_sequence = thread / block_units;
    local_unit = thread % block_units;
    is_owner = local_sequence < kBatchTile && sequence() < w.shape.batch && unit() < w.shape.hidden;
    is_reverse = w.shape.directions == 2 ? direction == 1 : w.shape.reverse;
    state = (std::ptrdiff_t{direction} * w.shape.batch + sequence()) * w.shape.hidden + unit();
  }
  GCRT_DEVICE int sequence() const { return first_sequence + local_sequence; }
  GCRT_DEVICE int unit() const { return first_unit + local_unit; }

  // The step of the sequence that step `i` of the launch is.
  GCRT_DEVICE int time(const RnnWork& w, int i) const {
    return is_reverse ? w.shape.steps - 1 - w.first - i : w.first + i;
  }
  // What X * W adds to gate 0 of the owned unit in step `i`; the other gates follow `units` apart.
  GCRT_DEVICE const float* inputs(const RnnWork& w, int i, int gates) const {
    const int walked = w.first + i - w.chunk_first;
    const int within = is_reverse ? w.chunk_count - 1 - walked : walked;
    return w.xw + direction * w.direction_size +
           (std::ptrdiff_t{within} * w.shape.batch + sequence()) * gates * w.units + unit();
  }
  GCRT_DEVICE bool has_ended(const RnnWork& w, int t) const {
    return w.lengths != nullptr && t >= w.lengths[sequence()];
  }
  GCRT_DEVICE void store_output(const RnnWork& w, int t, bool ended, float h) const {
    if (w.y == nullptr) return;
    const std::ptrdiff_t row = (std::ptrdiff_t{t} * w.shape.directions + direction) * w.shape.batch;
    w.y[(row + sequence()) * w.shape.hidden + unit()] = ended ? 0.0f : h;
  }
  // The states of the block's sequences, all units, as [H][kBatchTile] in shared memory; null: zeros.
  GCRT_DEVICE void load_states(const RnnWork& w, const float* from, float* rows) const {
    const int hidden = w.shape.hidden;
    for (int i = static_cast<int>(threadIdx.x); i < hidden * kBatchTile; i += kRnnThreads) {
      const int b = i / hidden;
      const int u = i % hidden;
      const bool exists = from != nullptr && first_sequence + b < w.shape.batch;
      const std::ptrdiff_t row = std::ptrdiff_t{direction} * w.shape.batch + first_sequence + b;
      rows[u * kBatchTile + b] = exists ? from[row * hidden + u] : 0.0f;
    }
  }
  GCRT_DEVICE float& own(float* rows) const { return rows[unit() * kBatchTile + local_sequence]; }
};

// Products of the block's states with the weights of some gates. A thread computes 4 columns over every
// parts-th k; the parts meet in shared memory, in a fixed order. The weights of the first kKept of its k stay
// in registers.
template <int kBatchTile, int kKept>
class RnnProduct {
 public:
  // Floats of `sums`.
  static constexpr int kSums = kRnnThreads * 4 * kBatchTile;

  GCRT_DEVICE RnnProduct(const RnnWork& w, const RnnPlace<kBatchTile>& place, int gates, int first_gate,
                         int gate_count)
      : hidden_(w.shape.hidden), row_(gates * w.units), block_units_(place.block_units) {
    const int quads = gate_count * place.block_units / 4;
    const int quad = static_cast<int>(threadIdx.x) % quads;
    const int gate = first_gate + quad / (place.block_units / 4);
    const int unit = place.first_unit + quad % (place.block_units / 4) * 4;
    columns_ = 4 * quads;
    parts_ = rnn_parts(columns_);
    part_ = static_cast<int>(threadIdx.x) / quads;
    column_ = 4 * quad;
    weights_ = w.r + (std::ptrdiff_t{place.direction} * hidden_ * gates + gate) * w.units + unit;
    GCRT_UNROLL
    for (int j = 0; j < kKept; ++j) kept_[j] = weights(part_ + j * parts_);
  }

  GCRT_DEVICE void multiply(const float* rows, float* sums) const {
    if (part_ >= parts_) return;
    Quad total[kBatchTile] = {};
    GCRT_UNROLL
    for (int j = 0; j < kKept; ++j) add(part_ + j * parts_, kept_[j], rows, total);
    int k = part_ + kKept * parts_;
    for (; k + 3 * parts_ < hidden_; k += 4 * parts_) {
      Quad loaded[4];
      GCRT_UNROLL
      for (int j = 0; j < 4; ++j) loaded[j] = weights(k + j * parts_);
      GCRT_UNROLL
      for (int j = 0; j < 4; ++j) add(k + j * parts_, loaded[j], rows, total);
    }
    for (; k < hidden_; k += parts_) add(k, weights(k), rows, total);
    GCRT_UNROLL
    for (int b = 0; b < kBatchTile; ++b) {
      store(Lanes<4>{}, sums + (part_ * kBatchTile + b) * columns_ + column_, total[b]);
    }
  }

  // The sum of the owned unit and gate first_gate + g, after a barrier.
  GCRT_DEVICE float sum(const float* sums, const RnnPlace<kBatchTile>& place, int g) const {
    const float* const column = sums + place.local_sequence * columns_ + g * block_units_ + place.local_unit;
    float result = column[0];
    for (int p = 1; p < parts_; ++p) result += column[p * kBatchTile * columns_];
    return result;
  }

 private:
  using Quad = Pack<float, 4>;

  GCRT_DEVICE Quad weights(int k) const {
    if (k >= hidden_ || part_ >= parts_) return Quad{};
    return load(Lanes<4>{}, weights_ + std::ptrdiff_t{k} * row_);
  }
  GCRT_DEVICE void add(int k, const Quad& weights, const float* rows, Quad (&total)[kBatchTile]) const {
    if (k >= hidden_) return;
    alignas(4 * kBatchTile) float states[kBatchTile];  // written as a pack
    store(Lanes<kBatchTile>{}, states, load(Lanes<kBatchTile>{}, rows + k * kBatchTile));
    GCRT_UNROLL
    for (int b = 0; b < kBatchTile; ++b) {
      GCRT_UNROLL
      for (int i = 0; i < 4; ++i) total[b][i] = multiply_add(weights[i], states[b], total[b][i]);
    }
  }

  int hidden_;
  int row_;
  int block_units_;
  int columns_;
  int parts_;
  int part_;
  int column_;
  const float* weights_;
  Quad kept_[kKept > 0 ? kKept : 1];
};

// Shared memory of a block: the states of its sequences, then the sums of its products.
template <int kBatchTile>
GCRT_HOST_DEVICE int rnn_state_floats(int hidden) {
  return (hidden * kBatchTile + 3) / 4 * 4;
}

}  // namespace GCRT_NAMESPACE
