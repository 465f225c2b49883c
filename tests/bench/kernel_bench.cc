// Times each runtime kernel alone, next to the FMA peak measured around every call, and prints minimum and
// median time, GF/s and the share of that peak. Depends on the runtime headers only:
//   g++ -std=c++17 -O3 -march=native $(cat runtime_stub/flags/cpp.txt) -Iruntime_stub
//   tests/bench/kernel_bench.cc -o bench clang++ the same, with $(cat runtime_stub/flags/clang.txt)
// Usage: kernel_bench [substring of the names to run]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "gcrt/cpu/image/conv.h"
#include "gcrt/cpu/image/conv_transpose.h"
#include "gcrt/cpu/image/depthwise.h"
#include "gcrt/cpu/image/pool.h"
#include "gcrt/cpu/image/winograd.h"
#include "gcrt/cpu/product/decode_int8.h"
#include "gcrt/cpu/product/gemm.h"
#include "gcrt/cpu/rnn.h"

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
  std::printf("%-44s min %9.2f us  median %9.2f us  %6.1f GF/s  %6.1f GB/s  share of peak %.2f\n",
              name.c_str(), times.front() * 1e6, times[times.size() / 2] * 1e6, flops / times.front() * 1e-9,
              bytes / times.front() * 1e-9, shares[shares.size() * 3 / 4]);
  std::fflush(stdout);
}

// Floats on a cache line boundary, as the emitted arena and weights are. Buffers start at different distances
// from a page, else every load of an input waits for the store to the same place of the
// output (4 KiB aliasing).
class Buffer {
 public:
  explicit Buffer(double count) {
    static std::size_t skew = 0;
    skew = (skew + 1088) % 4096;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    block_ = std::aligned_alloc(4096, (bytes + skew + 2 * 4096) / 4096 * 4096);
    if (block_ == nullptr) std::abort();
    data_ = static_cast<float*>(block_) + skew / sizeof(float);
    std::memset(data_, 0, bytes);
  }
  ~Buffer() { std::free(block_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() const { return data_; }

 private:
  void* block_;
  float* data_;
};

struct Values : Buffer {
  explicit Values(double count) : Buffer(count) {
    std::uint32_t state = 12345;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      state = state * 1664525u + 1013904223u;
      data()[i] = static_cast<float>(static_cast<std::int32_t>(state)) * (1.0f / 2147483648.0f);
    }
  }
};

bool is_wanted(const std::string& name) { return std::strstr(name.c_str(), g_filter) != nullptr; }

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
  const std::string name = shape_name("gemm", {rows, columns, depth});
  if (!is_wanted(name)) return;
  const double m = rows, n = columns, k = depth;
  const Values a(m * k), b(k * n), bias(n);
  const Buffer packed(static_cast<double>(packed_b_size(depth, columns))), y(m * n);
  pack_b(depth, columns, b.data(), columns, 1, packed.data());
  bench(name, 2.0 * m * n * k, 4.0 * (m * k + k * n + m * n), [&] {
    gemm(rows, columns, depth, a.data(), depth, packed.data(), BiasRelu{y.data(), columns, bias.data()});
  });
}

void bench_gemms() {
  const int shapes[][3] = {
      {1600, 58, 58},   {400, 116, 116},  {100, 232, 232},  {1600, 96, 58},  {400, 64, 64},
      {1600, 232, 232}, {784, 128, 512},  {196, 1024, 256}, {49, 2048, 512}, {49, 512, 4608},
      {128, 768, 768},  {128, 3072, 768}, {128, 768, 3072}, {9, 96, 96},     {25, 48, 48},
      {100, 24, 16},    {16, 16, 16},     {1, 64, 64},      {1, 10, 84},     {1, 512, 512},
      {1, 1000, 1280},  {1, 2048, 512},   {2, 512, 512},    {3, 512, 512},   {4, 512, 512}};
  for (const auto& s : shapes) bench_gemm(s[0], s[1], s[2]);
}

// A product of few rows whose weights come from memory: one of as many matrices as no cache holds after the
// other, beside the time in which their bytes are only read.
constexpr std::ptrdiff_t kColdBytes = std::ptrdiff_t{256} << 20;

template <class F>
void bench_cold(const std::string& name, std::ptrdiff_t matrix_bytes, double flops, const F& product) {
  if (!is_wanted(name)) return;
  const Values memory(static_cast<double>(kColdBytes) / sizeof(float));
  const std::ptrdiff_t count = kColdBytes / matrix_bytes;
  bench(name, flops * static_cast<double>(count), static_cast<double>(kColdBytes), [&] {
    for (std::ptrdiff_t i = 0; i < count; ++i) product(memory.data() + i * (matrix_bytes / 4));
  });
}

void bench_read() {
  volatile float sink = 0;
  bench_cold("cold read", kColdBytes, 0, [&](const float* weights) {
    Vector sums[8] = {};
    for (std::ptrdiff_t i = 0; i < kColdBytes / 4; i += 8 * kLanes) {
      GCRT_UNROLL
      for (int j = 0; j < 8; ++j) sums[j] += load(Lanes<kLanes>{}, weights + i + j * kLanes);
    }
    for (int j = 1; j < 8; ++j) sums[0] += sums[j];
    sink = sums[0][0];
  });
}

void bench_cold_floats(int rows, int columns, int depth) {
  const Values a(rows * depth), bias(columns);
  const Buffer y(rows * columns);
  bench_cold(shape_name("cold floats", {rows, columns, depth}), std::ptrdiff_t{4} * columns * depth,
             2.0 * rows * columns * depth, [&](const float* b) {
               gemm(rows, columns, depth, a.data(), depth, b, BiasRelu{y.data(), columns, bias.data()});
             });
}

template <int Bits>
void bench_cold_words(int rows, int columns, int depth) {
  const Values a(rows * depth), bias(columns), scales(columns * depth / 32);
  const Buffer y(rows * columns), prepared(rows * 2 * depth);
  const std::string name = shape_name(Bits == 4 ? "cold 4 bits" : "cold 8 bits", {rows, columns, depth});
  bench_cold(name, std::ptrdiff_t{columns} * depth * Bits / 8, 2.0 * rows * columns * depth,
             [&](const float* words) {
               const BlockWeights<Bits, void> b{reinterpret_cast<const std::uint32_t*>(words), scales.data(),
                                                nullptr, 32};
               prepare_rows(rows, depth, a.data(), depth, b, prepared.data());
               gemm_decoded(rows, columns, depth, a.data(), depth, b, prepared.data(), Blocking{},
                            BiasRelu{y.data(), columns, bias.data()}, 0,
                            gemm_work_items(rows, columns, Blocking{}));
             });
}

template <int Bits>
void bench_cold_rounded(int rows, int columns, int depth) {
  const Values a(rows * depth), bias(columns), scales(columns * depth / 32);
  const Buffer y(rows * columns);
  std::vector<std::int8_t> rounded(static_cast<std::size_t>(rows * rounded_row_size(depth, 32)));
  const std::string name =
      shape_name(Bits == 4 ? "cold rounded 4 bits" : "cold rounded 8 bits", {rows, columns, depth});
  bench_cold(name, std::ptrdiff_t{columns} * depth * Bits / 8, 2.0 * rows * columns * depth,
             [&](const float* words) {
               const BlockWeights<Bits, void> b{reinterpret_cast<const std::uint32_t*>(words), scales.data(),
                                                nullptr, 32};
               round_rows(depth, a.data(), depth, b, rounded.data(), 0, rows);
               gemm_rounded(rows, columns, depth, b, rounded.data(), Blocking{},
                            BiasRelu{y.data(), columns, bias.data()}, 0,
                            gemm_work_items(rows, columns, Blocking{}));
             });
}

void bench_decoding() {
  bench_read();
  for (const int rows : {1, 2, 4, 16, 128}) {
    if (rows <= 4) bench_cold_floats(rows, 2304, 768);
    bench_cold_words<8>(rows, 2304, 768);
    bench_cold_words<4>(rows, 2304, 768);
    bench_cold_rounded<8>(rows, 2304, 768);
    bench_cold_rounded<4>(rows, 2304, 768);
  }
}

ConvShape square_shape(int size, int in_c, int out_c, int kernel, int stride, int pad) {
  ConvShape s{};
  s.batch = 1;
  s.in_h = s.in_w = size;
  s.in_c = in_c;
  s.out_c = out_c;
  s.out_h = s.out_w = (size + 2 * pad - kernel) / stride + 1;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = pad;
  s.dilation_h = s.dilation_w = 1;
  s.groups = 1;
  s.in_pixel_stride = in_c;
  s.in_row_stride = std::ptrdiff_t{size} * in_c;
  s.in_image_stride = s.in_row_stride * size;
  return s;
}

void bench_conv(int size, int in_c, int out_c, int kernel, int stride) {
  const std::string name = shape_name("conv", {size, in_c, out_c, kernel, stride});
  if (!is_wanted(name)) return;
  const ConvShape s = square_shape(size, in_c, out_c, kernel, stride, kernel / 2);
  const double depth = in_c * kernel * kernel;
  const double pixels = static_cast<double>(s.out_h) * s.out_w;
  const Values x(static_cast<double>(s.in_image_stride)), w(depth * (out_c + 16)), bias(out_c);
  const Buffer zeros(in_c + 16), y(pixels * out_c);
  bench(name, 2.0 * pixels * out_c * depth,
        4.0 * (static_cast<double>(s.in_image_stride) + pixels * out_c + depth * out_c), [&] {
          conv2d(s, x.data(), w.data(), zeros.data(), BiasRelu{y.data(), out_c, bias.data()});
        });
}

void bench_convs() {
  const int shapes[][5] = {
      {56, 64, 64, 3, 1},  {28, 128, 128, 3, 1}, {14, 256, 256, 3, 1}, {7, 512, 512, 3, 1},
      {56, 64, 128, 3, 2}, {20, 96, 96, 3, 1},   {10, 96, 96, 3, 1},   {10, 64, 64, 3, 1},
      {5, 64, 64, 3, 1},   {3, 64, 64, 3, 1},    {10, 16, 16, 3, 1},   {20, 16, 32, 3, 1},
      {40, 32, 32, 3, 1},  {160, 3, 24, 3, 2},   {224, 3, 64, 7, 2},   {28, 1, 8, 5, 1},
      {320, 3, 16, 3, 2},  {14, 8, 16, 5, 1},    {56, 64, 256, 1, 1},  {56, 64, 64, 1, 2}};
  for (const auto& c : shapes) bench_conv(c[0], c[1], c[2], c[3], c[4]);
}

// GF/s are those of the window's products, of which fewer are formed.
template <int T>
void bench_winograd(int size, int channels, const WinogradPlan& plan) {
  const std::string name = shape_name(T == 2 ? "winograd2" : "winograd4", {size, channels});
  if (!is_wanted(name)) return;
  const ConvShape s = square_shape(size, channels, channels, 3, 1, 1);
  const double values = 1.0 * size * size * channels, depth = 9.0 * channels;
  const Values x(values), w(static_cast<double>(winograd_weights_size(T, channels, channels))),
      bias(channels);
  const Buffer zeros(channels), y(values), scratch(static_cast<double>(winograd_scratch(T, channels, plan)));
  bench(name, 2 * values * depth, 4 * (2 * values + depth * channels), [&] {
    winograd<T>(nullptr, s, plan, x.data(), w.data(), zeros.data(), scratch.data(),
                BiasRelu{y.data(), channels, bias.data()});
  });
}

void bench_winograds() {
  bench_winograd<4>(56, 64, {98, 25, 1});
  bench_winograd<4>(28, 128, {49, 25, 1});
  bench_winograd<2>(14, 256, {49, 25, 1});
  bench_winograd<2>(7, 512, {16, 16, 1});
}

void bench_depthwise(int size, int channels, int kernel, int stride) {
  const std::string name = shape_name("depthwise", {size, channels, kernel, stride});
  if (!is_wanted(name)) return;
  ConvShape s = square_shape(size, channels, channels, kernel, stride, kernel / 2);
  s.groups = channels;
  const double pixels = static_cast<double>(s.out_h) * s.out_w;
  const Values x(static_cast<double>(s.in_image_stride)), w(kernel * kernel * channels), bias(channels);
  const Buffer y(pixels * channels);
  bench(name, 2.0 * pixels * channels * kernel * kernel,
        4.0 * (static_cast<double>(s.in_image_stride) + pixels * channels), [&] {
          depthwise2d(s, x.data(), w.data(), BiasRelu{y.data(), channels, bias.data()});
        });
}

void bench_depthwises() {
  const int shapes[][4] = {
      {40, 96, 3, 1},  {40, 58, 3, 1},  {20, 116, 3, 1}, {10, 232, 3, 1}, {40, 96, 5, 1},  {20, 96, 5, 1},
      {40, 116, 3, 2}, {112, 32, 3, 1}, {56, 144, 3, 1}, {14, 576, 3, 1}, {56, 144, 3, 2}, {7, 960, 3, 1},
      {5, 96, 5, 1},   {5, 16, 3, 1},   {14, 96, 7, 1},  {20, 16, 3, 1},  {18, 32, 3, 1},  {34, 16, 3, 1}};
  for (const auto& d : shapes) bench_depthwise(d[0], d[1], d[2], d[3]);
}

void bench_transposed(int size, int in_c, int out_c, int kernel, int stride) {
  const std::string name = shape_name("conv_transpose", {size, in_c, out_c, kernel, stride});
  if (!is_wanted(name)) return;
  ConvShape s = square_shape(size, in_c, out_c, kernel, 1, (kernel - stride) / 2);
  s.stride_h = s.stride_w = stride;
  s.out_h = s.out_w = size * stride;
  const double depth = in_c * kernel * kernel;
  const double pixels = static_cast<double>(s.out_h) * s.out_w;
  const Values x(static_cast<double>(s.in_image_stride)), w(depth * (out_c + 16)), bias(out_c);
  const Buffer zeros(in_c + 16), y(pixels * out_c);
  bench(name, 2.0 * size * size * out_c * depth,
        4.0 * (static_cast<double>(s.in_image_stride) + pixels * out_c + depth * out_c), [&] {
          conv_transpose2d(s, x.data(), w.data(), zeros.data(), BiasRelu{y.data(), out_c, bias.data()});
        });
}

// One addition or comparison per tap and element counts as one operation.
void bench_pool(int size, int channels, int kernel, int stride) {
  const std::string name = shape_name("pool", {size, channels, kernel, stride});
  if (!is_wanted(name)) return;
  const ConvShape s = square_shape(size, channels, channels, kernel, stride, kernel == 3 ? 1 : 0);
  const double pixels = static_cast<double>(s.out_h) * s.out_w;
  const Values x(static_cast<double>(s.in_image_stride)), bias(channels);
  const Buffer y(pixels * channels);
  const double operations = pixels * channels * kernel * kernel;
  const double bytes = 4.0 * (static_cast<double>(s.in_image_stride) + pixels * channels);
  bench("max " + name, operations, bytes, [&] {
    max_pool2d(nullptr, s, x.data(), BiasRelu{y.data(), channels, bias.data()});
  });
  bench("average " + name, operations, bytes, [&] {
    average_pool2d(nullptr, s, x.data(), true, 1, 1, BiasRelu{y.data(), channels, bias.data()});
  });
}

// GF/s of both products; GB/s of the recurrence weights, read once per step.
void bench_rnn(bool is_lstm, int hidden, int input, int steps) {
  const std::string name = shape_name(is_lstm ? "lstm" : "gru", {hidden, input, steps});
  if (!is_wanted(name)) return;
  const RnnShape shape{steps, 1, input, hidden, 1, false};
  const int gates = is_lstm ? 4 : 3;
  const double units = static_cast<double>(rnn_padded_units(hidden));
  const Values x(1.0 * steps * input), w(gates * units * input), r(gates * units * hidden),
      bias(gates * units);
  const Buffer y(1.0 * steps * hidden), scratch(static_cast<double>(rnn_scratch_floats(shape, gates, steps)));
  const RnnActivation s{RnnFunction::sigmoid, 0, 0}, t{RnnFunction::tanh, 0, 0};
  const RnnOptions options{{{s, t, t}, {s, t, t}}, 0.0f, false, true};
  for (double i = 0; i < gates * units * hidden; ++i) r.data()[static_cast<std::size_t>(i)] *= 0.01f;
  RnnOperands o{};
  o.x = x.data();
  o.w_packed = w.data();
  o.r_packed = r.data();
  o.bias = bias.data();
  o.y = y.data();
  o.scratch = scratch.data();
  bench(name, 2.0 * steps * gates * hidden * (hidden + input), 4.0 * steps * gates * units * hidden,
        [&] { is_lstm ? lstm(shape, o, options, steps) : gru(shape, o, options, steps); });
}

void bench_others() {
  bench_transposed(20, 64, 64, 2, 2);
  bench_transposed(20, 64, 32, 4, 2);
  bench_transposed(10, 96, 24, 2, 2);
  bench_pool(112, 64, 3, 2);
  bench_pool(80, 24, 3, 2);
  bench_pool(20, 116, 2, 2);
  bench_pool(10, 96, 10, 1);
  for (int hidden : {32, 64, 128, 256, 512}) bench_rnn(true, hidden, 64, 100);
  for (int hidden : {64, 128, 256}) bench_rnn(false, hidden, 64, 100);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_filter = argv[1];
  std::printf("%d lanes, FMA peak %.1f GF/s\n", kLanes, measure_peak());
  bench_gemms();
  bench_decoding();
  bench_convs();
  bench_winograds();
  bench_depthwises();
  bench_others();
  return 0;
}
