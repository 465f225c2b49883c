// Kernels of sm_90 and of sm_90a, in percent of what the tensor cores can do at all: long sums in clusters,
// and products and convolutions by warpgroups, whose operands tensor maps bring.
#pragma once

#include "bench_tools.h"
#include "gcrt/cuda/image/hopper_conv.h"
#include "gcrt/cuda/product/gemm.h"

namespace GCRT_NAMESPACE {
namespace {

// A long depth in parts that a cluster adds: as bench_layer does it in memory.
template <Tile kTile, int kParts>
void bench_cluster(int rows, int columns, int depth, double ceiling) {
  const auto count = [](int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); };
  const Memory<Half> a(count(rows, depth)), b(count(columns, depth));
  const Memory<float> y(count(rows, columns));
  const StoreEpilogue epilogue{y.data(), columns, 0};
  const Time time = measure([&](Queue& queue, int) {
    gemm<Precision::kFp16, kTile>(queue, rows, columns, depth, a.data(), depth, b.data(), depth, GemmBatch{},
                                  SplitInCluster<kParts>{}, epilogue);
  });
  report("cluster of " + std::to_string(kParts) + ", " + std::to_string(rows) + " x " +
             std::to_string(columns) + " x " + std::to_string(depth),
         "TFLOP/s", time, 2.0 * rows * columns * depth, ceiling);
}

void bench_clusters(double ceiling) {
  int major = 0;
  require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  if (major < 9) return;
  bench_cluster<Tile::k64x64, 4>(128, 768, 3072, ceiling);
  bench_cluster<Tile::k32x64, 8>(64, 512, 8192, ceiling);
}

std::string parts_text(int parts) { return parts > 1 ? ", parts of " + std::to_string(parts) : ""; }

template <class TA, WgmmaTile kTile, int kParts>
void bench_warpgroup_product(const char* name, int rows, int columns, int depth, double ceiling) {
  const auto count = [](int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); };
  const Memory<TA> a(count(rows, depth));
  const Memory<Half> b(count(columns, depth));
  const Memory<float> y(count(rows, columns));
  const StoreEpilogue epilogue{y.data(), columns, 0};
  const Time time = measure([&](Queue& queue, int) {
    gemm_wgmma<Precision::kFp16, kTile, kParts>(queue, rows, columns, depth, a.data(), depth, b.data(), depth,
                                                GemmBatch{}, epilogue);
  });
  report("wgmma " + std::string(name) + " " + std::to_string(rows) + " x " + std::to_string(columns) + " x " +
             std::to_string(depth) + parts_text(kParts),
         "TFLOP/s", time, 2.0 * rows * columns * depth, ceiling);
}

template <WgmmaTile kTile, int kParts>
void bench_warpgroup_conv(int side, int channels, double ceiling) {
  const std::ptrdiff_t row = std::ptrdiff_t{side} * channels;
  const ConvShape shape = {1, side, side, channels, side, side, channels, 3,   3,         1,
                           1, 1,    1,    1,        1,    1,    channels, row, row * side};
  const auto pixels = static_cast<std::size_t>(row) * static_cast<std::size_t>(side);
  const Memory<Half> x(pixels);
  const Memory<Half> w(static_cast<std::size_t>(channels) *
                       static_cast<std::size_t>(conv_weight_stride(shape)));
  const Memory<float> y(pixels);
  const StoreEpilogue epilogue{y.data(), channels, 0};
  const Time time = measure([&](Queue& queue, int) {
    conv2d_wgmma<Precision::kFp16, kTile, kParts>(queue, shape, x.data(), w.data(), epilogue);
  });
  report("wgmma conv 3x3 " + std::to_string(side) + " x " + std::to_string(side) + " x " +
             std::to_string(channels) + parts_text(kParts),
         "TFLOP/s", time, 2.0 * 9 * static_cast<double>(pixels) * channels, ceiling);
}

void bench_warpgroups(double ceiling) {
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 1>("halves", 128, 2304, 768, ceiling);
  bench_warpgroup_product<float, WgmmaTile::k64x64, 1>("floats", 128, 3072, 768, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x128, 1>("halves, wide", 128, 2304, 768, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 1>("halves", 128, 768, 3072, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 4>("halves", 128, 768, 3072, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 8>("halves", 128, 768, 3072, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 1>("halves", 128, 768, 768, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 2>("halves", 128, 768, 768, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k64x64, 4>("halves", 128, 768, 768, ceiling);
  bench_warpgroup_product<float, WgmmaTile::k64x64, 2>("floats", 128, 2304, 768, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k128x128, 1>("halves", 4096, 4096, 4096, ceiling);
  bench_warpgroup_product<Half, WgmmaTile::k128x256, 1>("halves", 4096, 4096, 4096, ceiling);
  bench_warpgroup_product<float, WgmmaTile::k128x128, 1>("floats", 4096, 4096, 4096, ceiling);
  bench_warpgroup_conv<WgmmaTile::k64x64, 1>(56, 64, ceiling);
  bench_warpgroup_conv<WgmmaTile::k64x64, 1>(14, 256, ceiling);
  bench_warpgroup_conv<WgmmaTile::k64x64, 4>(14, 256, ceiling);
  bench_warpgroup_conv<WgmmaTile::k64x64, 8>(14, 256, ceiling);
  bench_warpgroup_conv<WgmmaTile::k64x64, 8>(7, 512, ceiling);
}

}  // namespace
}  // namespace GCRT_NAMESPACE
