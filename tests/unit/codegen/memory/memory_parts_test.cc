#include <algorithm>
#include <numeric>

#include "codegen/memory/parts.h"
#include "codegen/memory/skyline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codegen/memory/memory_instances.h"

namespace gcompile::memory {
namespace {

using memory_instances::Dice;
using memory_instances::make_buffer;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Four lives in three sections, of which none spans all: no rule can take it apart.
void add_chain(std::vector<Buffer>& buffers, int64_t begin, int64_t size, int64_t alignment = 1) {
  for (int64_t link = 0; link < 4; ++link)
    buffers.push_back(make_buffer(size, begin + 3 * link, begin + 3 * link + 4, alignment));
}

TEST(SplitProblem, LeavesAloneWhatHangsTogether) {
  std::vector<Buffer> buffers;
  add_chain(buffers, 0, 4);
  const PlacementProblem problem = make_problem(buffers);
  const Parts parts = split_problem(problem);
  ASSERT_THAT(parts.parts, SizeIs(1));
  EXPECT_THAT(parts.parts[0].blocks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(parts.parts[0].base, 0);
  EXPECT_THAT(parts.settled, ElementsAre(-1, -1, -1, -1));
  EXPECT_EQ(parts.parts[0].problem.section_bytes, problem.section_bytes);
}

TEST(SplitProblem, CutsWhereNoBufferCrosses) {
  // The first chain ends where the other begins; in the list they come the other way round.
  std::vector<Buffer> buffers;
  add_chain(buffers, 13, 7);
  add_chain(buffers, 0, 4);
  const Parts parts = split_problem(make_problem(buffers));
  ASSERT_THAT(parts.parts, SizeIs(2));
  EXPECT_THAT(parts.parts[0].blocks, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(parts.parts[0].problem.lower_bound, 8);
  EXPECT_THAT(parts.parts[1].blocks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(parts.parts[1].problem.lower_bound, 14);
  EXPECT_EQ(parts.parts[1].problem.section_count, 3);
}

TEST(SplitProblem, PutsWhatLivesThroughoutToTheBottomAndCutsTheRestAgain) {
  // Under both chains 10; under the second 20 more.
  std::vector<Buffer> buffers{make_buffer(10, 0, 26), make_buffer(20, 13, 26)};
  add_chain(buffers, 0, 4);
  add_chain(buffers, 13, 7);
  const Parts parts = split_problem(make_problem(buffers));
  EXPECT_THAT(parts.settled, ElementsAre(0, 10, -1, -1, -1, -1, -1, -1, -1, -1));
  EXPECT_EQ(parts.settled_height, 30);
  ASSERT_THAT(parts.parts, SizeIs(2));
  EXPECT_EQ(parts.parts[0].base, 10);
  EXPECT_THAT(parts.parts[0].blocks, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(parts.parts[1].base, 30);
  EXPECT_THAT(parts.parts[1].blocks, ElementsAre(6, 7, 8, 9));
}

TEST(SplitProblem, LeavesWhatWouldMisalignTheRest) {
  std::vector<Buffer> buffers{make_buffer(8, 0, 13, 8)};
  add_chain(buffers, 0, 64, 64);
  const Parts parts = split_problem(make_problem(buffers));
  ASSERT_THAT(parts.parts, SizeIs(1));
  EXPECT_THAT(parts.parts[0].blocks, SizeIs(5));
}

TEST(SplitProblem, NeedsNoSquareOfTheBuffersForNestedLives) {
  std::vector<Buffer> buffers;
  const int64_t count = 50'000;
  for (int64_t i = 0; i < count; ++i) buffers.push_back(make_buffer(4, i, 2 * count - i));
  const Parts parts = split_problem(make_problem(buffers));
  int64_t height = parts.settled_height;
  for (const Part& part : parts.parts) height = std::max(height, part.base + part.problem.lower_bound);
  EXPECT_EQ(height, 4 * count);
}

/// The largest base plus bound over the parts is the bound of the whole: the split gives nothing away.
TEST(SplitProblem, KeepsTheBoundAndEveryBuffer) {
  Dice dice(31);
  for (int round = 0; round < 200; ++round) {
    const int count = static_cast<int>(dice.roll(1, 40));
    const PlacementProblem problem =
        make_problem(memory_instances::random_buffers(dice, count, 60, dice.roll(1, 20), 100, 0));
    const Parts parts = split_problem(problem);
    int64_t bound = parts.settled_height;
    size_t blocks = 0;
    for (const Part& part : parts.parts) {
      bound = std::max(bound, part.base + part.problem.lower_bound);
      blocks += part.blocks.size();
      for (int32_t i : part.blocks) EXPECT_EQ(parts.settled[static_cast<size_t>(i)], -1);
    }
    EXPECT_EQ(bound, problem.lower_bound);
    EXPECT_EQ(blocks, static_cast<size_t>(std::count(parts.settled.begin(), parts.settled.end(), -1)));
  }
}

std::vector<int32_t> longest_first(const PlacementProblem& problem) {
  std::vector<int32_t> order(problem.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Block& left = problem.blocks[static_cast<size_t>(a)];
    const Block& right = problem.blocks[static_cast<size_t>(b)];
    return left.end - left.begin > right.end - right.begin;
  });
  return order;
}

TEST(FillSkyline, TakesTheLowestValleyAndTheFirstThatFitsIt) {
  // Four sections. 0 spans all; 1 and 2 stand on it side by side; 3 fits the valley that 2 leaves beside 1,
  // 4 has to wait until the skyline is even.
  const PlacementProblem problem =
      make_problem({make_buffer(5, 0, 8), make_buffer(9, 0, 3), make_buffer(4, 4, 8), make_buffer(3, 4, 6),
                    make_buffer(2, 2, 8), make_buffer(1, 6, 8)});
  int64_t work = 0;
  const Placement placed = fill_skyline(problem, {0, 1, 2, 3, 4, 5}, INT64_MAX, work);
  EXPECT_THAT(placed.offsets, ElementsAre(0, 5, 5, 9, 14, 9));
  EXPECT_EQ(placed.height, 16);
  EXPECT_EQ(fill_skyline(problem, {0, 1, 2, 3, 4, 5}, 16, work).height, -1);
  EXPECT_THAT(fill_skyline(make_problem({}), {}, INT64_MAX, work).offsets, IsEmpty());
}

int64_t skyline_work(const std::vector<Buffer>& buffers) {
  const PlacementProblem problem = make_problem(buffers);
  int64_t work = 0;
  fill_skyline(problem, longest_first(problem), INT64_MAX, work);
  return work;
}

TEST(FillSkyline, GrowsNearLinearly) {
  Dice dice(37);
  std::vector<int64_t> chain;
  std::vector<int64_t> crowd;
  for (int count : {25'000, 50'000, 100'000}) {
    chain.push_back(skyline_work(memory_instances::network_buffers(dice, count * 2 / 3)));
    crowd.push_back(
        skyline_work(memory_instances::random_buffers(dice, count, count, count / 5, 1 << 20, 6)));
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    EXPECT_LE(chain[i], chain[i - 1] * 23 / 10);
    // n^1.5 at the worst.
    EXPECT_LE(crowd[i], crowd[i - 1] * 29 / 10);
  }
  EXPECT_LE(crowd.back(), 400 * 100'000);
}

}  // namespace
}  // namespace gcompile::memory
