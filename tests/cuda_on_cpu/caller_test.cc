// Inputs and outputs of a run: which are used where the caller has them,
// and what is copied when they are not.
// clang-format off
#include "gcrt/cuda/device/device.h"  // before any other header of gcrt
// clang-format on

#include "gcrt/cuda/device/caller.h"

#include "device_memory.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;
using cuda_test::Pinned;

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr std::size_t kAlignment = 64;

GCRT_GLOBAL(64) void twice(const float* x, float* y) { y[thread_rank()] = x[thread_rank()] * 2; }

// What a run of y = 2 * x did with the caller's blocks.
struct Done {
  bool reads_in_place, writes_in_place;
};

Done double_it(const float* x, float* y, bool stands_in = false) {
  const Device<float> arena(2 * kCount);
  std::byte* const places = reinterpret_cast<std::byte*>(arena.data());
  Queue queue;
  queue.stands_in = stands_in;
  const CallerBlock blocks[] = {{x, kBytes}, {y, kBytes}};
  const CallerMemory caller(queue, blocks, kAlignment);
  const std::byte* const in = caller.input(0, places);
  std::byte* const out = caller.output(1, places + kBytes);
  if (!stands_in) {
    launch(queue, 1, kCount, 0, &twice, reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out));
    caller.finish(1, out);
  }
  EXPECT_EQ(queue.error, cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(in == places || in == static_cast<const void*>(x));
  EXPECT_TRUE(out == places + kBytes || out == static_cast<void*>(y));
  return {in != places, out != places + kBytes};
}

std::vector<float> counting() {
  std::vector<float> values(kCount + 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

void expect_doubled(const std::vector<float>& y, std::size_t from = 0, float first = 0) {
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(y[from + i], 2 * (first + static_cast<float>(i))) << i;
}

TEST(CallerMemory, OfTheDeviceIsUsedWhereItIs) {
  const Device<float> x(counting()), y(kCount + 16);
  const Done did = double_it(x.data(), y.data());
  EXPECT_TRUE(did.reads_in_place);
  EXPECT_TRUE(did.writes_in_place);
  expect_doubled(y.read());
}

TEST(CallerMemory, OfTheHostIsCopied) {
  const Pinned<float> x(counting()), y(std::vector<float>(kCount + 16));
  const Done did = double_it(x.data(), y.data());
  EXPECT_FALSE(did.reads_in_place);
  EXPECT_FALSE(did.writes_in_place);
  expect_doubled(y.read());
}

TEST(CallerMemory, OfTheHostIsUsedWhereBothShareTheirMemory) {
  const Pinned<float> x(counting()), y(std::vector<float>(kCount + 16));
  std::vector<float> pageable(kCount + 16);
  int shares_memory = 1;
#if defined(__CUDACC__)
  ASSERT_EQ(cudaDeviceGetAttribute(&shares_memory, cudaDevAttrIntegrated, 0), cudaSuccess);
#else
  setenv("CUDA_ON_CPU_INTEGRATED", "1", 1);
#endif
  const Done did = double_it(x.data(), y.data());
  const Done did_not = double_it(x.data(), pageable.data());
#if !defined(__CUDACC__)
  unsetenv("CUDA_ON_CPU_INTEGRATED");
#endif
  EXPECT_EQ(did.reads_in_place, shares_memory != 0);
  EXPECT_EQ(did.writes_in_place, shares_memory != 0);
  EXPECT_FALSE(did_not.writes_in_place);
  expect_doubled(y.read());
}

TEST(CallerMemory, ThatIsNotAlignedIsCopied) {
  const Device<float> x(counting()), y(kCount + 16);
  const Done did = double_it(x.data() + 4, y.data() + 4);
  EXPECT_FALSE(did.reads_in_place);
  EXPECT_FALSE(did.writes_in_place);
  expect_doubled(y.read(), 4, 4);
}

TEST(CallerMemory, IsNotWrittenBeforeTheEndWhereItIsReadToo) {
  const Device<float> x(counting());
  const Done did = double_it(x.data(), x.data());
  EXPECT_TRUE(did.reads_in_place);
  EXPECT_FALSE(did.writes_in_place);
  expect_doubled(x.read());
  const Device<float> half(counting());
  EXPECT_FALSE(double_it(half.data(), half.data() + 16).writes_in_place);
  expect_doubled(half.read(), 16);
}

TEST(CallerMemory, ThatIsNotKnownYetIsTakenForTheDevices) {
  const Device<float> arena(1);
  const Done did = double_it(arena.data(), arena.data(), true);
  EXPECT_TRUE(did.reads_in_place);
  EXPECT_TRUE(did.writes_in_place);
}

}  // namespace
}  // namespace GCRT_NAMESPACE
