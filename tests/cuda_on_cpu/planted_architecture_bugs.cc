// A product with kernels for three architectures, and how a project goes wrong with them. Usage:
// planted_architecture_bugs NAME; "none" has no mistake. The emulator is what CUDA_ON_CPU_ARCHITECTURE says.
#include <cstdio>
#include <string_view>
#include <vector>

#include "gcrt/cuda/product/gemm.h"

namespace GCRT_NAMESPACE {
namespace {

enum : unsigned { sm_80 = 1, sm_87 = 2, sm_90a = 4 };
struct Architectures {
  static constexpr unsigned of(int capability, bool has_warpgroups) {
    if (has_warpgroups) return sm_90a;
    return capability == 87 ? sm_87 : sm_80;
  }
};
static_assert(Architectures::of(80, false) == sm_80 && Architectures::of(87, false) == sm_87 &&
              Architectures::of(90, true) == sm_90a && Architectures::of(90, false) == sm_80);

struct Store {
  static constexpr int kMaxLanes = 4;
  float* y;
  GCRT_INLINE Store at_batch(std::ptrdiff_t) const { return *this; }
  template <class L, class V>
  GCRT_INLINE auto value(L, V sums, std::ptrdiff_t, std::ptrdiff_t) const {
    return sums;
  }
  template <class L, class V>
  GCRT_INLINE void put(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * 64 + n, sums);
  }
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    put(lane, value(lane, sums, m, n), m, n);
  }
};
template <unsigned kSet>
using OnlyOn = EpilogueOnly<Architectures, kSet, Store>;

constexpr int kRows = 32, kColumns = 64, kDepth = 512;

// As an emitted function has it.
void multiply(const float* a, const float* b, float* y, float* workspace, Queue& queue) {
  switch (queue.architecture) {
    case sm_80: {
      const OnlyOn<sm_80> epilogue{y};
      gemm<Precision::kFp32, Tile::k16x64>(queue, kRows, kColumns, kDepth, a, kDepth, b, kDepth, GemmBatch{},
                                           SplitDepth<4>{workspace}, epilogue);
      break;
    }
    case sm_87: {
      const OnlyOn<sm_87> epilogue{y};
      gemm<Precision::kFp32, Tile::k32x64>(queue, kRows, kColumns, kDepth, a, kDepth, b, kDepth, GemmBatch{},
                                           SplitDepth<2>{workspace}, epilogue);
      break;
    }
    case sm_90a: {
      const OnlyOn<sm_90a> epilogue{y};
      gemm<Precision::kFp32, Tile::k16x64>(queue, kRows, kColumns, kDepth, a, kDepth, b, kDepth, GemmBatch{},
                                           SplitInCluster<4>{}, epilogue);
      break;
    }
  }
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* memory = nullptr;
  cudaMalloc(&memory, values.size() * sizeof(T));
  cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return memory;
}

int run(std::string_view bug) {
  const std::size_t parts = bug == "workspace_of_the_smaller" ? 2 : 4;
  const std::vector<float> ones(std::size_t{kColumns} * kDepth, 1.0f);
  std::vector<float> y(std::size_t{kRows} * kColumns);
  float *const a = on_device(ones), *const b = on_device(ones), *const result = on_device(y);
  float* const workspace = on_device(std::vector<float>(parts * y.size()));
  std::uint32_t* const counters = on_device(std::vector<std::uint32_t>(64));
  Queue queue;
  queue.counters = counters;
  queue.error = read_architecture<Architectures>(&queue.architecture);
  // The kernels of the oldest, whatever the device runs; those of none.
  if (bug == "always_the_oldest") queue.architecture = sm_80;
  if (bug == "not_asked") queue.architecture = 0;
  // A device of 9.0 is not yet one whose code is that of sm_90a.
  if (bug == "by_the_device") queue.architecture = Architectures::of(90, true);
  multiply(a, b, result, workspace, queue);
  copy(queue, y.data(), result, y.size() * sizeof(float));
  for (void* memory : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(result),
                       static_cast<void*>(workspace), static_cast<void*>(counters)}) {
    cudaFree(memory);
  }
  if (queue.error != cudaSuccess) {
    std::printf("refused: %s\n", cudaGetErrorString(queue.error));
    return 1;
  }
  for (const float sum : y) {
    if (sum == kDepth) continue;
    std::printf("wrong result: %g, expected %d\n", static_cast<double>(sum), kDepth);
    return 1;
  }
  std::printf("nothing noticed\n");
  return 0;
}

}  // namespace
}  // namespace GCRT_NAMESPACE

int main(int argc, char** argv) { return argc == 2 ? GCRT_NAMESPACE::run(argv[1]) : 2; }
