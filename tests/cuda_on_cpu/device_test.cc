// The primitives of cuda/device/device.h, each in a kernel of its own.
#include "gcrt/cuda/device/device.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "device_memory.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

template <class... P, class... A>
void run(dim3 grid, dim3 block, std::size_t shared_bytes, void (*kernel)(P...), A&&... arguments) {
  Queue queue;
  launch(queue, grid, block, shared_bytes, kernel, std::forward<A>(arguments)...);
  ASSERT_EQ(queue.error, cudaSuccess);
}

GCRT_GLOBAL(1024) void write_places(int* places) {
  const dim3 grid = gridDim;
  const unsigned block = blockIdx.x + grid.x * (blockIdx.y + grid.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int* place = places + (block * threads + thread) * 3;
  place[0] = thread_rank();
  place[1] = lane_rank();
  place[2] = warp_rank();
}

TEST(Threads, KnowTheirPlaces) {
  for (const dim3 block : {dim3(1), dim3(96), dim3(33), dim3(8, 5, 3), dim3(4, 4, 64), dim3(1024)}) {
    const dim3 grid(3, 2, 2);
    const int threads = static_cast<int>(block.x * block.y * block.z);
    Device<int> places(static_cast<std::size_t>(threads) * 12 * 3);
    run(grid, block, 0, &write_places, places.data());
    const std::vector<int> got = places.read();
    for (int i = 0; i < threads * 12; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * 3;
      ASSERT_EQ(got[at], i % threads);
      ASSERT_EQ(got[at + 1], i % threads % 32);
      ASSERT_EQ(got[at + 2], i % threads / 32);
    }
  }
}

// Each thread leaves its number for another warp, through two barriers per round.
GCRT_GLOBAL(256) void pass_around(int* sums, int rounds) {
  GCRT_DYNAMIC_SHARED(int, slots);
  const int n = static_cast<int>(blockDim.x);
  const int rank = thread_rank();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    slots[rank] = rank * rounds + round;
    barrier();
    sum += slots[(rank + 41 + round) % n];
    barrier();
  }
  sums[rank] = sum;
}

TEST(Barrier, OrdersSharedMemory) {
  for (const int n : {32, 96, 256}) {
    Device<int> sums(static_cast<std::size_t>(n));
    run(1, static_cast<unsigned>(n), static_cast<std::size_t>(n) * 4, &pass_around, sums.data(), 5);
    const std::vector<int> got = sums.read();
    for (int i = 0; i < n; ++i) {
      int sum = 0;
      for (int round = 0; round < 5; ++round) sum += (i + 41 + round) % n * 5 + round;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], sum);
    }
  }
}

// Threads that have returned are not waited for.
GCRT_GLOBAL(128) void leave_early(int* counts) {
  const int rank = thread_rank();
  if (rank % 3 == 1) return;
  const int many = barrier_count(rank % 2 == 0);
  if (rank >= 64) return;
  barrier();
  const std::uint32_t mask = ballot(true);
  warp_sync();
  counts[rank] = many * 1000 + __builtin_popcount(mask);
}

TEST(Barrier, DoesNotWaitForThreadsThatReturned) {
  Device<int> counts(128);
  run(1, 128, 0, &leave_early, counts.data());
  const std::vector<int> got = counts.read();
  int even = 0;
  int live[2] = {};
  for (int i = 0; i < 128; ++i) {
    even += i % 3 != 1 && i % 2 == 0 ? 1 : 0;
    if (i < 64) live[i / 32] += i % 3 != 1 ? 1 : 0;
  }
  for (int i = 0; i < 128; ++i) {
    const int expected = i % 3 == 1 || i >= 64 ? -1 : even * 1000 + live[i / 32];
    ASSERT_EQ(got[static_cast<std::size_t>(i)], expected);
  }
}

struct Wide {
  float a;
  std::int32_t b;
  double c;
};

GCRT_GLOBAL(64) void shuffle_all(double* out) {
  const int rank = thread_rank();
  const int lane = lane_rank();
  double* mine = out + rank * 8;
  mine[0] = shuffle(static_cast<float>(rank), 5);
  mine[1] = shuffle_xor(rank, 17);
  mine[2] = static_cast<double>(shuffle_up(static_cast<std::int64_t>(rank) << 40, 3) >> 40);
  mine[3] = shuffle_down(rank + 0.5, 4);
  mine[4] = shuffle(static_cast<std::uint8_t>(rank), lane + 1);
  const Wide wide = shuffle(Wide{static_cast<float>(rank), -rank, rank * 2.0}, 31 - lane);
  mine[5] = static_cast<double>(wide.a) + wide.b * 1000 + wide.c * 1000000;
  mine[6] = ballot(rank % 5 == 0);
  mine[7] = shuffle(splat(Lanes<4>{}, rank), lane ^ 2)[3];
}

TEST(Warp, ShufflesAndBallots) {
  Device<double> out(64 * 8);
  run(1, 64, 0, &shuffle_all, out.data());
  const std::vector<double> got = out.read();
  for (int i = 0; i < 64; ++i) {
    const int lane = i % 32;
    const int base = i - lane;
    const double* mine = got.data() + i * 8;
    std::uint32_t mask = 0;
    for (int j = 0; j < 32; ++j) mask |= (base + j) % 5 == 0 ? 1u << j : 0u;
    const int mirror = base + 31 - lane;
    EXPECT_EQ(mine[0], base + 5);
    EXPECT_EQ(mine[1], base + (lane ^ 17));
    EXPECT_EQ(mine[2], lane < 3 ? i : i - 3);
    EXPECT_EQ(mine[3], (lane >= 28 ? i : i + 4) + 0.5);
    EXPECT_EQ(mine[4], base + (lane + 1) % 32);
    EXPECT_EQ(mine[5], mirror - mirror * 1000.0 + mirror * 2000000.0);
    EXPECT_EQ(mine[6], mask);
    EXPECT_EQ(mine[7], base + (lane ^ 2));
  }
}

GCRT_GLOBAL(128)
void count_up(float* sum, std::int32_t* extremes, std::uint64_t* many, std::uint32_t* tickets) {
  const int rank = static_cast<int>(blockIdx.x * blockDim.x) + thread_rank();
  atomic_add(sum, 0.5f);
  atomic_max(extremes, rank);
  atomic_min(extremes + 1, -rank);
  atomic_add(many, std::uint64_t{1} << 33);
  const std::uint32_t ticket = count_in_order(tickets);
  atomic_add(tickets + 1 + ticket, 1u);
}

TEST(Atomics, LoseNothingBetweenBlocks) {
  constexpr unsigned blocks = 20;
  Device<float> sum(std::vector<float>{0});
  Device<std::int32_t> extremes(std::vector<std::int32_t>{0, 0});
  Device<std::uint64_t> many(std::vector<std::uint64_t>{0});
  Device<std::uint32_t> tickets(std::vector<std::uint32_t>(1 + blocks * 128, 0));
  run(blocks, 128, 0, &count_up, sum.data(), extremes.data(), many.data(), tickets.data());
  EXPECT_EQ(sum.read()[0], blocks * 64.0f);
  EXPECT_EQ(extremes.read()[0], static_cast<int>(blocks * 128) - 1);
  EXPECT_EQ(extremes.read()[1], 1 - static_cast<int>(blocks * 128));
  EXPECT_EQ(many.read()[0], (std::uint64_t{1} << 33) * blocks * 128);
  const std::vector<std::uint32_t> got = tickets.read();
  EXPECT_EQ(got[0], blocks * 128);
  for (std::size_t i = 1; i < got.size(); ++i) ASSERT_EQ(got[i], 1u);
}

// Copies with `valid` bytes of each chunk; what shared memory holds before and after the wait. Only the
// emulator promises something before, and nothing of sm_75.
#if defined(__CUDACC__) || !GCRT_SM_80
constexpr bool kLooksEarly = false;
#else
constexpr bool kLooksEarly = true;
#endif

template <int Bytes>
GCRT_GLOBAL(32)
void copy_chunks(const unsigned char* source, unsigned char* before, unsigned char* after, int valid) {
  GCRT_DYNAMIC_SHARED(unsigned char, shared);
  const int at = lane_rank() * Bytes;
  cp_async<Bytes>(shared + at, source + at, valid);
  cp_async_commit();
  cp_async_commit();
  cp_async_wait<2>();
  for (int i = 0; i < Bytes && kLooksEarly; ++i) before[at + i] = shared[at + i];
  cp_async_wait<1>();
  for (int i = 0; i < Bytes; ++i) after[at + i] = shared[at + i];
  cp_async_wait<0>();
}

template <int Bytes>
void check_copies() {
  std::vector<unsigned char> bytes(32 * Bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 1);
  Device<unsigned char> source(bytes);
  for (int valid = 0; valid <= Bytes; ++valid) {
    Device<unsigned char> before(bytes.size());
    Device<unsigned char> after(bytes.size());
    run(1, 32, bytes.size(), &copy_chunks<Bytes>, source.data(), before.data(), after.data(), valid);
    const auto early = before.read();
    const auto late = after.read();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(early[i], 0xff) << "landed before the wait";
      ASSERT_EQ(late[i], static_cast<int>(i) % Bytes < valid ? bytes[i] : 0);
    }
  }
}

TEST(CopyAsync, LandsAtTheWaitAndFillsWithZeros) {
  check_copies<16>();
  check_copies<8>();
  check_copies<4>();
}

GCRT_GLOBAL(32) void load_streams(const std::uint32_t* source, std::uint32_t* target) {
  const int lane = lane_rank();
  const Bytes16 four = load_streaming_16(source + lane * 4);
  const Bytes8 two = load_streaming_8(source + 128 + lane * 2);
  for (int i = 0; i < 4; ++i) target[lane * 4 + i] = four.word[i];
  for (int i = 0; i < 2; ++i) target[128 + lane * 2 + i] = two.word[i];
  target[192 + lane] = load_streaming_4(source + 192 + lane);
}

TEST(StreamingLoads, ReadWhatIsThere) {
  std::vector<std::uint32_t> values(224);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761u);
  Device<std::uint32_t> source(values);
  Device<std::uint32_t> target(values.size());
  run(1, 32, 0, &load_streams, source.data(), target.data());
  EXPECT_EQ(target.read(), values);
}

TEST(Launch, RefusesWhatADeviceRefuses) {
  const auto error_of = [](dim3 grid, dim3 block, std::size_t shared_bytes) {
    Device<int> sums(2048);
    Queue queue;
    launch(queue, grid, block, shared_bytes, &pass_around, sums.data(), 1);
    const cudaError_t kept = queue.error;
    launch(queue, 1, 32, 128, &pass_around, sums.data(), 1);
    EXPECT_EQ(queue.error, kept) << "the first error stays";
    EXPECT_EQ(cudaGetLastError(), kept);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return kept;
  };
  EXPECT_EQ(error_of(1, 32, 128), cudaSuccess);
  EXPECT_EQ(error_of(0, 32, 128), cudaSuccess) << "no blocks, no work";
  EXPECT_EQ(error_of(1, 2048, 8192), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, dim3(1, 1, 65), 1024), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(dim3(1, 65536), 32, 128), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, 32, 1 << 20), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, 32, 60 << 10), cudaSuccess) << "launch asks for what exceeds 48 KiB";
}

// What the emulator finds out and a device does not.
#if !defined(__CUDACC__)
TEST(Memory, CopiesStayInsideTheirBlocks) {
  std::vector<int> host(8, 3);
  Device<int> device(host);
  Device<int> other(4);
  EXPECT_EQ(cudaMemcpy(other.data(), host.data(), 32, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data(), 32, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.data() + 5, host.data(), 16, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.data() + 4, host.data(), 16, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(device.data(), 0, 33), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  cudaGetLastError();
  for (const int value : other.read()) EXPECT_EQ(value, -1) << "poisoned";
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, device.data() + 7), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, host.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

// Blocks of many sizes that come and go keep what they hold.
TEST(Memory, BlocksDoNotOverlap) {
  struct Held {
    Device<int> block;
    std::vector<int> values;
  };
  std::vector<std::unique_ptr<Held>> held;
  std::uint32_t random = 1;
  const auto below = [&](std::uint32_t bound) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % bound;
  };
  for (int i = 0; i < 600; ++i) {
    if (held.size() > 40 || (!held.empty() && below(2) == 0)) {
      const std::size_t which = below(static_cast<std::uint32_t>(held.size()));
      ASSERT_EQ(held[which]->block.read(), held[which]->values);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const std::vector<int> values(1 + below(below(20) == 0 ? 600000 : 3000), i);
    held.push_back(std::unique_ptr<Held>(new Held{Device<int>(values), values}));
  }
  for (const auto& each : held) ASSERT_EQ(each->block.read(), each->values);
}
#endif

}  // namespace
}  // namespace GCRT_NAMESPACE
