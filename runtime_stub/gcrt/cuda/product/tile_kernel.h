// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The kernel of every contraction over tiles: a pipeline of asynchronous copies, products of warps, and the
// epilogue on the final sums.
#pragma once

#include "gcrt/cuda/device/architectures.h"
#include "gcrt/cuda/device/cluster.h"
#include "gcrt/cuda/product/tile_load.h"

namespace GCRT_NAMESPACE {

// What the blocks of one launch compute. blockIdx: x rows, y columns, z batch entry; parts of the depth
// follow one another along z, or those of a cluster along x. A grid has at most kMaxGridZ blocks along y and
// z: what is more goes to further launches.
struct TileGrid {
  int rows;
  int columns;
  int slabs;        // of the whole depth
  int whole_slabs;  // of these, that are full
  int split_slabs;  // per part
  int first_y;
  int first_z;
};

// The depth of a product is cut into kParts, each summed by blocks of its own. The block of a tile that ends
// last adds the parts, in order, and hands them to the epilogue.
template <int kParts = 1>
struct SplitDepth {
  // gemm_workspace_size floats, 16-byte aligned; not read where there is one part. The queue then has
  // gemm_counters words that are 0.
  float* workspace = nullptr;
};

// The same for sizes that only a run knows: in one piece where the sums of all parts do not fit the
// workspace, for then there are blocks enough without.
template <int kParts>
struct SplitWithin {
  float* workspace;
  std::ptrdiff_t floats;          // of workspace
  std::ptrdiff_t floats_of_part;  // in this run
};

// The same by the kParts blocks of a cluster, which read the sums out of each other's shared memory: no
// workspace, whatever the sizes. A power of two, at most kMostClusterBlocks.
template <int kParts>
struct SplitInCluster {};

// Calls body with the SplitDepth of this run.
template <int kParts, class F>
inline void with_split(const SplitWithin<kParts>& split, const F& body) {
  if (split.floats_of_part <= split.floats / kParts) {
    body(SplitDepth<kParts>{split.workspace});
  } else {
    body(SplitDepth<>{});
  }
}

// The epilogue of each batch entry.
template <class E>
struct BatchedOutput {
  E epilogue;
  GCRT_INLINE E at(int entry) const { return epilogue.at_batch(entry); }
  GCRT_INLINE std::ptrdiff_t first_column(int) const { return 0; }
};

// One epilogue for all groups of a convolution: group z writes the columns from z * columns on.
template <class E>
struct GroupedOutput {
  E epilogue;
  int columns;
  GCRT_INLINE const E& at(int) const { return epilogue; }
  GCRT_INLINE std::ptrdiff_t first_column(int entry) const { return std::ptrdiff_t{entry} * columns; }
};

// Which tile a block computes, and of which part of the depth.
struct BlockPlace {
  int row_tile;
  int entry;
  int part;
};

// Where the parts of the depth leave their sums: [entry][part][rows][row_stride].
template <class T, int kParts>
struct PartSums {
  static constexpr int kCount = kParts;
  static constexpr int kCluster = 1;
  T* data;
  std::uint32_t* counters;  // [entry][column tile][row tile]
  std::ptrdiff_t row_stride;
  std::ptrdiff_t part_stride;

  GCRT_INLINE T* at(int entry, int part) const {
    return data + (std::ptrdiff_t{entry} * kParts + part) * part_stride;
  }
  GCRT_DEVICE static BlockPlace place(const TileGrid& grid) {
    const int z = grid.first_z + static_cast<int>(blockIdx.z);
    return {static_cast<int>(blockIdx.x), z / kParts, z % kParts};
  }
};

// The parts stay in the shared memory of the blocks of a cluster.
template <int kParts>
struct ClusterSums {
  static constexpr int kCount = kParts;
  static constexpr int kCluster = kParts;
  GCRT_DEVICE static BlockPlace place(const TileGrid& grid) {
    const int rank = cluster_rank();
    return {(static_cast<int>(blockIdx.x) - rank) / kParts, grid.first_z + static_cast<int>(blockIdx.z),
            rank};
  }
};

// Rows that a block of a cluster adds and finishes.
template <class Config, int kParts>
constexpr int kClusterShare = cluster_share(Config::kSize, kParts);

// Stores the sums of the block's part, whose first element is (m, n) of `to`.
template <class Config, class T>
GCRT_DEVICE void store_part(const T* parked, int rows, int columns, T* to, std::ptrdiff_t row_stride) {
  constexpr int kQuads = Config::kColumns / 4;
  GCRT_NO_UNROLL
  for (int i = static_cast<int>(threadIdx.x); i < Config::kRows * kQuads; i += Config::kThreads) {
    const int row = i / kQuads;
    const int column = i % kQuads * 4;
    if (row >= rows || column >= columns) continue;
    store(Lanes<4>{}, to + row * row_stride + column,
          load(Lanes<4>{}, parked + row * Config::kSumStride + column));
  }
}

// The sums of all parts, in order: all of an element are under way before the first is added. read(part, row,
// column) gives four columns of a row.
template <class Config, int kParts, int kTileRows, class T, class F>
GCRT_DEVICE void add_parts(T* parked, int rows, int columns, const F& read) {
  constexpr int kQuads = Config::kColumns / 4;
  GCRT_NO_UNROLL
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kQuads; i += Config::kThreads) {
    const int row = i / kQuads;
    const int column = i % kQuads * 4;
    if (row >= rows || column >= columns) continue;
    Pack<T, 4> parts[kParts];
    GCRT_UNROLL
    for (int part = 0; part < kParts; ++part) parts[part] = read(part, row, column);
    Pack<T, 4> sum = parts[0];
    GCRT_UNROLL
    for (int part = 1; part < kParts; ++part) sum = sum + parts[part];
    store(Lanes<4>{}, parked + row * Config::kSumStride + column, sum);
  }
}

// The same out of the shared memory of the blocks of a cluster: at the place that `mine` has in that of this
// one, which is block `rank`.
template <class Config, int kParts, int kTileRows, class T>
GCRT_DEVICE void add_parts_of_cluster(T* mine, int rank, int rows, int columns) {
  add_parts<Config, kParts, kTileRows>(
      mine, rows, columns, [mine, rank](int of, int r, int c) GCRT_LAMBDA_INLINE {
        const T* const from = mine + r * Config::kSumStride + c;
        return of == rank ? load(Lanes<4>{}, from) : load_from_block(from, of);
      });
}

// The stages of one block in shared memory.
template <class Config, class Product, class A, class B>
struct TileStages {
  using ElementA = typename A::Element;
  using ElementB = typename B::Element;
  static constexpr int kSlabA = Config::kRows * Product::kDepth;
  static constexpr int kSlabB = Config::kColumns * Product::kDepth;
  static constexpr int kSlabs =
      step_depth({static_cast<int>(sizeof(ElementA)), static_cast<int>(sizeof(ElementB))}) / Product::kDepth;
  static constexpr int kBytesA = kSlabs * kSlabA * static_cast<int>(sizeof(ElementA));
  static constexpr int kStageBytes = kBytesA + kSlabs * kSlabB * static_cast<int>(sizeof(ElementB));
  static constexpr int kSumBytes = Config::kRows * Config::kSumStride * 4;
  static constexpr int kSharedBytes =
      Config::kStages * kStageBytes > kSumBytes ? Config::kStages* kStageBytes : kSumBytes;

  unsigned char* shared;
  GCRT_INLINE ElementA* a(int stage, int slab) const {
    return reinterpret_cast<ElementA*>(shared + stage * kStageBytes) + slab * kSlabA;
  }
  GCRT_INLINE ElementB* b(int stage, int slab) const {
    return reinterpret_cast<ElementB*>(shared + stage * kStageBytes + kBytesA) + slab * kSlabB;
  }
};

// Which stage comes next.
template <int kStages>
struct Ring {
  int stage = 0;
  GCRT_INLINE void advance() { stage = stage + 1 < kStages ? stage + 1 : 0; }
};

// Calls body with the views of a slab that the warp at (warp_row, warp_column) of the tile multiplies.
template <class Config, class Product, class A, class B, class F>
GCRT_DEVICE void with_slabs(const typename A::Element* a, const typename B::Element* b, int warp_row,
                            int warp_column, const F& body) {
  constexpr int kDepth = Product::kDepth;
  const RowSlab<typename A::Element, kDepth> slab_a{a + warp_row * kDepth};
  if constexpr (B::kIsDepthMajor) {
    body(slab_a, DepthMajorSlab<typename B::Element, Config::kColumns>{b, warp_column});
  } else {
    body(slab_a, RowSlab<typename B::Element, kDepth>{b + warp_column * kDepth});
  }
}

template <class Config, class Product, class Parts, class A, class B, class Output>
GCRT_GLOBAL_BLOCKS(Config::kThreads, 1)
void tile_kernel(A source_a, B source_b, TileGrid grid, Parts parts, Output output) {
  if (!is_compiled_here<Output>()) return;
  using Sum = typename Product::Sum;
  using Stages = TileStages<Config, Product, A, B>;
  GCRT_DYNAMIC_SHARED(unsigned char, shared);
  const Stages stages{shared};
  const BlockPlace place = Parts::place(grid);
  const int entry = place.entry;
  const int part = place.part;
  const int first_slab = part * grid.split_slabs;
  const int slabs = first_slab + grid.split_slabs < grid.slabs ? grid.split_slabs : grid.slabs - first_slab;
  const int row = place.row_tile * Config::kRows;
  const int column = (grid.first_y + static_cast<int>(blockIdx.y)) * Config::kColumns;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp % Config::kSize.warps_along_rows * Config::kWarpRows;
  const int warp_column = warp / Config::kSize.warps_along_rows * Config::kWarpColumns;

  source_b.template prefetch_rows<Config::kThreads>(entry, column, Config::kColumns,
                                                    first_slab * Product::kDepth, slabs * Product::kDepth);
  await_previous_grid();
  typename A::template Cursor<Config::kRows, Config::kThreads, Product::kDepth> cursor_a(
      source_a, entry, row, first_slab * Product::kDepth);
  typename B::template Cursor<Config::kColumns, Config::kThreads, Product::kDepth> cursor_b(
      source_b, entry, column, first_slab * Product::kDepth);
  constexpr int kSlabs = Stages::kSlabs;
  const int steps = (slabs + kSlabs - 1) / kSlabs;
  const int full = grid.whole_slabs - first_slab < slabs ? grid.whole_slabs - first_slab : slabs;
  const int whole_steps = full / kSlabs;  // whose copies have no bounds
  int loaded = 0;                         // steps
  Ring<Config::kStages> next;
  const auto load_step = [&]() GCRT_LAMBDA_INLINE {
    if (loaded < whole_steps) {
      cursor_a.template load_whole<kSlabs>(stages.a(next.stage, 0));
      cursor_b.template load_whole<kSlabs>(stages.b(next.stage, 0));
    } else {
      GCRT_NO_UNROLL
      for (int i = 0; i < kSlabs && loaded * kSlabs + i < slabs; ++i) {
        cursor_a.load(stages.a(next.stage, i));
        cursor_b.load(stages.b(next.stage, i));
      }
    }
    cp_async_commit();
    next.advance();
    ++loaded;
  };

  typename Product::template Sums<Config::kRowFragments, Config::kColumnFragments> sums;
  const auto slabs_of = [&](int stage, int slab, const auto& body) GCRT_LAMBDA_INLINE {
    with_slabs<Config, Product, A, B>(stages.a(stage, slab), stages.b(stage, slab), warp_row, warp_column,
                                      body);
  };
  // The copies of the next step have landed, and nobody reads the stage that is filled next.
  const auto reach_step = []() GCRT_LAMBDA_INLINE {
    cp_async_wait<Config::kStages - 2>();
    barrier();
  };
  Ring<Config::kStages> at;
  GCRT_NO_UNROLL
  for (int i = 0; i < Config::kStages - 1; ++i) load_step();
  if constexpr (Product::template kReadsAhead<typename A::Element, typename B::Element>) {
    // The fragments of a slab are read before the products of the one before it, also across the barrier.
    static_assert(kSlabs % 2 == 0, "buffers take turns");
    PairFragments<Config::kRowFragments, Config::kColumnFragments> fragments[2];
    const auto read = [&](int buffer, int slab) GCRT_LAMBDA_INLINE {
      slabs_of(at.stage, slab, [&](const auto& a, const auto& b) GCRT_LAMBDA_INLINE {
        Product::read(fragments[buffer], a, b);
      });
    };
    reach_step();
    read(0, 0);
    int step = 0;
    GCRT_NO_UNROLL
    for (; (step + 1) * kSlabs <= slabs; ++step) {
      load_step();
      GCRT_UNROLL
      for (int i = 0; i < kSlabs; ++i) {
        if (i + 1 == kSlabs) {
          reach_step();
          at.advance();
        }
        read((i + 1) % 2, (i + 1) % kSlabs);
        Product::multiply(sums, fragments[i % 2]);
      }
    }
    GCRT_NO_UNROLL
    for (int i = 0; step * kSlabs + i < slabs; ++i) {
      read(0, i);
      Product::multiply(sums, fragments[0]);
    }
  } else {
    const auto multiply = [&](int stage, int slab) GCRT_LAMBDA_INLINE {
      slabs_of(stage, slab, [&](const auto& a, const auto& b) GCRT_LAMBDA_INLINE {
        Product::multiply(sums, a, b, lane_position());
      });
    };
    GCRT_NO_UNROLL
    for (int step = 0; step < steps; ++step, at.advance()) {
      reach_step();
      load_step();
      if ((step + 1) * kSlabs <= slabs) {
        GCRT_UNROLL
        for (int i = 0; i < kSlabs; ++i) multiply(at.stage, i);
      } else {
        GCRT_NO_UNROLL
        for (int i = 0; step * kSlabs + i < slabs; ++i) multiply(at.stage, i);
      }
    }
  }
  cp_async_wait<0>();
  barrier();
  Sum* const parked = reinterpret_cast<Sum*>(shared);
  park_sums<Config>(sums, parked, warp_row, warp_column);
  const int rows = grid.rows - row;
  const int columns = grid.columns - column;
  const std::ptrdiff_t first_column = output.first_column(entry) + column;
  if constexpr (Parts::kCluster > 1) {
    // Every block adds and finishes rows of its own.
    constexpr int kShare = kClusterShare<Config, Parts::kCount>;
    const int first = part * kShare;
    Sum* const mine = parked + first * Config::kSumStride;
    cluster_barrier();
    if (first < Config::kRows) {
      add_parts_of_cluster<Config, Parts::kCount, kShare>(mine, part, rows - first, columns);
    }
    cluster_barrier();
    if (first < Config::kRows) {
      finish_tile<Config, kShare>(output.at(entry), mine, rows - first, columns, row + first, first_column);
    }
  } else {
    barrier();
    if constexpr (Parts::kCount > 1) {
      const std::ptrdiff_t first = row * parts.row_stride + column;
      store_part<Config>(parked, rows, columns, parts.at(entry, part) + first, parts.row_stride);
      const int column_tiles = (grid.columns + Config::kColumns - 1) / Config::kColumns;
      const int tile =
          (entry * column_tiles + grid.first_y + static_cast<int>(blockIdx.y)) * static_cast<int>(gridDim.x) +
          static_cast<int>(blockIdx.x);
      if (!arrives_last(parts.counters + tile, Parts::kCount)) return;
      const Sum* const from = parts.at(entry, 0) + first;
      add_parts<Config, Parts::kCount, Config::kRows>(
          parked, rows, columns, [from, parts](int of, int r, int c) GCRT_LAMBDA_INLINE {
            return load(Lanes<4>{}, from + of * parts.part_stride + r * parts.row_stride + c);
          });
      barrier();
    }
    finish_tile<Config>(output.at(entry), parked, rows, columns, row, first_column);
  }
  static_cast<void>(part), static_cast<void>(parts);
}

// Launches one kernel over all tiles of `entries` products.
template <class Config, class Product, class A, class B, class Parts, class Output>
inline void launch_tiles(Queue& queue, const A& a, const B& b, TileGrid grid, int entries, const Parts& parts,
                         const Output& output) {
  using Stages = TileStages<Config, Product, A, B>;
  const unsigned row_tiles = static_cast<unsigned>((grid.rows + Config::kRows - 1) / Config::kRows);
  const auto at_most = [](int left) { return static_cast<unsigned>(left < kMaxGridZ ? left : kMaxGridZ); };
  const int column_tiles = (grid.columns + Config::kColumns - 1) / Config::kColumns;
  const int count = entries * (Parts::kCount / Parts::kCluster);
  for (grid.first_z = 0; grid.first_z < count; grid.first_z += kMaxGridZ) {
    for (grid.first_y = 0; grid.first_y < column_tiles; grid.first_y += kMaxGridZ) {
      const dim3 blocks(row_tiles * Parts::kCluster, at_most(column_tiles - grid.first_y),
                        at_most(count - grid.first_z));
      launch_clusters(queue, Parts::kCluster, blocks, dim3(Config::kThreads), Stages::kSharedBytes,
                      tile_kernel<Config, Product, Parts, A, B, Output>, a, b, grid, parts, output);
    }
  }
}

// All products of A and B, entry by entry along blockIdx.z.
template <Tile kTile, class Product, class A, class B, class Parts, class Output>
inline void multiply_parts(Queue& queue, const A& a, const B& b, int rows, int columns, int depth,
                           int entries, const Parts& parts, const Output& output) {
  if (rows <= 0 || columns <= 0 || entries <= 0) return;
  const int slabs = (depth + Product::kDepth - 1) / Product::kDepth;
  // Parts begin with whole steps.
  constexpr int kSlabs = TileStages<TileConfig<kTile>, Product, A, B>::kSlabs;
  const int steps = (slabs + kSlabs - 1) / kSlabs;
  const int split_slabs = (steps + Parts::kCount - 1) / Parts::kCount * kSlabs;
  const TileGrid grid{rows, columns, slabs, depth / Product::kDepth, split_slabs, 0, 0};
  launch_tiles<TileConfig<kTile>, Product>(queue, a, b, grid, entries, parts, output);
}

template <Tile kTile, class Product, int kParts, class A, class B, class Output>
inline void multiply_tiles(Queue& queue, const A& a, const B& b, int rows, int columns, int depth,
                           int entries, const SplitDepth<kParts>& split, const Output& output) {
  using Sum = typename Product::Sum;
  const std::ptrdiff_t row_stride = (columns + 3) / 4 * 4;
  const PartSums<Sum, kParts> parts{reinterpret_cast<Sum*>(split.workspace), queue.counters, row_stride,
                                    rows * row_stride};
  multiply_parts<kTile, Product>(queue, a, b, rows, columns, depth, entries, parts, output);
}

template <Tile kTile, class Product, int kParts, class A, class B, class Output>
inline void multiply_tiles(Queue& queue, const A& a, const B& b, int rows, int columns, int depth,
                           int entries, const SplitInCluster<kParts>&, const Output& output) {
  multiply_parts<kTile, Product>(queue, a, b, rows, columns, depth, entries, ClusterSums<kParts>{}, output);
}

template <Tile kTile, class Product, int kParts, class A, class B, class Output>
inline void multiply_tiles(Queue& queue, const A& a, const B& b, int rows, int columns, int depth,
                           int entries, const SplitWithin<kParts>& split, const Output& output) {
  with_split(split, [&](const auto& depth_split) {
    multiply_tiles<kTile, Product>(queue, a, b, rows, columns, depth, entries, depth_split, output);
  });
}

}  // namespace GCRT_NAMESPACE
