// Times each runtime kernel alone, next to the FMA peak measured around every call, and prints minimum and
// median time, GF/s and the share of that peak. Depends on the runtime headers only:
//   g++ -std=c++17 -O3 -march=native -ffp-contract=off -Iruntime_stub tests/bench/kernel_bench.cc -o bench
//   clang++ the same, with -mprefer-vector-width=512
// Usage: kernel_bench [substring of the names to run]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "gcrt/cpu/gemm.h"

namespace {

using namespace GCRT_NAMESPACE;
using Vector = Pack<float, kLanes>;

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Peak of one core in GF/s: independent chains of FMA, about 10 us.
GCRT_NOINLINE double measure_peak() {
  constexpr int kChains = 12;
  constexpr int kSteps = 1500;
  Vector a[kChains];
  Vector scale = splat(Lanes<kLanes>{}, 0.999f);
  Vector shift = splat(Lanes<kLanes>{}, 1e-3f);
  GCRT_KEEP_IN_REGISTER(scale);
  GCRT_KEEP_IN_REGISTER(shift);
  GCRT_UNROLL
  for (int i = 0; i < kChains; ++i) a[i] = scale;
  const double start = seconds();
  for (int k = 0; k < kSteps; ++k) {
    GCRT_UNROLL
    for (int i = 0; i < kChains; ++i) {
      a[i] = fma(a[i], scale, shift);
      GCRT_KEEP_IN_REGISTER(a[i]);
    }
  }
  return 2.0 * kLanes * kChains * kSteps / (seconds() - start) * 1e-9;
}

const char* g_filter = "";

// Runs `body` until about 0.1 s and 30 rounds have passed. `flops` and `bytes` are those of one call.
template <class F>
void bench(const std::string& name, double flops, double bytes, const F& body) {
  if (std::strstr(name.c_str(), g_filter) == nullptr) return;
  body();
  const double once_start = seconds();
  body();
  const double once = seconds() - once_start;
  const int inner = std::max(1, static_cast<int>(20e-6 / (once + 1e-9)));
  std::vector<double> times, shares;
  const double begin = seconds();
  while (times.size() < 30 || (seconds() - begin < 0.1 && times.size() < 2000)) {
    const double before = measure_peak();
    const double start = seconds();
    for (int i = 0; i < inner; ++i) body();
    const double time = (seconds() - start) / inner;
    const double after = measure_peak();
    times.push_back(time);
    shares.push_back(flops / time * 1e-9 / std::max(before, after));
  }
  std::sort(times.begin(), times.end());
  std::sort(shares.begin(), shares.end());
  std::printf("%-44s min %9.2f us  median %9.2f us  %6.1f GF/s  %6.1f GB/s  share of peak %.2f\n", name.c_str(),
              times.front() * 1e6, times[times.size() / 2] * 1e6, flops / times.front() * 1e-9,
              bytes / times.front() * 1e-9, shares[shares.size() * 3 / 4]);
  std::fflush(stdout);
}

std::vector<float> values(std::size_t count) {
  std::vector<float> result(count);
  std::uint32_t state = 12345;
  for (float& v : result) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<std::int32_t>(state)) * (1.0f / 2147483648.0f);
  }
  return result;
}

// Bias and ReLU, the commonest epilogue.
struct BiasRelu {
  float* y;
  std::ptrdiff_t stride;
  const float* bias;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const V sum = sums + load(lane, bias + n);
    const V zero = {};
    store(lane, y + m * stride + n, blend(sum > zero, sum, zero));
  }
};

std::string shape_name(const char* kind, std::initializer_list<int> sizes) {
  std::string name = kind;
  for (int size : sizes) name += " " + std::to_string(size);
  return name;
}

void bench_gemm(int rows, int columns, int depth) {
  const auto a = values(static_cast<std::size_t>(rows * depth));
  const auto b = values(static_cast<std::size_t>(depth * columns));
  const auto bias = values(static_cast<std::size_t>(columns));
  std::vector<float> packed(static_cast<std::size_t>(packed_b_size(depth, columns)));
  std::vector<float> y(static_cast<std::size_t>(rows * columns));
  pack_b(depth, columns, b.data(), columns, 1, packed.data());
  bench(shape_name("gemm", {rows, columns, depth}), 2.0 * rows * columns * depth,
        4.0 * (rows * depth + depth * columns + rows * columns),
        [&] { gemm(rows, columns, depth, a.data(), depth, packed.data(), BiasRelu{y.data(), columns, bias.data()}); });
}

void bench_gemms() {
  const int shapes[][3] = {{1600, 58, 58},   {400, 116, 116}, {100, 232, 232}, {1600, 96, 58},  {400, 64, 64},
                           {1600, 232, 232}, {784, 128, 512}, {196, 1024, 256}, {49, 2048, 512}, {49, 512, 4608},
                           {128, 768, 768},  {128, 3072, 768}, {128, 768, 3072}, {9, 96, 96},     {25, 48, 48},
                           {100, 24, 16},    {16, 16, 16},    {1, 64, 64},     {1, 10, 84},     {1, 512, 512},
                           {1, 1000, 1280},  {2, 512, 512},   {3, 512, 512},   {4, 512, 512}};
  for (const auto& s : shapes) bench_gemm(s[0], s[1], s[2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_filter = argv[1];
  std::printf("%d lanes, FMA peak %.1f GF/s\n", kLanes, measure_peak());
  bench_gemms();
  return 0;
}
