// Comparisons of positions that lanes count up with a number that all of them share.
#include "gcrt/cpu/positions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace GCRT_NAMESPACE {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();

template <int N, class P>
ElementOf<P> lane_of(const P& pack, int lane) {
  if constexpr (N == 1) {
    return pack;
  } else {
    return pack[lane];
  }
}

template <int N>
void agrees_with_each_lane(std::int64_t first, std::int64_t number) {
  const Positions<N> a = positions(Lanes<N>{}, first);
  for (int lane = 0; lane < N; ++lane) {
    const std::int64_t position = first + lane;
    SCOPED_TRACE(testing::Message() << N << " lanes from " << first << ", " << number);
    EXPECT_EQ(lane_of<N>(less(a, number), lane), position < number);
    EXPECT_EQ(lane_of<N>(less_equal(a, number), lane), position <= number);
    EXPECT_EQ(lane_of<N>(greater(a, number), lane), position > number);
    EXPECT_EQ(lane_of<N>(greater_equal(a, number), lane), position >= number);
    EXPECT_EQ(lane_of<N>(equal(a, number), lane), position == number);
    EXPECT_EQ(lane_of<N>(not_equal(a, number), lane), position != number);
    const Pack<float, N> chosen = blend(a == number, splat(Lanes<N>{}, 1.0f), splat(Lanes<N>{}, 2.0f));
    EXPECT_EQ(lane_of<N>(chosen, lane), position == number ? 1 : 2);
  }
}

template <int N>
void agrees() {
  for (const std::int64_t first :
       {std::int64_t{-5}, std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 40}) {
    for (std::int64_t number = first - N - 2; number <= first + 2 * N; ++number)
      agrees_with_each_lane<N>(first, number);
    for (const std::int64_t number : {kLeast, kLeast + 1, kMost - 1, kMost, first + (std::int64_t{1} << 32)})
      agrees_with_each_lane<N>(first, number);
  }
}

TEST(Positions, AreComparedAsNumbersOfLanes) {
  agrees<1>();
  agrees<4>();
  agrees<8>();
  agrees<kLanes>();
}

}  // namespace
}  // namespace GCRT_NAMESPACE
