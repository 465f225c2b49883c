// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix products of many rows on sm_90a: one warpgroup copies tiles to a ring of stages in shared memory,
// the others multiply them and hand their sums to the epilogue. The interface is that of cuda/product/gemm.h,
// whose packed weights it reads.
//
// B is weights: it is read before the kernel in front has ended. A stage holds rows of A and of B, 128
// bytes of depth each, swizzled. `full` of a stage counts the bytes of its copies; `empty` counts the warps
// that have read it. The blocks of a cluster share a tile: each sums the steps of a part of the depth, and
// then adds and finishes rows of its own out of the shared memory of all, as those of ClusterSums do.
#pragma once

#include "gcrt/cuda/product/gemm.h"
#include "gcrt/cuda/product/hopper.h"
#include "gcrt/cuda/product/hopper_model.h"

namespace GCRT_NAMESPACE {

template <Precision P>
struct WgmmaOf;
template <>
struct WgmmaOf<Precision::kFp16> {
  static constexpr WgmmaKind kKind = WgmmaKind::kF16;
  using Weight = Half;
};
template <>
struct WgmmaOf<Precision::kBf16> {
  static constexpr WgmmaKind kKind = WgmmaKind::kBf16;
  using Weight = BFloat16;
};
template <>
struct WgmmaOf<Precision::kTf32> {
  static constexpr WgmmaKind kKind = WgmmaKind::kTf32;
  using Weight = Tf32;
};

template <Precision P, WgmmaTile kTile, int kDepthParts, class TA>
struct WgmmaConfig {
  static constexpr WgmmaSize kSize = size_of(kTile);
  static constexpr int kRows = kSize.rows;
  static constexpr int kColumns = kSize.columns;
  static constexpr int kStages = kSize.stages;
  static constexpr int kConsumers = kSize.consumers();
  static constexpr int kThreads = kConsumers * kWarpgroupThreads;  // that multiply: the first of the block
  static constexpr int kBlockThreads = kSize.threads();
  static constexpr int kParts = kDepthParts;     // of the depth, each of a block of the cluster
  static constexpr int kShare = kRows / kParts;  // rows that a block finishes
  static constexpr bool kHasFloatsOfA = sizeof(TA) == 4;
  static constexpr int kDepth = wgmma_depth(P);
  static constexpr int kBoxDepth = kSwizzleBytes / static_cast<int>(sizeof(TA));
  static constexpr int kBoxesOfA = kDepth / kBoxDepth;
  static constexpr int kProducts = kSwizzleBytes / kWgmmaDepthBytes;  // of a step
  static constexpr int kBoxBytesOfA = kRows * kSwizzleBytes;
  static constexpr int kBytesOfA = kBoxesOfA * kBoxBytesOfA;
  static constexpr int kBytesOfB = kColumns * kSwizzleBytes;
  static constexpr int kStageBytes = kBytesOfA + kBytesOfB;
  static constexpr int kSumStride = wgmma_sum_stride(kSize, sizeof(TA));
  static constexpr int kSharedBytes = wgmma_shared_bytes(kSize, P, sizeof(TA));
  static constexpr int kEmptyArrivals = kThreads / kWarpThreads;
  static_assert(kStageBytes == wgmma_stage_bytes(kSize, P, sizeof(TA)), "as the model has it");
  static_assert(kStageBytes % kSwizzlePattern == 0 && kBoxBytesOfA % kSwizzlePattern == 0, "whole patterns");
  static_assert(is_cluster(kSize, kParts), "as many blocks as run together");
};

// Stages and barriers of a block. The block's sums take the place of the stages in the end.
template <class Config>
struct WgmmaStages {
  unsigned char* shared;  // a multiple of kSwizzlePattern
  SharedBarrier* barriers;

  GCRT_DEVICE explicit WgmmaStages(unsigned char* unaligned)
      : shared(aligned_shared<kSwizzlePattern>(unaligned)),
        barriers(reinterpret_cast<SharedBarrier*>(unaligned + Config::kSharedBytes - 16 * Config::kStages)) {}
  GCRT_INLINE unsigned char* a(int stage) const { return shared + stage * Config::kStageBytes; }
  GCRT_INLINE unsigned char* b(int stage) const { return a(stage) + Config::kBytesOfA; }
  GCRT_INLINE SharedBarrier* full(int stage) const { return barriers + 2 * stage; }
  GCRT_INLINE SharedBarrier* empty(int stage) const { return barriers + 2 * stage + 1; }
  GCRT_DEVICE void init() const {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      barrier_init(full(stage), 1);
      barrier_init(empty(stage), Config::kEmptyArrivals);
    }
    fence_barrier_init();
  }
};

// Which stage of the ring comes next, and the parity of its phase.
template <int kStages>
struct RingPosition {
  int stage = 0;
  int parity = 0;
  GCRT_INLINE void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// The steps that a block sums.
struct StepRange {
  int first;
  int count;
};
// Those of its part of the depth: parts differ by one at most.
template <int kParts>
GCRT_DEVICE StepRange steps_of_part(int steps) {
  if constexpr (kParts == 1) {
    return {0, steps};
  } else {
    const int part = cluster_rank();
    const int least = steps / kParts;
    const int longer = steps - least * kParts;  // parts, the first ones
    return {part * least + (part < longer ? part : longer), part < longer ? least + 1 : least};
  }
}

// What the blocks of a launch compute: tiles of rows along x, of each of which the parts of the depth follow
// one another, and tiles of columns along y. Where A comes from, and where results go, is different for
// matrices and for images (hopper_conv.h).
struct WgmmaGrid {
  int rows;
  int columns;
  int steps;                                                // of the whole depth
  int inner_count;                                          // of the batch, which is along z
  bool a_has_inner, a_has_outer, b_has_inner, b_has_outer;  // axes of the batch that an operand has

  // Where the boxes of A lie, one behind the other.
  struct Boxes {
    BoxPosition at;
    GCRT_INLINE void advance(int elements) { at.depth += elements; }
  };
  template <class Config>
  GCRT_DEVICE Boxes boxes(int step) const {
    return {
        {step * Config::kDepth, first_row<Config>(), a_has_inner ? inner() : 0, a_has_outer ? outer() : 0}};
  }
  template <class Config>
  GCRT_DEVICE BoxPosition first_of_b(int step, int column) const {
    return {step * Config::kDepth, column, b_has_inner ? inner() : 0, b_has_outer ? outer() : 0};
  }
  // Bytes of a copied box of A.
  template <class Config>
  GCRT_DEVICE constexpr int box_bytes() const {
    return Config::kBoxBytesOfA;
  }
  // Rows of the tile that exist; where it reaches beyond the matrix it has more.
  template <class Config>
  GCRT_DEVICE int tile_rows() const {
    return rows - first_row<Config>();
  }
  // Rows of the tile from `first` on, which lie at `sums`.
  template <class Config, class E>
  GCRT_DEVICE void finish(const E& epilogue, const float* sums, int first, int column) const {
    finish_tile<Config, Config::kShare>(epilogue.at_batch(static_cast<int>(blockIdx.z)), sums,
                                        tile_rows<Config>() - first, columns - column,
                                        first_row<Config>() + first, column);
  }

 private:
  template <class Config>
  GCRT_DEVICE int first_row() const {
    return static_cast<int>(blockIdx.x) / Config::kParts * Config::kRows;
  }
  GCRT_DEVICE int outer() const { return static_cast<int>(blockIdx.z) / inner_count; }
  GCRT_DEVICE int inner() const { return static_cast<int>(blockIdx.z) - outer() * inner_count; }
};

// What one thread of a block does: all copies. B is weights, which are there before the kernel in front has
// ended: as many of its boxes as there are stages are on their way while that one still works.
template <class Config, class Grid>
GCRT_DEVICE void copy_steps(const WgmmaStages<Config>& stages, const TensorMap& map_a, const TensorMap& map_b,
                            const Grid& grid, const StepRange& steps, int column) {
  BoxPosition at_b = grid.template first_of_b<Config>(steps.first, column);
  const int bytes = Config::kBoxesOfA * grid.template box_bytes<Config>() + Config::kBytesOfB;
  const auto copy_b = [&](int stage) GCRT_LAMBDA_INLINE {
    barrier_expect(stages.full(stage), bytes);
    copy_box(stages.b(stage), map_b, at_b, stages.full(stage));
    at_b.depth += Config::kDepth;
  };
  GCRT_NO_UNROLL
  for (int step = 0; step < Config::kStages && step < steps.count; ++step) copy_b(step);
  await_previous_grid();
  auto boxes = grid.template boxes<Config>(steps.first);
  RingPosition<Config::kStages> at;
  GCRT_NO_UNROLL
  for (int step = 0; step < steps.count; ++step, at.advance()) {
    if (step >= Config::kStages) {
      barrier_wait(stages.empty(at.stage), at.parity ^ 1);
      copy_b(at.stage);
    }
    GCRT_UNROLL
    for (int box = 0; box < Config::kBoxesOfA; ++box) {
      copy_box(stages.a(at.stage) + box * Config::kBoxBytesOfA, map_a, boxes.at, stages.full(at.stage));
      boxes.advance(Config::kBoxDepth);
    }
  }
}

// A step is done with: a lane of each warp says so.
template <class Config>
GCRT_DEVICE void release_stage(const WgmmaStages<Config>& stages, int stage) {
  if (lane_rank() == 0) barrier_arrive(stages.empty(stage));
}

// Floats of A as fragments. Lane l holds rows 2 (l/4 % 4) + l/16 and that + 8 of its warp, in place of l/4
// and l/4 + 8: then the 16 lanes of one access to pairs read all 32 banks.
struct FragmentRows {
  int warp_row;
  int thread;  // of four
  GCRT_DEVICE FragmentRows() {
    const int lane = lane_rank();
    warp_row = 2 * (lane / 4 % 4) + lane / 16;
    thread = lane % 4;
  }
};

template <Precision P>
GCRT_DEVICE void read_fragment(std::uint32_t (&a)[4], const unsigned char* box, int row, int thread, int k) {
  // Element k of a row of 32 floats, behind the swizzle.
  const auto element = [&](int r, int column) GCRT_LAMBDA_INLINE {
    return reinterpret_cast<const float*>(box + r * kSwizzleBytes + ((column * 4) ^ ((r & 7) * 16)));
  };
  if constexpr (P == Precision::kTf32) {
    const float values[4] = {*element(row, k + thread), *element(row + 8, k + thread),
                             *element(row, k + thread + 4), *element(row + 8, k + thread + 4)};
    round_to_tf32(a, values);
  } else {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto pair = load(Lanes<2>{}, element(row + i % 2 * 8, k + 2 * thread + i / 2 * 8));
      a[i] = pack_pair<P>(pair[0], pair[1]);
    }
  }
}

// Adds the products of all steps, of which there is one at least, to the sums of this thread.
template <class Config, Precision P>
GCRT_DEVICE void multiply_steps(float (&sums)[Config::kColumns / 2], const WgmmaStages<Config>& stages,
                                int steps, int warpgroup) {
  constexpr WgmmaKind kKind = WgmmaOf<P>::kKind;
  constexpr int kColumns = Config::kColumns;
  RingPosition<Config::kStages> at;
  if constexpr (Config::kHasFloatsOfA) {
    const FragmentRows lanes;
    const int row = warpgroup * 64 + warp_rank() % 4 * 16 + lanes.warp_row;
    constexpr int kFloats = Config::kDepth / Config::kProducts;  // of depth, of one product
    std::uint32_t fragments[Config::kProducts][4];
    GCRT_NO_UNROLL
    for (int step = 0; step < steps; ++step, at.advance()) {
      barrier_wait(stages.full(at.stage), at.parity);
      GCRT_UNROLL
      for (int i = 0; i < Config::kProducts; ++i) {
        const int k = i * kFloats;
        read_fragment<P>(fragments[i], stages.a(at.stage) + k / 32 * Config::kBoxBytesOfA, row, lanes.thread,
                         k % 32);
      }
      const std::uint64_t b = wgmma_descriptor(stages.b(at.stage));
      wgmma_fence();
      GCRT_UNROLL
      for (int i = 0; i < Config::kProducts; ++i) wgmma<kKind, kColumns>(sums, fragments[i], advanced(b, i));
      wgmma_commit();
      wgmma_wait<0>();
      release_stage(stages, at.stage);
    }
  } else {
    // The products of one step are under way while those of the next are issued: the loop starts behind the
    // first step, for ptxas takes sums that enter it in another state for a reason to wait for each product.
    const auto issue = [&]() GCRT_LAMBDA_INLINE {
      barrier_wait(stages.full(at.stage), at.parity);
      const std::uint64_t a = wgmma_descriptor(stages.a(at.stage) + warpgroup * 64 * kSwizzleBytes);
      const std::uint64_t b = wgmma_descriptor(stages.b(at.stage));
      wgmma_fence();
      GCRT_UNROLL
      for (int i = 0; i < Config::kProducts; ++i) {
        wgmma<kKind, kColumns>(sums, advanced(a, i), advanced(b, i));
      }
      wgmma_commit();
    };
    issue();
    int previous = at.stage;
    at.advance();
    GCRT_NO_UNROLL
    for (int step = 1; step < steps; ++step, at.advance()) {
      issue();
      wgmma_wait<1>();
      release_stage(stages, previous);
      previous = at.stage;
    }
    wgmma_wait<0>();
    release_stage(stages, previous);
  }
}

// The sums of a warpgroup go to their rows in shared memory.
template <class Config>
GCRT_DEVICE void park_wgmma_sums(const float (&sums)[Config::kColumns / 2], float* parked, int warpgroup) {
  const FragmentRows lanes;
  const int warp_row = Config::kHasFloatsOfA ? lanes.warp_row : lane_rank() / 4;
  const int row = warpgroup * 64 + warp_rank() % 4 * 16 + warp_row;
  float* const to = parked + row * Config::kSumStride + 2 * lanes.thread;
  GCRT_UNROLL
  for (int j = 0; j < Config::kColumns / 8; ++j) {
    GCRT_UNROLL
    for (int h = 0; h < 2; ++h) {
      store(Lanes<2>{}, to + 8 * h * Config::kSumStride + 8 * j,
            Pack<float, 2>{sums[4 * j + 2 * h], sums[4 * j + 2 * h + 1]});
    }
  }
}

template <class Config, Precision P, class Grid, class E>
GCRT_GLOBAL_BLOCKS(Config::kBlockThreads, 1)
void wgmma_kernel(GCRT_GRID_CONSTANT TensorMap map_a, GCRT_GRID_CONSTANT TensorMap map_b, Grid grid,
                  E epilogue) {
  if (!is_compiled_here<E>()) return;
  GCRT_DYNAMIC_SHARED(unsigned char, unaligned);
  const WgmmaStages<Config> stages(unaligned);
  const int thread = static_cast<int>(threadIdx.x);
  const int warpgroup = thread / kWarpgroupThreads;
  const int column = static_cast<int>(blockIdx.y) * Config::kColumns;
  if (thread == 0) {
    prefetch_map(map_a);
    prefetch_map(map_b);
    stages.init();
  }
  barrier();
  const StepRange steps = steps_of_part<Config::kParts>(grid.steps);
  if (warpgroup == Config::kConsumers) {
    if constexpr (Config::kConsumers > 1) give_registers_back<40>();
    if (thread % kWarpgroupThreads == 0) {
      copy_steps(stages, map_a, map_b, grid, steps, column);
    } else {
      await_previous_grid();
    }
    if constexpr (Config::kParts > 1) {
      // The two of those that multiply.
      cluster_barrier();
      cluster_barrier();
    }
  } else {
    await_previous_grid();  // what the epilogue reads
    if constexpr (Config::kConsumers > 1) take_registers<232>();
    float sums[Config::kColumns / 2] = {};
    multiply_steps<Config, P>(sums, stages, steps.count, warpgroup);
    // Nobody reads stages any more, and all copies have landed.
    named_barrier<1, Config::kThreads>();
    float* const parked = reinterpret_cast<float*>(stages.shared);
    park_wgmma_sums<Config>(sums, parked, warpgroup);
    if constexpr (Config::kParts > 1) {
      const int part = cluster_rank();
      const int first = part * Config::kShare;
      float* const mine = parked + first * Config::kSumStride;
      cluster_barrier();
      add_parts_of_cluster<Config, Config::kParts, Config::kShare>(
          mine, part, grid.template tile_rows<Config>() - first, grid.columns - column);
      // All sums of this block are there, and nobody reads its shared memory any more.
      cluster_barrier();
      grid.template finish<Config>(epilogue, mine, first, column);
    } else {
      named_barrier<1, Config::kThreads>();
      grid.template finish<Config>(epilogue, parked, 0, column);
    }
  }
}

// Launches it over so many tiles of rows, and batch entries. The depth has a step at least for each part.
template <class Config, Precision P, class Grid, class E>
inline void launch_wgmma(Queue& queue, const TensorMap& map_a, const TensorMap& map_b, const Grid& grid,
                         std::ptrdiff_t tiles, int entries, const E& epilogue) {
  if (grid.steps < Config::kParts) {
    keep_error(queue, cudaErrorInvalidValue);
    return;
  }
  const dim3 blocks(static_cast<unsigned>(tiles) * Config::kParts, blocks_for(grid.columns, Config::kColumns),
                    static_cast<unsigned>(entries));
  launch_clusters(queue, Config::kParts, blocks, dim3(Config::kBlockThreads), Config::kSharedBytes,
                  wgmma_kernel<Config, P, Grid, E>, map_a, map_b, grid, epilogue);
}

// Like gemm(), for a B that is stored as [N][ldb]. A is float, or what the weights are. Data and strides are
// multiples of 16 bytes. A grid has at most kMaxGridZ column tiles and batch entries.
template <Precision P, WgmmaTile kTile, int kParts, class TA, class E>
inline void gemm_wgmma(Queue& queue, int rows, int columns, int depth, const TA* a, std::ptrdiff_t lda,
                       const typename WgmmaOf<P>::Weight* b, std::ptrdiff_t ldb, const GemmBatch& batch,
                       const E& epilogue) {
  using Weight = typename WgmmaOf<P>::Weight;
  using Config = WgmmaConfig<P, kTile, kParts, TA>;
  if (rows <= 0 || columns <= 0 || depth <= 0 || batch.count <= 0) return;
  const int outer_count = batch.count / batch.inner_count;
  // Where all entries share a matrix there is one.
  const auto entries = [](std::ptrdiff_t stride, int count) {
    return std::ptrdiff_t{stride == 0 ? 1 : count};
  };
  const TensorBox box_a{
      a,
      {depth, rows, entries(batch.a_inner, batch.inner_count), entries(batch.a_outer, outer_count)},
      {lda, batch.a_inner, batch.a_outer},
      {Config::kRows, 1, 1}};
  const TensorBox box_b{
      b,
      {depth, columns, entries(batch.b_inner, batch.inner_count), entries(batch.b_outer, outer_count)},
      {ldb, batch.b_inner, batch.b_outer},
      {Config::kColumns, 1, 1}};
  const WgmmaGrid grid{rows,
                       columns,
                       (depth + Config::kDepth - 1) / Config::kDepth,
                       batch.inner_count,
                       batch.a_inner != 0,
                       batch.a_outer != 0,
                       batch.b_inner != 0,
                       batch.b_outer != 0};
  launch_wgmma<Config, P>(queue, tensor_map<TA>(queue, box_a), tensor_map<Weight>(queue, box_b), grid,
                          blocks_for(rows, Config::kRows), batch.count, epilogue);
}

}  // namespace GCRT_NAMESPACE
