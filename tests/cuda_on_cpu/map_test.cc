// Maps of several packs per thread: every pack is computed once by the thread that stores it, also where the
// last round has gaps and where the result lies on an operand.
#include "gcrt/cuda/map.h"

#include "device_memory.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

constexpr int kBlock = 64;

template <class T, int L, int Packs, int Threads, int Count, class I>
GCRT_GLOBAL(kBlock)
void map_kernel(const T* x, const T* z, T* y, std::int32_t* order) {
  const I worker = global_thread<I>();
  if (worker >= Threads) return;
  constexpr Lanes<L> lane{};
  std::int32_t calls = 0;
  map_packs<Packs, Threads, Count>(
      worker,
      [&](I pack) GCRT_LAMBDA_INLINE {
        ++calls;
        return sub(add(load(lane, x + pack * L), load(lane, x + pack * L)), load(lane, z + pack * L));
      },
      [&](I pack, auto value) GCRT_LAMBDA_INLINE {
        store(lane, y + pack * L, value);
        order[pack] = calls;
      });
}

template <class T, int L, int Packs, int Threads, int Count, class I = int>
void check_map() {
  std::vector<T> x(static_cast<std::size_t>(L * Count)), z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(i % 61);
    z[i] = static_cast<T>(i % 57);
  }
  const Device<T> apart_x(x), in_place_x(x), device_z(z), y(x.size());
  const Device<std::int32_t> order(std::vector<std::int32_t>(Count, 0));
  Queue queue;
  const auto run = [&](const Device<T>& from, const Device<T>& to) {
    launch(queue, blocks_for(Threads, kBlock), kBlock, 0, &map_kernel<T, L, Packs, Threads, Count, I>,
           from.data(), device_z.data(), to.data(), order.data());
    ASSERT_EQ(queue.error, cudaSuccess);
    const std::vector<T> got = to.read();
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], static_cast<T>(x[i] + x[i] - z[i])) << i;
    for (const std::int32_t calls : order.read())
      ASSERT_EQ(calls, Packs) << "all are read before any is written";
  };
  run(apart_x, y);
  EXPECT_EQ(apart_x.read(), x);
  run(in_place_x, in_place_x);
}

TEST(MapPacks, FillsEveryRound) {
  check_map<float, 4, 4, 64, 256>();
  check_map<float, 4, 2, 128, 256>();
  check_map<float, 1, 4, 96, 384>();
}
TEST(MapPacks, LeavesGapsInTheLastRound) {
  check_map<float, 4, 4, 64, 193>();
  check_map<float, 2, 4, 96, 383>();
  check_map<float, 1, 2, 32, 33>();
  check_map<float, 1, 2, 160, 289>();
}
TEST(MapPacks, MovesElementsOfEverySize) {
  check_map<std::int8_t, 16, 2, 32, 61>();
  check_map<std::int16_t, 8, 4, 32, 100>();
  check_map<double, 2, 4, 32, 127>();
  check_map<std::int64_t, 2, 2, 32, 63>();
}
TEST(MapPacks, CountsIn64Bits) { check_map<float, 4, 4, 64, 200, std::int64_t>(); }

}  // namespace
}  // namespace GCRT_NAMESPACE
