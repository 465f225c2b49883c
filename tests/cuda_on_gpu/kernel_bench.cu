// What this GPU can do and what the kernels get out of it: the gap between two kernels of a graph, the rates
// of mma.sync and of device memory, measured, then attention and matrix products in percent of the first,
// products with a vector and maps in percent of the second. The layers of models at batch 1 are in percent of
// what the tensor cores can do at all, which no mma.sync reaches on sm_90 and later.
//
//     cuda_kernel_bench [--json]
//
// Times are minima and medians over rounds between two events, several launches each, so that the gap between
// launches stays hidden. Operands are random: zeros take less power, and are faster.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "bench_tools.h"
#include "gcrt/cuda/attention/attention.h"
#include "gcrt/cuda/image/conv.h"
#include "gcrt/cuda/map.h"
#include "gcrt/cuda/product/gemm.h"
#include "gcrt/scalar/scalar.h"
#include "hopper_bench.h"
#include "row_bench.h"
#include "terms_bench.h"

namespace GCRT_NAMESPACE {
namespace {

GCRT_GLOBAL(32) void do_nothing(float*) { await_previous_grid(); }

// Kernels that do nothing, one behind the other in a graph: what time_model.h calls kGraphGap and kOverlap.
void bench_graph_nodes(bool overlaps) {
  constexpr int kNodes = 256;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  require(cudaStreamCreate(&stream), "cudaStreamCreate");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  float* nowhere = nullptr;
  void* arguments[] = {&nowhere};
  const void* const kernel = reinterpret_cast<const void*>(&do_nothing);
  for (int i = 0; i < kNodes; ++i) {
    require(launch_with({overlaps, 1}, kernel, 1, 32, arguments, 0, stream), "launch");
  }
  require(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  require(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiate");
  const Time time = measure([&](Queue& queue, int) {
    if (queue.error == cudaSuccess) queue.error = cudaGraphLaunch(exec, queue.stream);
  });
  report(std::string("graph node") + (overlaps ? ", overlapping" : ""), "nodes/us",
         {time.least / kNodes, time.median / kNodes}, 1e6, 0);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// Warps that only multiply, eight independent products at a time.
constexpr int kProductRows = 2;
constexpr int kProductColumns = 4;
constexpr int kProductSteps = 2048;

template <Precision P>
GCRT_GLOBAL(128)
void multiply(float* out, std::uint32_t seed) {
  // Exponents of numbers from [0.25, 0.5), signs and mantissas at random.
  constexpr std::uint32_t kKept = P == Precision::kTf32   ? 0x807fe000u
                                  : P == Precision::kFp16 ? 0x83ff83ffu
                                                          : 0x807f807fu;
  constexpr std::uint32_t kSet = P == Precision::kFp16   ? 0x34003400u
                                 : P == Precision::kTf32 ? 0x3e800000u
                                                         : 0x3e803e80u;
  std::uint32_t a[kProductRows][4];
  std::uint32_t b[kProductColumns][2];
  float d[kProductRows][kProductColumns][4] = {};
  std::uint32_t state = seed + threadIdx.x * 97u + blockIdx.x * 131071u;
  GCRT_UNROLL
  for (int r = 0; r < kProductRows; ++r) {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) a[r][i] = (scramble(state++) & kKept) | kSet;
  }
  GCRT_UNROLL
  for (int c = 0; c < kProductColumns; ++c) {
    GCRT_UNROLL
    for (int i = 0; i < 2; ++i) b[c][i] = (scramble(state++) & kKept) | kSet;
  }
  for (int step = 0; step < kProductSteps; ++step) {
    if constexpr (P == Precision::kFp16) mma_f16_tiles(d, a, b);
    if constexpr (P == Precision::kBf16) mma_bf16_tiles(d, a, b);
    if constexpr (P == Precision::kTf32) mma_tf32_tiles(d, a, b);
  }
  float sum = 0;
  GCRT_UNROLL
  for (int r = 0; r < kProductRows; ++r) {
    GCRT_UNROLL
    for (int c = 0; c < kProductColumns; ++c) sum += d[r][c][0] + d[r][c][1] + d[r][c][2] + d[r][c][3];
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}

template <Precision P>
double product_ceiling(const char* name, int multiprocessors) {
  const int blocks = multiprocessors * 8;
  const Memory<float> out(static_cast<std::size_t>(blocks) * 128);
  const Time time = measure([&](Queue& queue, int call) {
    launch(queue, static_cast<unsigned>(blocks), 128, 0, &multiply<P>, out.data(),
           static_cast<std::uint32_t>(call));
  });
  const double depth = P == Precision::kTf32 ? 8 : 16;
  const double work = 2.0 * 16 * 8 * depth * kProductRows * kProductColumns * kProductSteps * 4 * blocks;
  return report(std::string("mma.sync ") + name, "TFLOP/s", time, work, 0);
}

constexpr unsigned kReadBlocks = 1024;
constexpr int kReadLoads = 4;  // of 16 bytes, in flight at once
constexpr std::size_t kReadCount = std::size_t{1} << 28;

GCRT_GLOBAL(256) void read_all(const float* x, float* out) {
  constexpr std::size_t kStep = std::size_t{kReadBlocks} * 256 * 4;
  static_assert(kReadCount % (kStep * kReadLoads) == 0, "every sweep is whole");
  float sum = 0;
  for (std::size_t i = (blockIdx.x * std::size_t{256} + threadIdx.x) * 4; i < kReadCount;
       i += kStep * kReadLoads) {
    Bytes16 loaded[kReadLoads];
    GCRT_UNROLL
    for (int load = 0; load < kReadLoads; ++load) {
      loaded[load] = load_streaming_16(x + i + kStep * static_cast<std::size_t>(load));
    }
    GCRT_UNROLL
    for (int load = 0; load < kReadLoads; ++load) {
      GCRT_UNROLL
      for (int k = 0; k < 4; ++k) sum += bit_cast<float>(loaded[load].word[k]);
    }
  }
  if (sum == 12345.678f) out[0] = sum;  // hardly ever, which the compiler cannot know
}

// Reading is what products with a vector do; copying is what is usually quoted.
double memory_ceiling() {
  const Memory<float> from(kReadCount);
  const Memory<float> to(kReadCount);
  const Time copied =
      measure([&](Queue& queue, int) { copy(queue, to.data(), from.data(), kReadCount * 4); });
  const double copy_rate = report("copy, bytes read and written", "GB/s", copied, 2.0 * 4 * kReadCount, 0);
  const Time read = measure(
      [&](Queue& queue, int) { launch(queue, kReadBlocks, 256, 0, &read_all, from.data(), to.data()); });
  return std::max(copy_rate, report("read", "GB/s", read, 4.0 * kReadCount, 0));
}

template <Precision P, AttentionTile kTile = AttentionTile::k64>
void bench_attention(const char* name, int tokens, double ceiling) {
  constexpr int kHeads = 12;
  constexpr int kSize = 64;
  const AttentionStrides strides = {0, std::ptrdiff_t{tokens} * kSize, kSize, 1};
  const AttentionShape shape = {1,      kHeads, kHeads, tokens, tokens,  kSize,   kSize,
                                0.125f, false,  0,      false,  strides, strides, strides};
  const std::size_t count = static_cast<std::size_t>(kHeads) * static_cast<std::size_t>(tokens) * kSize;
  const Memory<float> q(count), k(count), v(count), y(count);
  const StoreEpilogue epilogue{y.data(), kSize, std::ptrdiff_t{tokens} * kSize};
  const Time time = measure([&](Queue& queue, int) {
    attention<P, kTile, kSize, kSize, AttentionMaskKind::kNone, 16>(
        queue, shape, q.data(), k.data(), v.data(), AttentionMask{}, SplitDepth<>{}, epilogue);
  });
  report("attention " + std::string(name) + " 1x12x" + std::to_string(tokens) + "x64", "TFLOP/s", time,
         4.0 * kHeads * tokens * tokens * kSize, ceiling);
}

// One or eight rows times weights of which there are so many copies that none waits in a cache.
template <Precision P, Tile kTile, class W>
void bench_vector(const char* name, int rows, int columns, int depth, double ceiling) {
  const std::size_t one = static_cast<std::size_t>(columns) * static_cast<std::size_t>(depth);
  const int copies = static_cast<int>((std::size_t{1} << 30) / (one * sizeof(W)));
  const Memory<W> weights(one * static_cast<std::size_t>(copies));
  const Memory<float> x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(depth));
  const Memory<float> y(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  const StoreEpilogue epilogue{y.data(), columns, 0};
  const Time time = measure([&](Queue& queue, int call) {
    gemm<P, kTile>(queue, rows, columns, depth, x.data(), depth,
                   weights.data() + one * static_cast<std::size_t>(call % copies), depth, epilogue);
  });
  report("gemv " + std::string(name) + " " + std::to_string(rows) + " x " + std::to_string(columns) + " x " +
             std::to_string(depth),
         "GB/s", time, static_cast<double>(one) * sizeof(W), ceiling);
}

template <Precision P, Tile kTile, class W>
void bench_product(const char* name, int size, double ceiling) {
  const std::size_t count = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  const Memory<float> a(count), y(count);
  const Memory<W> b(count);
  const StoreEpilogue epilogue{y.data(), size, 0};
  const Time time = measure([&](Queue& queue, int) {
    gemm<P, kTile>(queue, size, size, size, a.data(), size, b.data(), size, epilogue);
  });
  report("gemm " + std::string(name) + " " + std::to_string(size) + " cubed", "TFLOP/s", time,
         2.0 * size * size * size, ceiling);
}

// A product of a layer at batch 1, in fp16.
template <Tile kTile, int kParts>
void bench_layer(const char* model, int rows, int columns, int depth, double ceiling) {
  const auto count = [](int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); };
  const Memory<Half> a(count(rows, depth)), b(count(columns, depth));
  const Memory<float> y(count(rows, columns));
  const Memory<float> workspace(static_cast<std::size_t>(gemm_workspace_size(rows, columns, 1, kParts)));
  std::uint32_t* counters = nullptr;
  constexpr std::size_t kCounters = 4096;
  require(cudaMalloc(&counters, kCounters * sizeof(std::uint32_t)), "cudaMalloc");
  require(cudaMemset(counters, 0, kCounters * sizeof(std::uint32_t)), "cudaMemset");
  const StoreEpilogue epilogue{y.data(), columns, 0};
  const Time time = measure([&](Queue& queue, int) {
    queue.counters = counters;
    gemm<Precision::kFp16, kTile>(queue, rows, columns, depth, a.data(), depth, b.data(), depth, GemmBatch{},
                                  SplitDepth<kParts>{workspace.data()}, epilogue);
  });
  report(std::string(model) + " " + std::to_string(rows) + " x " + std::to_string(columns) + " x " +
             std::to_string(depth),
         "TFLOP/s", time, 2.0 * rows * columns * depth, ceiling);
  cudaFree(counters);
}

// A step of decoding: one query of 12 heads, float32 as caches are, and the cache written behind.
template <AttentionTile kTile>
void bench_decode(const char* name, int past, double ceiling) {
  constexpr int kHeads = 12, kSize = 64;
  const int keys = past + 1;
  const auto rows = [](int count) {
    return AttentionStrides{std::ptrdiff_t{kHeads} * count * kSize, std::ptrdiff_t{count} * kSize, kSize, 1};
  };
  const AttentionShape shape = {1,      kHeads, kHeads, 1,     keys,    kSize,   kSize,
                                0.125f, false,  0,      false, rows(1), rows(1), rows(1)};
  const auto count = [](int of) { return static_cast<std::size_t>(of) * kHeads * kSize; };
  const Memory<float> q(count(1)), k(count(1)), v(count(1)), y(count(1)), past_k(count(past)),
      past_v(count(past)), all_k(count(keys)), all_v(count(keys));
  const auto cached = [&](const Memory<float>& from, const Memory<float>& to) {
    return CachedRows<float>{from.data(), rows(past), to.data(), rows(keys), 0, keys};
  };
  const AttentionCache<float> cache = {past, cached(past_k, all_k), cached(past_v, all_v)};
  const StoreEpilogue epilogue{y.data(), kSize, kSize};
  const Time time = measure([&](Queue& queue, int) {
    attention<Precision::kFp16, kTile, kSize, kSize, AttentionMaskKind::kNone, 16>(
        queue, shape, q.data(), k.data(), v.data(), AttentionMask{}, SplitDepth<>{}, epilogue, cache);
  });
  report("decode attention " + std::string(name) + " behind " + std::to_string(past), "GB/s", time,
         4.0 * 4 * kHeads * keys * kSize, ceiling);
}

// A convolution of 3 x 3 over a square image.
template <Tile kTile>
void bench_conv(int side, int channels, double ceiling) {
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
    conv2d<Precision::kFp16, kTile>(queue, shape, x.data(), w.data(), epilogue);
  });
  report("conv 3x3 " + std::to_string(side) + " x " + std::to_string(side) + " x " + std::to_string(channels),
         "TFLOP/s", time, 2.0 * 9 * static_cast<double>(pixels) * channels, ceiling);
}

// max(x, 0), or max(x + z, 0), with so many packs for each thread.
template <int Packs, int Operands, int Count>
GCRT_GLOBAL(256)
void relu(const float* x, const float* z, float* y) {
  static_assert(Count % (4 * Packs * 256) == 0, "no gaps");
  constexpr Lanes<4> lane{};
  map_packs<Packs, Count / 4 / Packs, Count / 4>(
      global_thread<int>(),
      [&](int pack) GCRT_LAMBDA_INLINE {
        const auto value = load(lane, x + pack * 4);
        return max(Operands == 1 ? value : value + load(lane, z + pack * 4), splat(lane, 0.0f));
      },
      [&](int pack, auto value) GCRT_LAMBDA_INLINE { store(lane, y + pack * 4, value); });
}

template <int Packs, int Operands, int Count>
void bench_map(double ceiling) {
  const Memory<float> x(Count), z(Operands == 1 ? 0 : Count), y(Count);
  const Time time = measure([&](Queue& queue, int) {
    launch(queue, Count / 4 / Packs / 256, 256, 0, &relu<Packs, Operands, Count>, x.data(), z.data(),
           y.data());
  });
  report("map of " + std::to_string(Operands) + " x " + std::to_string(Count >> 20) + " Mi, " +
             std::to_string(Packs) + " packs per thread",
         "GB/s", time, (Operands + 1) * 4.0 * Count, ceiling);
}

// The choice of codegen/loops/cuda/cuda_loop_plan.cc: 4 packs of one operand, 2 of two, where threads are many.
template <int Count>
void bench_maps(double ceiling) {
  bench_map<1, 1, Count>(ceiling);
  bench_map<2, 1, Count>(ceiling);
  bench_map<4, 1, Count>(ceiling);
  bench_map<1, 2, Count>(ceiling);
  bench_map<2, 2, Count>(ceiling);
  bench_map<4, 2, Count>(ceiling);
}

template <Precision P, class W>
void bench_vectors(const char* name, double ceiling) {
  bench_vector<P, Tile::kGemv1, W>(name, 1, 4096, 4096, ceiling);
  bench_vector<P, Tile::kGemv1, W>(name, 1, 11008, 4096, ceiling);
  bench_vector<P, Tile::kGemv1, W>(name, 1, 4096, 11008, ceiling);
  bench_vector<P, Tile::kGemv8, W>(name, 8, 11008, 4096, ceiling);
}

int run() {
  cudaDeviceProp device;
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  const int multiprocessors = device.multiProcessorCount;
  if (!g_json) std::printf("%s, %d multiprocessors\n", device.name, multiprocessors);
  bench_graph_nodes(false);
  bench_graph_nodes(true);
  const double bytes = memory_ceiling();
  bench_terms(bytes, 10 * device.major + device.minor);
  const double fp16 = product_ceiling<Precision::kFp16>("fp16", multiprocessors);
  const double bf16 = product_ceiling<Precision::kBf16>("bf16", multiprocessors);
  const double tf32 = product_ceiling<Precision::kTf32>("tf32", multiprocessors);
  const double reached =
      device.major >= 9 ? 0.629 : 1;  // by mma.sync, of what there is: time_model.h, [hopper]
  const double peak = fp16 / reached;
  bench_layer<Tile::k32x64, 1>("BERT queries, keys, values", 128, 2304, 768, peak);
  bench_layer<Tile::k64x64, 4>("BERT narrowing", 128, 768, 3072, peak);
  bench_layer<Tile::k32x64, 1>("ViT widening", 197, 3072, 768, peak);
  for (const int past : {128, 1023, 8191}) {
    bench_decode<AttentionTile::k1ByLanes>("by lanes", past, bytes);
    bench_decode<AttentionTile::k16ByKeys>("by tiles", past, bytes);
  }
  bench_conv<Tile::k64x64>(56, 64, peak);
  bench_conv<Tile::k32x64>(14, 256, peak);
  for (const int tokens : {512, 1024, 2048, 4096}) bench_attention<Precision::kFp16>("fp16", tokens, fp16);
  for (const int tokens : {128, 1024, 4096}) {
    bench_attention<Precision::kFp16, AttentionTile::k16ByKeys>("fp16 by keys", tokens, fp16);
  }
  bench_attention<Precision::kBf16>("bf16", 4096, bf16);
  bench_attention<Precision::kTf32>("tf32", 4096, tf32);
  bench_vectors<Precision::kFp32, float>("fp32", bytes);
  bench_vectors<Precision::kFp16, Half>("fp16", bytes);
  bench_maps<64 << 20>(bytes);
  bench_maps<4 << 20>(bytes);  // stays in the second-level cache of a large GPU
  bench_product<Precision::kFp16, Tile::k128x128, Half>("fp16", 4096, fp16);
  bench_product<Precision::kTf32, Tile::k128x128, float>("tf32", 4096, tf32);
  // Three products for each.
  bench_product<Precision::kFp32, Tile::k64x64, float>("fp32", 4096, tf32 / 3);
  bench_rows(bytes);
  bench_clusters(peak);
  // Last: what has never run on such a device may stop here, with everything else said.
  if (device.major == 9) bench_warpgroups(fp16 / 0.629);
  return 0;
}

}  // namespace
}  // namespace GCRT_NAMESPACE

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") != 0) {
      std::fprintf(stderr, "usage: cuda_kernel_bench [--json]\n");
      return 2;
    }
    GCRT_NAMESPACE::g_json = true;
  }
  return GCRT_NAMESPACE::run();
}
