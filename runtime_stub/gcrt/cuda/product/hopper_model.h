// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Which tile a block of warpgroups computes on sm_90a, and how long a product would take: evaluated when the
// model is compiled. Needs no CUDA header.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cuda/product/tile_model.h"

namespace GCRT_NAMESPACE {

// Rows x columns of a block: a warpgroup of consumers for every 64 rows, and one that copies.
enum class WgmmaTile { k64x64, k64x128, k128x64, k128x128, k128x256 };

// Bytes of the depth in one step of the pipeline: a row of the swizzle.
constexpr int kWgmmaStepBytes = 128;

struct WgmmaSize {
  int rows;
  int columns;
  int stages;  // of the pipeline

  constexpr int consumers() const { return rows / 64; }
  constexpr int threads() const { return 128 * (consumers() + 1); }
};

constexpr WgmmaSize size_of(WgmmaTile tile) {
  switch (tile) {
    case WgmmaTile::k64x64:
      return {64, 64, 6};
    case WgmmaTile::k64x128:
      return {64, 128, 5};
    case WgmmaTile::k128x64:
      return {128, 64, 5};
    case WgmmaTile::k128x128:
      return {128, 128, 4};
    case WgmmaTile::k128x256:
      return {128, 256, 3};
  }
  return {};
}

// Elements of the depth in one step. Weights fill the row of 128 bytes; A of floats beside weights of 16 bits
// fills two.
constexpr int wgmma_depth(Precision precision) { return kWgmmaStepBytes / weight_bytes(precision); }

// Bytes of one stage; `bytes_of_a`: of an element.
constexpr int wgmma_stage_bytes(const WgmmaSize& size, Precision precision, int bytes_of_a) {
  return size.rows * wgmma_depth(precision) * bytes_of_a + size.columns * kWgmmaStepBytes;
}
// Elements from one row of a block's sums in shared memory to the next. Lanes of floats of A hold other rows
// than lanes of sums of a matrix in shared memory: neither order meets in a bank.
constexpr int wgmma_sum_stride(const WgmmaSize& size, int bytes_of_a) {
  return size.columns + (bytes_of_a == 4 ? 4 : 8);
}
// Shared memory of the stages, in which the sums lie in the end,
// with room for their alignment and for the barriers.
constexpr int wgmma_shared_bytes(const WgmmaSize& size, Precision precision, int bytes_of_a) {
  const int stages = size.stages * wgmma_stage_bytes(size, precision, bytes_of_a);
  const int sums = size.rows * wgmma_sum_stride(size, bytes_of_a) * 4;
  return (stages > sums ? stages : sums) + 1024 + 16 * size.stages;
}

struct WgmmaPlan {
  WgmmaTile tile;
  int parts;        // of the depth, each of a block of a cluster
  KernelTime time;  // predicted
};

// Multiply-adds of wgmma per clock and multiprocessor, dense: NVIDIA H100 Tensor Core GPU Architecture
// (2022), table 2: 989.4 TFLOP/s in fp16 and bf16 at 132 multiprocessors and 1830 MHz, half of it in TF32.
// What is reached of it in long products is 4/5: 763 to 808 TFLOP/s of pranjalssh/fast.cu on an H100.
constexpr double wgmma_products_per_clock(Precision precision) {
  constexpr double kPeak = 2048;
  constexpr double kReached = 0.8;
  return kPeak * kReached * (precision == Precision::kTf32 ? 0.5 : 1.0);
}

// The fewest steps of a part of the depth.
constexpr int kLeastPartSteps = 2;

// The multiprocessors that clusters of so many blocks fill: they lie in groups of 16 or 18 of the same 132,
// and a cluster lies in one group (H100 architecture, above, "thread block clusters").
constexpr int multiprocessors_of_clusters(const DeviceModel& device, int blocks) {
  return blocks <= 2 ? device.multiprocessors : device.multiprocessors / 16 * 16;
}

// Like tile_time(), for blocks of which one fits a multiprocessor: copies write shared memory, floats of A
// are read once, B by every consumer. `tiles`: along the rows.
constexpr KernelTime wgmma_time(const DeviceModel& device, Precision precision, WgmmaTile tile, int parts,
                                std::ptrdiff_t tiles, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                std::ptrdiff_t depth, std::ptrdiff_t batch, int bytes_of_a) {
  // A step by itself, barriers, fragments and the start of products included, of halves and of floats: of
  // products of 128 x 2304 and 3072 x 768 on an H200.
  const double step_clocks = bytes_of_a == 4 ? 750 : 460;
  const WgmmaSize size = size_of(tile);
  const double step_depth = wgmma_depth(precision);
  const double bytes_a = size.rows * step_depth * bytes_of_a;
  const double bytes_b = size.columns * static_cast<double>(kWgmmaStepBytes);
  const double products = size.rows * size.columns * step_depth / wgmma_products_per_clock(precision);
  const double shared = (2 * bytes_a + (1 + size.consumers()) * bytes_b) / kSharedBytesPerClock;
  const double copies = kMemoryLatency / (size.stages - 1);
  const std::ptrdiff_t blocks = tiles * ceil_div(columns, size.columns) * batch * parts;
  const double rounds = real(ceil_div(blocks, multiprocessors_of_clusters(device, parts)));
  const double steps = real(ceil_div(ceil_div(depth, wgmma_depth(precision)), parts));  // the longest part
  KernelTime time = started(device, true);
  time.blocks = blocks;
  if (parts > 1) {
    // A block's own part is at hand.
    const double sums = 4.0 * size.rows / parts * size.columns * (parts - 1);
    time.join = clocks_to_microseconds(device, rounds * (kClusterJoinClocks + sums / kClusterBytesPerClock));
  }
  time.memory = memory_microseconds(device, real(columns * depth * batch) * weight_bytes(precision));
  time.cache = cache_microseconds(
      device, real(blocks) * steps * (bytes_a + bytes_b) + 4 * real(rows * columns * batch), blocks);
  const double finish = kFinishClocks * size.rows * size.columns / (128.0 * size.consumers() * parts);
  time.fill += clocks_to_microseconds(device, finish);  // of the last block; of others it is work
  time.math = clocks_to_microseconds(
      device, rounds * steps * (products > shared ? products : shared) + (rounds - 1) * finish);
  time.latency =
      clocks_to_microseconds(
          device, rounds * steps * (copies > step_clocks ? copies : step_clocks) + (rounds - 1) * finish) +
      (rounds - 1) * time.fill;
  return time;
}

// The fastest by that model. tiles_of(size): how many tiles the rows make.
template <class F>
constexpr WgmmaPlan plan_wgmma_tiles(const DeviceModel& device, Precision precision, const F& tiles_of,
                                     std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth,
                                     std::ptrdiff_t batch, int bytes_of_a) {
  constexpr WgmmaTile kTiles[] = {WgmmaTile::k64x64, WgmmaTile::k64x128, WgmmaTile::k128x64,
                                  WgmmaTile::k128x128, WgmmaTile::k128x256};
  WgmmaPlan best{WgmmaTile::k64x64, 1, {}};
  bool is_first = true;
  for (const WgmmaTile tile : kTiles) {
    const WgmmaSize size = size_of(tile);
    if (wgmma_shared_bytes(size, precision, bytes_of_a) > device.shared_bytes) continue;
    const std::ptrdiff_t tiles = tiles_of(size);
    for (const int parts : {1, 2, 4, 8}) {
      const bool has_steps = ceil_div(depth, wgmma_depth(precision)) >= parts * kLeastPartSteps;
      if (parts > 1 && (!has_steps || !is_cluster(size, parts))) continue;
      const KernelTime time =
          wgmma_time(device, precision, tile, parts, tiles, rows, columns, depth, batch, bytes_of_a);
      if (is_first || time.microseconds() < best.time.microseconds()) best = {tile, parts, time};
      is_first = false;
    }
  }
  return best;
}

constexpr WgmmaPlan plan_wgmma(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                               std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch,
                               int bytes_of_a) {
  const auto tiles = [rows](const WgmmaSize& size) { return ceil_div(rows, size.rows); };
  return plan_wgmma_tiles(device, precision, tiles, rows, columns, depth, batch, bytes_of_a);
}

// The rows of a tile of a convolution: a box of output pixels. For a tap of the kernel they see a box of
// input pixels, which is one copy by a tensor map; the padding is outside the tensor, and zeros.
struct PixelPatch {
  int width, height, images;
  constexpr int pixels() const { return width * height * images; }
};

constexpr std::ptrdiff_t patch_count(const PixelPatch& patch, const ConvShape& s) {
  return ceil_div(s.out_w, patch.width) * ceil_div(s.out_h, patch.height) * ceil_div(s.batch, patch.images);
}

// The fewest patches of at most so many pixels, of these the widest.
constexpr PixelPatch patch_of(int rows, const ConvShape& s) {
  PixelPatch best{1, 1, 1};
  for (int width = 1; width <= rows && width <= s.out_w; ++width) {
    const int height = rows / width < s.out_h ? rows / width : s.out_h;
    const bool is_whole = width == s.out_w && height == s.out_h;
    const int images = is_whole && s.batch > 1 ? rows / (width * height) : 1;
    const PixelPatch patch{width, height, images < s.batch ? images : s.batch};
    if (patch_count(patch, s) <= patch_count(best, s)) best = patch;
  }
  return best;
}

// Plans convolutions of one group, without strides unless is_pointwise(s); there the rows of a matrix
// take the place of patches.
constexpr WgmmaPlan plan_conv2d_wgmma(const DeviceModel& device, Precision precision, const ConvShape& s,
                                      int bytes_of_a) {
  const std::ptrdiff_t rows = output_pixels(s);
  if (is_pointwise(s)) return plan_wgmma(device, precision, rows, s.out_c, s.in_c, 1, bytes_of_a);
  const std::ptrdiff_t depth = std::ptrdiff_t{s.kernel_h} * s.kernel_w * s.in_c;
  const auto tiles = [&s](const WgmmaSize& size) { return patch_count(patch_of(size.rows, s), s); };
  return plan_wgmma_tiles(device, precision, tiles, rows, s.out_c, depth, 1, bytes_of_a);
}

}  // namespace GCRT_NAMESPACE
