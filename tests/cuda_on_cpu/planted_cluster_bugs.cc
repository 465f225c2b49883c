// Sums of parts that the blocks of a cluster add, each out of the shared memory of all, with one mistake
// each. Usage: planted_cluster_bugs NAME; "none" has no mistake. tests/cuda_on_cpu/CMakeLists.txt lists who
// notices what.
#include <vector>

#include "gcrt/cuda/device/cluster.h"
#include "gcrt/cuda/device/launch.h"
#include "planted_case.h"

namespace GCRT_NAMESPACE {
namespace {

enum class Bug { kNone, kBarrierOfBlock, kEndsWhileRead, kOwnPartAlone, kNextRank, kBeyondShared };

constexpr int kBlocks = 4, kThreads = 64, kFloats = 4 * kThreads;
constexpr std::size_t kSharedBytes = kFloats * sizeof(float);

float part_of(int block, int i) { return static_cast<float>((block + 1) * 1000 + i); }

// Block b writes the b-th quarter of y: the sums of all parts there.
template <Bug kBug>
GCRT_GLOBAL(kThreads)
void add(float* y) {
  GCRT_DYNAMIC_SHARED(float, parts);
  await_previous_grid();
  const int thread = thread_rank(), rank = cluster_rank();
  for (int i = 0; i < 4; ++i) parts[4 * thread + i] = part_of(rank, 4 * thread + i);
  if (kBug == Bug::kBarrierOfBlock) {
    barrier();
  } else {
    cluster_barrier();
  }
  if (thread < kThreads / kBlocks) {
    const int first = rank * kFloats / kBlocks + 4 * thread + (kBug == Bug::kBeyondShared ? kFloats : 0);
    Pack<float, 4> sum = splat(Lanes<4>{}, 0.0f);
    for (int block = 0; block < kBlocks; ++block) {
      const int of = kBug == Bug::kOwnPartAlone ? rank : kBug == Bug::kNextRank ? block + 1 : block;
      sum = sum + load_from_block(parts + first, of);
    }
    store(Lanes<4>{}, y + first, sum);
  }
  if (kBug != Bug::kEndsWhileRead) cluster_barrier();
}

struct Case {
  const char* name;
  void (*kernel)(float*);
};
const Case kCases[] = {
    {"none", &add<Bug::kNone>},
    {"barrier_of_block", &add<Bug::kBarrierOfBlock>},
    {"ends_while_read", &add<Bug::kEndsWhileRead>},
    {"own_part_alone", &add<Bug::kOwnPartAlone>},
    {"next_rank", &add<Bug::kNextRank>},
    {"beyond_shared", &add<Bug::kBeyondShared>},
};

int run(const Case& test) {
  std::vector<float> y(kFloats);
  float* y_device = nullptr;
  cudaMalloc(&y_device, kSharedBytes);
  Queue queue;
  launch_clusters(queue, kBlocks, dim3(kBlocks), dim3(kThreads), kSharedBytes, test.kernel, y_device);
  copy(queue, y.data(), y_device, kSharedBytes);
  cudaFree(y_device);
  if (has_failed(test.name, queue)) return 1;
  for (int i = 0; i < kFloats; ++i) {
    float expected = 0;
    for (int block = 0; block < kBlocks; ++block) expected += part_of(block, i);
    if (differs(test.name, i, y[static_cast<std::size_t>(i)], expected)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace GCRT_NAMESPACE

int main(int count, char** arguments) {
  using namespace GCRT_NAMESPACE;
  return run_planted(kCases, &run, count, arguments);
}
