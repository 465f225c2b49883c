// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Which tile a block of threads computes, and how long a product would take, by the terms of time_model.h.
// Evaluated when the model is compiled. Needs no CUDA header.
#pragma once

#include "gcrt/cuda/device/time_model.h"
#include "gcrt/precision.h"

namespace GCRT_NAMESPACE {

// Tile of rows x columns per block, or one row of warps over up to that many rows for a product of a vector.
enum class Tile { k16x64, k32x64, k64x64, k128x32, k128x64, k128x128, kGemv1, kGemv2, kGemv4, kGemv8 };

constexpr bool is_gemv(Tile tile) { return tile >= Tile::kGemv1; }

struct TileSize {
  int rows;
  int columns;
  int warps_along_rows;
  int warps_along_columns;
  int stages;  // of the pipeline of copies

  constexpr int threads() const { return 32 * warps_along_rows * warps_along_columns; }
};

constexpr TileSize size_of(Tile tile) {
  switch (tile) {
    case Tile::k16x64:
      return {16, 64, 1, 4, 4};
    case Tile::k32x64:
      return {32, 64, 2, 2, 4};
    case Tile::k64x64:
      return {64, 64, 2, 2, 3};
    case Tile::k128x32:
      return {128, 32, 4, 1, 3};
    case Tile::k128x64:
      return {128, 64, 4, 1, 3};
    case Tile::k128x128:
      return {128, 128, 4, 2, 3};
    case Tile::kGemv1:
      return {1, 32, 1, 8, 1};
    case Tile::kGemv2:
      return {2, 32, 1, 8, 1};
    case Tile::kGemv4:
      return {4, 32, 1, 8, 1};
    case Tile::kGemv8:
      return {8, 32, 1, 8, 1};
  }
  return {};
}

// Most bytes of one row of a tile per step of the pipeline: those of the wider operand.
constexpr int kStepBytes = 128;

constexpr int shared_bytes_of(Tile tile) {
  const TileSize size = size_of(tile);
  const int stages = size.stages * (size.rows + size.columns) * kStepBytes;
  const int sums = size.rows * (size.columns + 8) * 4;
  return stages > sums ? stages : sums;
}
// Code for a device runs on others that may have less: that of sm_80 on 8.6 and 8.9, PTX of 9.0 on 12.0. What
// is not for one device alone takes no more than all of them have from 8.0 on.
constexpr int kMostSharedBytes = 99 * 1024;
static_assert(shared_bytes_of(Tile::k128x128) <= kMostSharedBytes, "the largest tile runs everywhere");

struct Plan {
  Tile tile;
  int splits;       // parts of the depth, each summed by its own blocks
  KernelTime time;  // predicted
};

// Below sm_80 tensor cores multiply fp16 and 8-bit integers only; other products are FFMA.
constexpr bool has_tensor_cores(int capability, Precision precision) {
  return capability >= 80 || precision == Precision::kFp16 || precision == Precision::kInt8;
}

constexpr double products_per_clock(const DeviceModel& device, Precision precision) {
  const double fp16 = device.products_per_clock;
  if (!has_tensor_cores(device.capability, precision)) return 64;  // FFMA
  switch (precision) {
    case Precision::kFp32:
      return fp16 / 2 / 3.5;
    case Precision::kTf32:
      return fp16 / 2;
    case Precision::kInt8:
      return fp16 * 2;
    default:
      return fp16;
  }
}

// Elements between the rows of packed 8-bit or 16-bit weights.
constexpr std::ptrdiff_t integer_weight_stride(std::ptrdiff_t depth) { return ceil_div(depth, 32) * 32; }

// Bytes of an element of the operands of a product, and of one copy of the left one.
struct OperandBytes {
  int a, b;
  int copied_a = 16;
};
// Bytes that one copy may move where elements of so many bytes lie at multiples of all `strides`: 16, 8 or 4,
// else one element. Those of 4 bytes are not copied in pairs.
template <class... Strides>
constexpr int copy_bytes_of(int element, Strides... strides) {
  for (int bytes = 16; bytes >= 4 && bytes >= element; bytes /= 2) {
    const bool fits = ((strides % (bytes / element) == 0) && ...);
    if (fits && (bytes != 8 || element < 4)) return bytes;
  }
  return element;
}

// Elements of k per step of the pipeline, and the fewest of a part of the depth.
constexpr int step_depth(OperandBytes bytes) { return kStepBytes / (bytes.a > bytes.b ? bytes.a : bytes.b); }
constexpr int least_part(Precision precision) { return precision == Precision::kInt8 ? 256 : 128; }

// Blocks along z or y in one launch.
constexpr int kMaxGridZ = 65535;

// Whether the blocks that share the depth of a tile are a cluster and add their sums there; else these go
// through memory.
constexpr int kLeastClusters = 90;  // capability
constexpr bool adds_in_clusters(const DeviceModel& device) { return device.capability >= kLeastClusters; }

// Blocks and threads of a cluster: of what every device takes, as many as the emulator runs together.
constexpr int kMostClusterBlocks = 8;
constexpr int kMostClusterThreads = 2048;
template <class Size>
constexpr bool is_cluster(const Size& size, int blocks) {
  return blocks <= kMostClusterBlocks && (blocks & (blocks - 1)) == 0 &&
         blocks * size.threads() <= kMostClusterThreads;
}

// Rows of a tile that one of the blocks of a cluster adds and finishes: a turn of all its threads at least,
// so that some blocks may have none.
constexpr int cluster_share(const TileSize& size, int blocks) {
  const int turn = size.threads() / (size.columns / 4);
  return size.rows / blocks > turn ? size.rows / blocks : turn;
}

// Launches of a product of so many batch entries, whose depth is in `splits` parts.
constexpr std::ptrdiff_t product_launches(const DeviceModel& device, std::ptrdiff_t entries, int splits) {
  return ceil_div(adds_in_clusters(device) ? entries : entries * splits, kMaxGridZ);
}

// Floats of workspace of a product whose depth is split; 0 if it is not.
constexpr std::ptrdiff_t gemm_workspace_size(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                             std::ptrdiff_t batch, int splits) {
  return splits > 1 ? batch * splits * rows * (ceil_div(columns, 4) * 4) : 0;
}

// Words of Queue::counters that such a product uses: one of a tile.
constexpr std::ptrdiff_t gemm_counters(Tile tile, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                       std::ptrdiff_t batch, int splits) {
  const TileSize size = size_of(tile);
  return splits > 1 ? ceil_div(rows, size.rows) * ceil_div(columns, size.columns) * batch : 0;
}

// The library asks for a multiple of 256; the block's own alignment may be less.
constexpr std::ptrdiff_t kCublasltAlignment = 256;
constexpr std::ptrdiff_t kCublasltWorkspaceBytes = std::ptrdiff_t{4} << 20;

// Floats of workspace of gemm_cublaslt: the library's, and the sums.
constexpr std::ptrdiff_t cublaslt_workspace_size(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                                 std::ptrdiff_t batch) {
  return kCublasltWorkspaceBytes / 4 + batch * rows * (ceil_div(columns, 4) * 4);
}

// Bytes of an element of packed weights, and of an operand that only the run knows.
constexpr int weight_bytes(Precision precision) {
  return precision == Precision::kInt8                                    ? 1
         : precision == Precision::kFp16 || precision == Precision::kBf16 ? 2
                                                                          : 4;
}
constexpr int activation_bytes(Precision precision) { return precision == Precision::kInt8 ? 1 : 4; }

// A that only the run knows, as float or byte, and packed weights.
constexpr OperandBytes weighted(Precision precision) {
  return {activation_bytes(precision), weight_bytes(precision)};
}

// Values of k that are multiplied together; and the products of the tensor cores, or turns of FFMA, of one
// sum among them, which wait for each other.
constexpr int slab_depth(Precision precision) { return precision == Precision::kInt8 ? 32 : 16; }
constexpr int chained_products(Precision precision) {
  return precision == Precision::kFp32 ? 4 : (precision == Precision::kTf32 ? 2 : 1);
}

// One step of a pipeline of copies for a block by itself: a barrier, fragments, products, addresses and
// copies, of one warp for each scheduler, whose every wait shows. Fitted to tiles of 32 x 64 and 64 x 64 on
// an H200, whose steps of 64 halves take 1100 to 1600 clocks.
constexpr double tile_step_clocks(Precision precision, int step) {
  return 250 + (200.0 + 33 * chained_products(precision)) * (step / slab_depth(precision));
}

// The parts of what mma.sync and shared memory can do that tiles get where all multiprocessors are busy:
// 167 of 644 TFLOP/s in 4096 cubed by tiles of 128 x 128 on an H200.
constexpr double kTileProductsReached = 0.29;
constexpr double kTileSharedReached = 0.37;

// A copy of less than 16 bytes of the window of a pixel finds by itself where it reads: instructions, counted
// in the code of such kernels.
constexpr double kPieceInstructions = 22;

// The time of one launch that computes `batch` products of `rows` x `depth` by `depth` x `columns`. Work is
// spread over the multiprocessors in whole blocks; a multiprocessor forms products while shared memory feeds
// them, and a block waits for its steps, which other blocks on the same multiprocessor hide, or for the
// copies of some steps before, which come from memory.
constexpr KernelTime tile_time(const DeviceModel& device, Precision precision, Tile tile, int splits,
                               std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth,
                               std::ptrdiff_t batch, OperandBytes bytes) {
  const TileSize size = size_of(tile);
  const int step = step_depth(bytes);
  const double steps = real(ceil_div(ceil_div(depth, step), splits));
  const std::ptrdiff_t blocks = ceil_div(rows, size.rows) * ceil_div(columns, size.columns) * batch * splits;
  const double step_bytes = (size.rows * bytes.a + size.columns * bytes.b) * step;
  // Every warp along the columns reads the rows, and the other way round.
  const double fragments =
      (size.warps_along_columns * size.rows * bytes.a + size.warps_along_rows * size.columns * bytes.b) *
      step;
  const double products =
      1.0 * size.rows * size.columns * step / (products_per_clock(device, precision) * kTileProductsReached);
  const double shared = (fragments + step_bytes) / (kSharedBytesPerClock * kTileSharedReached);
  const double copies = kMemoryLatency / (size.stages - 1);
  const double step_pieces = real(depth) / splits / steps * bytes.a / bytes.copied_a;  // of a row
  const double pieces = bytes.copied_a < 16 ? size.rows * step_pieces : 0;
  const double issued = pieces * kPieceInstructions / kInstructionsPerClock;
  const double busiest = products > shared ? products : shared;
  const double step_clocks = tile_step_clocks(precision, step) + pieces / size.threads() * kPieceInstructions;
  int resident = device.shared_bytes / shared_bytes_of(tile);
  if (resident > 1536 / size.threads()) resident = 1536 / size.threads();
  if (resident < 1) resident = 1;
  const double turns = real(ceil_div(blocks, device.multiprocessors));
  const double rounds = real(ceil_div(blocks, device.multiprocessors * resident));
  KernelTime time = started(device, true);
  time.blocks = blocks;
  time.memory = memory_microseconds(device, real(columns * depth * batch) * bytes.b);
  // What lies beyond the depth is not read.
  const double read = (size.rows * bytes.a + size.columns * bytes.b) * real(depth) / splits;
  time.cache = cache_microseconds(device, real(blocks) * read + 4 * real(rows * columns * batch), blocks);
  const double finish = kFinishClocks * size.rows * size.columns / size.threads();
  time.fill += clocks_to_microseconds(device, finish);  // of the last block; of others it is work
  time.math = clocks_to_microseconds(
      device, turns * steps * (busiest > issued ? busiest : issued) + (turns - 1) * finish);
  time.latency =
      clocks_to_microseconds(
          device, rounds * steps * (copies > step_clocks ? copies : step_clocks) + (rounds - 1) * finish) +
      (rounds - 1) * time.fill;
  if (splits > 1 && adds_in_clusters(device)) {
    // A block's own part is at hand.
    const double sums = 4.0 * cluster_share(size, splits) * size.columns * (splits - 1);
    time.join = clocks_to_microseconds(device, kClusterJoinClocks + sums / kClusterBytesPerClock);
  } else if (splits > 1) {
    // Every block writes its part, and the last one of a tile reads them all by itself.
    const double sums = 4.0 * size.rows * size.columns * splits;
    const double written = 4.0 * real(rows * columns * batch) * splits;
    time.join = clocks_to_microseconds(device, kArrivalClocks + sums / kCacheBytesPerClock) +
                cache_microseconds(device, written, blocks);
  }
  return time;
}

// Threads of a block of a product of vectors.
constexpr int kGemvThreads = 256;
constexpr int kGemvWarps = kGemvThreads / 32;
constexpr int kGemvColumns = 4;  // per warp
constexpr int kGemvGoal = 2048;  // warps that keep the memory of a large device busy

// Warps that share the depth of one set of columns; `chunk`: values of k in 16 bytes of B.
constexpr int gemv_parts(std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t entries, int chunk) {
  int parts = 1;
  while (parts < kGemvWarps && depth > std::ptrdiff_t{parts} * 32 * chunk &&
         ceil_div(columns, kGemvColumns) * entries * parts < kGemvGoal) {
    parts *= 2;
  }
  return parts;
}
constexpr std::ptrdiff_t gemv_blocks(std::ptrdiff_t columns, int parts) {
  return ceil_div(columns, kGemvWarps / parts * kGemvColumns);
}

// The time of a product of few rows: B is read once. A lane has a chunk of every column of its warp on the
// way, and waits for them before it asks for the next; in the end lanes and warps add up.
constexpr KernelTime gemv_time(const DeviceModel& device, std::ptrdiff_t rows, std::ptrdiff_t columns,
                               std::ptrdiff_t depth, std::ptrdiff_t batch, int weight_bytes) {
  constexpr int kResident = 4;  // blocks of 256 threads with 64 registers
  const int chunk = 16 / weight_bytes;
  const int parts = gemv_parts(columns, depth, batch, chunk);
  const std::ptrdiff_t blocks = gemv_blocks(columns, parts) * batch;
  const double bytes = real(columns * depth * batch) * weight_bytes;
  const double loads = real(ceil_div(depth, std::ptrdiff_t{parts} * 32 * chunk));
  const double rounds = real(ceil_div(blocks, device.multiprocessors * kResident));
  KernelTime time = started(device, true);
  time.blocks = blocks;
  time.fill += clocks_to_microseconds(device, kReductionClocks);
  time.memory = memory_microseconds(device, bytes);
  time.cache = cache_microseconds(device, bytes + 4 * real(blocks * rows * depth), blocks);
  time.math =
      math_microseconds(device, real(rows * columns * depth * batch), scalar_products_per_clock(device));
  // The first of the loads is part of the fill.
  time.latency = clocks_to_microseconds(device, (rounds * loads - 1) * kMemoryLatency);
  return time;
}

// Products of float32 by parts of TF32 keep both parts of every operand, and sums beside those of the tensor
// cores: the largest tiles would spill.
constexpr bool fits_registers(const DeviceModel& device, Precision precision, Tile tile) {
  return precision != Precision::kFp32 || !has_tensor_cores(device.capability, precision) ||
         tile <= Tile::k128x32;
}

// The fastest tile and number of splits by the model. `allow_split` is false where no workspace exists, or
// the depth is not known.
constexpr Plan plan_tiles(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                          std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch,
                          bool allow_split, OperandBytes bytes) {
  constexpr Tile kTiles[] = {Tile::k16x64,  Tile::k32x64,  Tile::k64x64,
                             Tile::k128x32, Tile::k128x64, Tile::k128x128};
  constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};
  constexpr int kBusyTurns = 8;
  Plan best{Tile::k16x64, 1, {}};
  bool is_first = true;
  for (const Tile tile : kTiles) {
    if (shared_bytes_of(tile) > device.shared_bytes || !fits_registers(device, precision, tile)) continue;
    // Where whole sums keep every multiprocessor busy for several turns, parts gain a shorter last one
    // at most.
    const TileSize size = size_of(tile);
    const std::ptrdiff_t blocks = ceil_div(rows, size.rows) * ceil_div(columns, size.columns) * batch;
    const bool is_busy = blocks >= kBusyTurns * device.multiprocessors;
    for (const int splits : kSplits) {
      if (splits > 1 && (is_busy || !allow_split || depth < splits * least_part(precision))) continue;
      if (adds_in_clusters(device) && !is_cluster(size_of(tile), splits)) continue;
      const KernelTime time = tile_time(device, precision, tile, splits, rows, columns, depth, batch, bytes);
      if (is_first || time.microseconds() < best.time.microseconds()) best = {tile, splits, time};
      is_first = false;
    }
  }
  return best;
}

// A product with constant B: as a product of a vector up to 8 rows.
constexpr Plan plan_gemm(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                         std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch, bool allow_split,
                         OperandBytes bytes_of) {
  if (rows > 8 || precision == Precision::kInt8) {
    return plan_tiles(device, precision, rows, columns, depth, batch, allow_split, bytes_of);
  }
  const Tile tile =
      rows == 1 ? Tile::kGemv1 : (rows == 2 ? Tile::kGemv2 : (rows <= 4 ? Tile::kGemv4 : Tile::kGemv8));
  return {tile, 1, gemv_time(device, rows, columns, depth, batch, weight_bytes(precision))};
}
constexpr Plan plan_gemm(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                         std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch = 1,
                         bool allow_split = true) {
  return plan_gemm(device, precision, rows, columns, depth, batch, allow_split, weighted(precision));
}

}  // namespace GCRT_NAMESPACE
