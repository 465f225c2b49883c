// Kernels with one mistake each, of the kinds that a device may forgive for years. Usage: planted_bugs NAME,
// where "none" runs all of them without their mistakes. The emulator ends the process with its complaint, or
// the results are visibly wrong; in both cases one line says what was noticed.
// tests/cuda_on_cpu/CMakeLists.txt lists who notices what.
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

constexpr int kThreads = 128;

// Each thread reads what a thread of the next warp (or lane) wrote.
template <int Distance, bool Bug>
GCRT_GLOBAL(kThreads)
void read_neighbour(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  const int rank = thread_rank();
  shared[rank] = x[rank];
  if (!Bug) barrier();
  y[rank] = shared[(rank + Distance) % kThreads];
}

// Launched such that it may start before the grid in front of it has ended.
template <bool Bug>
GCRT_GLOBAL(kThreads)
void start_early(const float* x, float* y) {
  const int rank = thread_rank();
  if (Bug && rank == 77) {
    y[rank] = x[rank];
    return;
  }
  await_previous_grid();
  y[rank] = x[rank];
}

// The buffer is written again before all have read it.
template <bool Bug>
GCRT_GLOBAL(kThreads)
void reuse_buffer(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  const int rank = thread_rank();
  shared[rank] = x[rank];
  barrier();
  y[rank] = shared[(rank + 32) % kThreads];
  if (!Bug) barrier();
  shared[rank] = -1.0f;
}

// A pipeline of three stages; the wait must leave one group on its way, not two.
template <int Pending, bool Commit>
GCRT_GLOBAL(kThreads)
void pipeline(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  constexpr int steps = 6;
  const int rank = thread_rank();
  const auto load = [&](int step) {
    if (step < steps && rank < 32) cp_async<16>(shared + step % 3 * 128 + rank * 4, x + rank * 4);
    if (Commit) cp_async_commit();
  };
  load(0);
  load(1);
  float sum = 0;
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<Pending>();
    barrier();
    sum += shared[step % 3 * 128 + rank];
    load(step + 2);
  }
  y[rank] = sum / steps;
}

template <int Beyond>
GCRT_GLOBAL(kThreads)
void read_beyond(const float* x, float* y) {
  y[thread_rank()] = x[thread_rank() + (thread_rank() == kThreads - 1 ? Beyond : 0)];
}
template <int Beyond>
GCRT_GLOBAL(kThreads)
void write_beyond(const float* x, float* y) {
  const int rank = thread_rank();
  y[rank] = x[rank];
  if (rank == 5) y[kThreads - 1 + Beyond] = x[kThreads - 1];
}
template <int Beyond>
GCRT_GLOBAL(kThreads)
void write_beyond_shared(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  const int rank = thread_rank();
  shared[rank + (rank == kThreads - 1 ? Beyond : 0)] = x[rank];
  barrier();
  y[rank] = Beyond != 0 ? x[rank] : shared[rank];
}

// Copies 16 bytes per lane of the first warp through shared memory that is only as large as the launch says.
GCRT_GLOBAL(kThreads) void copy_through_shared(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  const int rank = thread_rank();
  if (rank < 32) cp_async<16>(shared + rank * 4, x + rank * 4);
  cp_async_commit();
  cp_async_wait<0>();
  barrier();
  y[rank] = shared[rank];
}

template <int Offset>
GCRT_GLOBAL(kThreads)
void load_packs(const float* x, float* y) {
  const int rank = thread_rank();
  if (rank < 31) store(Lanes<4>{}, y + rank * 4, load(Lanes<4>{}, x + rank * 4 + Offset));
  if (rank >= 124) y[rank] = x[rank];
}
template <int Offset>
GCRT_GLOBAL(kThreads)
void copy_misaligned(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  const int rank = thread_rank();
  if (rank < 31) cp_async<16>(shared + rank * 4, x + rank * 4 + Offset);
  cp_async_commit();
  cp_async_wait<0>();
  barrier();
  y[rank] = rank < 124 ? shared[rank] : x[rank];
}

// Half of a warp shuffles, the other half waits for the block.
template <bool Bug>
GCRT_GLOBAL(kThreads)
void wait_apart(const float* x, float* y) {
  const int rank = thread_rank();
  float value = x[rank];
  if (Bug && rank % 32 >= 16) {
    barrier();
  } else {
    value = shuffle(value, rank);
    if (!Bug) barrier();
  }
  y[rank] = value;
}
template <bool Bug>
GCRT_GLOBAL(kThreads)
void meet_in_two_places(const float* x, float* y) {
  const int rank = thread_rank();
  float value = x[rank];
  if (Bug && rank % 2 == 1) {
    value += ballot(true) == 0 ? 1.0f : 0.0f;
  } else {
    value = shuffle(value, rank);
  }
  y[rank] = value;
}
template <bool Bug>
GCRT_GLOBAL(kThreads)
void multiply_without_lane(const float* x, float* y) {
  const int rank = thread_rank();
  y[rank] = x[rank];
  if (Bug && rank == 37) return;
  float d[4] = {};
  const std::uint32_t a[4] = {};
  const std::uint32_t b[2] = {};
  mma_tf32(d, a, b);
  y[rank] += d[0];
}
// A result that no thread writes stays poisoned.
template <bool Bug>
GCRT_GLOBAL(kThreads)
void forget_the_tail(const float* x, float* y) {
  const int rank = thread_rank();
  if (!Bug || rank < 100) y[rank] = x[rank];
}

// Four parts of a sum, each of which arrives at a counter; who comes last hands all of them on. The planted
// one arrives before its part is in memory.
template <bool Early>
GCRT_GLOBAL(kThreads)
void join_parts(const float* x, float* y) {
  GCRT_DYNAMIC_SHARED(float, shared);
  constexpr int parts = 4;
  const int rank = thread_rank();
  auto* const counter = reinterpret_cast<std::uint32_t*>(shared + kThreads);
  if (rank == 0) *counter = 0;
  for (int part = 0; part < parts; ++part) {
    if (Early && arrives_last(counter, parts)) break;
    if (rank / 32 == part) shared[rank] = x[rank];
    if (!Early && arrives_last(counter, parts)) break;
  }
  y[rank] = shared[rank] + static_cast<float>(*counter);
}

// What host code does with device memory, which its planted bug is.
enum class HostUse { kNone, kReads, kWrites };

struct Case {
  const char* name;
  void (*right)(const float*, float*);
  void (*wrong)(const float*, float*);
  std::size_t right_shared;
  std::size_t wrong_shared;
  int distance;        // y[i] is x[i + distance]
  bool early = false;  // by launch_early
  HostUse host = HostUse::kNone;
};

constexpr std::size_t kBytes = kThreads * sizeof(float);
const Case kCases[] = {
    {"missing_barrier", &read_neighbour<32, false>, &read_neighbour<32, true>, kBytes, kBytes, 32},
    {"missing_barrier_in_warp", &read_neighbour<1, false>, &read_neighbour<1, true>, kBytes, kBytes, 1},
    {"buffer_reused_early", &reuse_buffer<false>, &reuse_buffer<true>, kBytes, kBytes, 32},
    {"wait_off_by_one", &pipeline<1, true>, &pipeline<2, true>, 3 * kBytes, 3 * kBytes, 0},
    {"missing_commit", &pipeline<1, true>, &pipeline<1, false>, 3 * kBytes, 3 * kBytes, 0},
    {"read_out_of_bounds", &read_beyond<0>, &read_beyond<1>, 0, 0, 0},
    {"write_out_of_bounds", &write_beyond<0>, &write_beyond<1>, 0, 0, 0},
    {"shared_out_of_bounds", &write_beyond_shared<0>, &write_beyond_shared<1>, kBytes, kBytes, 0},
    {"shared_too_small", &copy_through_shared, &copy_through_shared, kBytes, kBytes - 16, 0},
    {"no_shared", &copy_through_shared, &copy_through_shared, kBytes, 0, 0},
    {"misaligned_load", &load_packs<0>, &load_packs<1>, 0, 0, 0},
    {"misaligned_copy", &copy_misaligned<0>, &copy_misaligned<2>, kBytes, kBytes, 0},
    {"arrives_before_its_sums", &join_parts<false>, &join_parts<true>, kBytes + 16, kBytes + 16, 0},
    {"deadlock", &wait_apart<false>, &wait_apart<true>, 0, 0, 0},
    {"two_meetings", &meet_in_two_places<false>, &meet_in_two_places<true>, 0, 0, 0},
    {"missing_lane", &multiply_without_lane<false>, &multiply_without_lane<true>, 0, 0, 0},
    {"unwritten_result", &forget_the_tail<false>, &forget_the_tail<true>, 0, 0, 0},
    {"missing_wait_for_grid", &start_early<false>, &start_early<true>, 0, 0, 0, true},
    {"host_reads", &forget_the_tail<false>, &forget_the_tail<false>, 0, 0, 0, false, HostUse::kReads},
    {"host_writes", &forget_the_tail<false>, &forget_the_tail<false>, 0, 0, 0, false, HostUse::kWrites},
};

int run(const Case& test, bool wrong) {
  std::vector<float> input(kThreads);
  for (int i = 0; i < kThreads; ++i) input[static_cast<std::size_t>(i)] = static_cast<float>(i);
  std::vector<float> output(kThreads);
  float* x = nullptr;
  float* y = nullptr;
  cudaMalloc(&x, kBytes);
  cudaMalloc(&y, kBytes);
  Queue queue;
  copy(queue, x, input.data(), kBytes);
  const auto kernel = wrong ? test.wrong : test.right;
  if (test.early) {
    const float* from = x;
    void* arguments[] = {&from, &y, nullptr};
    cuda_on_cpu::declare_kernel(kernel);
    keep_error(queue,
               launch_early(reinterpret_cast<const void*>(kernel), 1, kThreads, arguments, 0, nullptr));
  } else {
    launch(queue, 1, kThreads, wrong ? test.wrong_shared : test.right_shared, kernel, x, y);
  }
  volatile float* const used = wrong && test.host != HostUse::kNone ? y + 3 : &output[3];
  if (test.host == HostUse::kReads) static_cast<void>(*used);
  if (test.host == HostUse::kWrites) *used = 3;
  copy(queue, output.data(), y, kBytes);
  bool right = queue.error == cudaSuccess;
  if (!right) std::printf("%s: %s\n", test.name, cudaGetErrorString(queue.error));
  for (int i = 0; i < kThreads && right; ++i) {
    const float expected = static_cast<float>((i + test.distance) % kThreads);
    const float got = output[static_cast<std::size_t>(i)];
    right = got == expected;
    if (right) continue;
    std::printf("%s: wrong result: element %d is %g, expected %g\n", test.name, i, static_cast<double>(got),
                static_cast<double>(expected));
  }
  return cudaFree(x) == cudaSuccess && cudaFree(y) == cudaSuccess && right ? 0 : 1;
}

}  // namespace
}  // namespace GCRT_NAMESPACE

int main(int count, char** arguments) {
  using namespace GCRT_NAMESPACE;
  const std::string_view name = count == 2 ? arguments[1] : "";
  int failures = 0;
  bool known = false;
  for (const Case& test : kCases) {
    if (name != "none" && name != test.name) continue;
    known = true;
    failures += run(test, name != "none");
  }
  if (!known) std::printf("no bug is named so\n");
  if (known && failures == 0) std::printf("nothing noticed\n");
  return known && failures == 0 ? 0 : 1;
}
