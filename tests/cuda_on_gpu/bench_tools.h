// What programs that time kernels on a GPU share: memory with random numbers, times between events, and rows
// of the report.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {
namespace {

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

GCRT_HOST_DEVICE std::uint32_t scramble(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Numbers from [-1, 1).
template <class T>
GCRT_GLOBAL(256)
void fill(T* values, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{256} + threadIdx.x; i < count;
       i += std::size_t{256} * gridDim.x) {
    const float value = static_cast<float>(scramble(static_cast<std::uint32_t>(i)) >> 8) * 0x1p-23f - 1.0f;
    store_from_float(Lanes<1>{}, values + i, value);
  }
}

template <class T>
class Memory {
 public:
  explicit Memory(std::size_t count) {
    require(cudaMalloc(&data_, std::max<std::size_t>(count, 4) * sizeof(T)), "cudaMalloc");
    Queue queue;
    launch(queue, 1024, 256, 0, &fill<T>, data_, count);
    require(queue.error, "fill");
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

struct Time {
  double least;  // milliseconds of one call
  double median;
};

// `body(queue, round)` starts one call.
template <class F>
Time measure(const F& body) {
  constexpr int kRounds = 25;
  cudaEvent_t start;
  cudaEvent_t end;
  require(cudaEventCreate(&start), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  int calls = 4;  // of a round: 4 to learn how long one takes, then as many as fill 2 ms
  std::vector<double> times;
  for (int round = -1; round < kRounds; ++round) {
    Queue queue;
    body(queue, 0);  // the device is busy when the first event comes
    require(cudaEventRecord(start), "cudaEventRecord");
    for (int call = 0; call < calls; ++call) body(queue, call);
    require(cudaEventRecord(end), "cudaEventRecord");
    require(queue.error, "launch");
    require(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
    const double one = static_cast<double>(milliseconds) / calls;
    if (round < 0) {
      calls = std::max(1, std::min(200, static_cast<int>(2.0 / std::max(one, 1e-3))));
    } else {
      times.push_back(one);
    }
  }
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

bool g_json = false;

// `work`: operations or bytes of one call; `ceiling`:
// the most of them per second, 0 where this is the ceiling.
double report(const std::string& name, const char* unit, Time time, double work, double ceiling) {
  const double rate = work / time.least * 1e3;
  const double part = ceiling > 0 ? 100 * rate / ceiling : 100;
  const bool is_bytes = std::strcmp(unit, "GB/s") == 0;
  const double shown = rate * (is_bytes ? 1e-9 : 1e-12);  // of anything else, millions in a microsecond
  if (g_json) {
    std::printf(
        "{\"name\": \"%s\", \"min_ms\": %.6f, \"median_ms\": %.6f, \"rate\": %.3f, \"unit\": \"%s\", "
        "\"percent\": %.2f}\n",
        name.c_str(), time.least, time.median, shown, unit, part);
  } else {
    std::printf("%-44s min %9.4f ms, median %9.4f ms %9.1f %s", name.c_str(), time.least, time.median, shown,
                unit);
    if (ceiling > 0) std::printf(", %.0f %%", part);
    std::printf("\n");
  }
  return rate;
}

struct StoreEpilogue {
  static constexpr int kMaxLanes = 4;
  float* y;
  std::ptrdiff_t stride;
  std::ptrdiff_t entry;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * stride + n, sums);
  }
  GCRT_INLINE StoreEpilogue at_batch(std::ptrdiff_t z) const { return {y + z * entry, stride, entry}; }
};

}  // namespace
}  // namespace GCRT_NAMESPACE
