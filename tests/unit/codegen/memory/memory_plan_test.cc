#include <algorithm>
#include <limits>
#include <numeric>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "codegen/memory/check.h"
#include "codegen/memory/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codegen/memory/memory_csv.h"
#include "tests/unit/codegen/memory/memory_instances.h"
#include "tests/unit/codegen/memory/memory_yardstick.h"

namespace gcompile {
namespace {

using memory_instances::cut_rectangle;
using memory_instances::Dice;
using memory_instances::make_buffer;
using memory_instances::network_buffers;
using memory_instances::random_buffers;
using memory_yardstick::first_fit;
using memory_yardstick::greedy_by_size;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

MemoryPlan checked_plan(const std::vector<Buffer>& buffers, const MemoryPlanOptions& options = {}) {
  MemoryPlan plan = plan_memory(buffers, options);
  EXPECT_THAT(check_memory_plan(buffers, plan), IsEmpty());
  return plan;
}

/// First-fit in the order of the offsets of an optimal plan is an optimal plan,
/// so the best order of all is optimal.
int64_t optimum_by_brute_force(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = first_fit(buffers, order);
  while (std::next_permutation(order.begin(), order.end())) best = std::min(best, first_fit(buffers, order));
  return best;
}

int64_t most_live_bytes(const std::vector<Buffer>& buffers) {
  int64_t most = 0;
  for (const Buffer& at : buffers) {
    int64_t live = 0;
    for (const Buffer& b : buffers) {
      if (b.begin_step > at.begin_step || b.end_step <= at.begin_step) continue;
      live += (b.size + b.alignment - 1) / b.alignment * b.alignment;
    }
    most = std::max(most, live);
  }
  return most;
}

TEST(MemoryPlan, NothingNeedsNothing) {
  const MemoryPlan plan = checked_plan({});
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.lower_bound, 0);
  EXPECT_TRUE(plan.proven_optimal);
  EXPECT_EQ(first_fit_reference({}), 0);
}

TEST(MemoryPlan, OneBufferStartsAtZeroAndOwnsItsPadding) {
  const MemoryPlan plan = checked_plan({make_buffer(100, 3, 9, 64)});
  EXPECT_THAT(plan.offsets, ElementsAre(0));
  EXPECT_EQ(plan.arena_bytes, 128);
}

TEST(MemoryPlan, LivesAreHalfOpen) {
  EXPECT_EQ(checked_plan({make_buffer(10, 0, 5), make_buffer(10, 5, 9)}).arena_bytes, 10);
  EXPECT_EQ(checked_plan({make_buffer(10, 0, 6), make_buffer(10, 5, 9)}).arena_bytes, 20);
}

TEST(MemoryPlan, EmptyBuffersTakeNoSpaceAndBlockNobody) {
  const MemoryPlan plan =
      checked_plan({make_buffer(0, 0, 9, 64), make_buffer(64, 0, 9, 64), make_buffer(0, 2, 3)});
  EXPECT_EQ(plan.arena_bytes, 64);
}

TEST(MemoryPlan, IdenticalBuffersStack) {
  const std::vector<Buffer> buffers(50, make_buffer(1000, 2, 7, 8));
  EXPECT_EQ(checked_plan(buffers).arena_bytes, 50'000);
}

TEST(MemoryPlan, HugeSizesDoNotOverflow) {
  const int64_t tera = int64_t{1} << 40;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 1000; ++i) buffers.push_back(make_buffer(tera, i, i + 3, 4096));
  EXPECT_EQ(checked_plan(buffers).arena_bytes, 3 * tera);
}

void expect_error(const std::vector<Buffer>& buffers, ExitCode code, const std::string& text) {
  for (int function = 0; function < 2; ++function) {
    try {
      function == 0 ? static_cast<void>(plan_memory(buffers))
                    : static_cast<void>(first_fit_reference(buffers));
      ADD_FAILURE() << "no error: " << text;
    } catch (const CompileError& error) {
      EXPECT_EQ(error.exit_code(), code);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
}

TEST(MemoryPlan, RefusesWhatCannotBe) {
  const auto internal = ExitCode::kInternal;
  expect_error({make_buffer(-1, 0, 1)}, internal, "negative size");
  expect_error({make_buffer(1, 4, 4)}, internal, "empty life [4, 4)");
  expect_error({make_buffer(1, 4, 3)}, internal, "empty life");
  expect_error({make_buffer(1, 0, 1, 24)}, internal, "no power of two");
  expect_error({make_buffer(1, 0, 1, 0)}, internal, "no power of two");
  expect_error({make_buffer(1, INT64_MIN, INT64_MAX)}, internal, "2^63 steps");
  const int64_t big = int64_t{1} << 61;
  expect_error({make_buffer(big, 0, 1), make_buffer(big, 1, 2)}, ExitCode::kModel, "2^62 bytes");
  expect_error({make_buffer(INT64_MAX, 0, 1, 64)}, ExitCode::kModel, "2^62 bytes");
  Buffer fixed = make_buffer(64, 0, 4, 64);
  fixed.fixed_offset = 32;
  expect_error({fixed}, internal, "fixed at 32");
  fixed.fixed_offset = -64;
  expect_error({fixed}, internal, "negative");
  fixed.fixed_offset = 64;
  Buffer other = make_buffer(128, 3, 5, 64);
  other.fixed_offset = 0;
  expect_error({fixed, other}, internal, "is fixed where");
  expect_error({other, fixed}, internal, "is fixed where");
}

TEST(MemoryPlan, KeepsFixedOffsets) {
  Buffer fixed = make_buffer(100, 2, 6);
  fixed.fixed_offset = 150;
  Buffer after = make_buffer(100, 6, 8);
  after.fixed_offset = 200;
  const std::vector<Buffer> buffers{make_buffer(120, 0, 4), fixed, after, make_buffer(30, 3, 8)};
  const MemoryPlan plan = checked_plan(buffers);
  EXPECT_EQ(plan.offsets[1], 150);
  EXPECT_EQ(plan.offsets[2], 200);
  EXPECT_EQ(plan.arena_bytes, 300);
  Buffer empty = make_buffer(0, 0, 1);
  empty.fixed_offset = 77;
  EXPECT_EQ(checked_plan({empty}).arena_bytes, 77);
}

TEST(MemoryPlan, FollowsHintsThatCostNothing) {
  Dice dice(5);
  std::vector<Buffer> buffers = network_buffers(dice, 60);
  const MemoryPlan before = checked_plan(buffers);
  // Any other plan of the same height will do: turn it upside down.
  std::vector<int64_t> flipped;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t size = (buffers[i].size + 63) / 64 * 64;
    flipped.push_back(before.arena_bytes - before.offsets[i] - size);
    buffers[i].hint = flipped.back();
  }
  const MemoryPlan again = checked_plan(buffers);
  EXPECT_EQ(again.offsets, flipped);
  EXPECT_EQ(again.order_used, "hints");
}

TEST(MemoryPlan, IgnoresHintsThatWouldCost) {
  Buffer hinted = make_buffer(10, 0, 2);
  for (int64_t hint : {int64_t{5}, int64_t{1} << 40, INT64_MAX, int64_t{-3}}) {
    hinted.hint = hint;
    EXPECT_EQ(checked_plan({make_buffer(20, 0, 2), hinted}).arena_bytes, 30) << hint;
  }
  // It begins where there is room, and ends where there is none.
  Buffer fixed = make_buffer(30, 0, 2);
  fixed.fixed_offset = 5;
  hinted.hint = 0;
  EXPECT_EQ(checked_plan({fixed, hinted}).arena_bytes, 45);
}

TEST(MemoryPlan, FindsTheOptimumOfSmallInstances) {
  Dice dice(11);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Buffer> buffers = random_buffers(dice, 7, 8, 5, 12, 0);
    const MemoryPlan plan = checked_plan(buffers);
    ASSERT_EQ(plan.arena_bytes, optimum_by_brute_force(buffers)) << memory_csv::write(buffers, plan.offsets);
    EXPECT_TRUE(plan.proven_optimal);
  }
}

/// Tries every offset of every buffer, in the given order, for sizes of a few bytes.
bool fits_by_enumeration(const std::vector<Buffer>& buffers, int64_t capacity,
                         std::vector<int64_t>& offsets) {
  const size_t i = offsets.size();
  if (i == buffers.size()) return true;
  for (int64_t offset = 0; offset + buffers[i].size <= capacity; ++offset) {
    bool free = true;
    for (size_t j = 0; j < i && free; ++j) {
      const bool same_time =
          buffers[j].begin_step < buffers[i].end_step && buffers[i].begin_step < buffers[j].end_step;
      free = !same_time || offset + buffers[i].size <= offsets[j] || offsets[j] + buffers[j].size <= offset;
    }
    if (!free) continue;
    offsets.push_back(offset);
    if (fits_by_enumeration(buffers, capacity, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

/// The planner is asked which bounds cannot be reached; that it is right is checked by enumeration.
TEST(MemoryPlan, ProvesThatTheBoundIsOutOfReach) {
  Dice dice(14);
  int refuted = 0;
  int refuted_holed = 0;
  for (int round = 0; round < 40'000 && refuted + refuted_holed < 12; ++round) {
    std::vector<Buffer> buffers = memory_instances::weld_rectangles(dice, 12, 8, 8);
    // Every other one with a hole, so that there is waste to reckon with.
    const bool holed = round % 2 == 1;
    if (holed) buffers.erase(buffers.begin() + dice.roll(0, static_cast<int64_t>(buffers.size()) - 1));
    const MemoryPlan plan = plan_memory(buffers);
    if (plan.arena_bytes == plan.lower_bound) continue;
    ++(holed ? refuted_holed : refuted);
    EXPECT_TRUE(plan.proven_optimal);
    EXPECT_THAT(check_memory_plan(buffers, plan), IsEmpty());
    std::stable_sort(buffers.begin(), buffers.end(),
                     [](const Buffer& a, const Buffer& b) { return a.begin_step < b.begin_step; });
    std::vector<int64_t> offsets;
    EXPECT_FALSE(fits_by_enumeration(buffers, plan.arena_bytes - 1, offsets))
        << memory_csv::write(buffers, offsets);
  }
  EXPECT_GE(refuted, 1);
  EXPECT_GE(refuted_holed, 1);
}

TEST(MemoryPlan, FindsTheOptimumWithMixedAlignments) {
  Dice dice(12);
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers = random_buffers(dice, 6, 7, 5, 40, 4);
    const MemoryPlan plan = checked_plan(buffers);
    ASSERT_EQ(plan.arena_bytes, optimum_by_brute_force(buffers)) << memory_csv::write(buffers, plan.offsets);
  }
}

TEST(MemoryPlan, IsValidBoundedAndRepeatableOnRandomInstances) {
  Dice dice(13);
  MemoryPlanOptions quick;
  quick.search_budget = 300'000;
  for (int round = 0; round < 200; ++round) {
    const int count = static_cast<int>(dice.roll(1, 120));
    std::vector<Buffer> buffers =
        random_buffers(dice, count, dice.roll(1, 60), dice.roll(1, 40), dice.roll(1, 5000), round % 8);
    const MemoryPlan plan = checked_plan(buffers, quick);
    EXPECT_EQ(plan.lower_bound, most_live_bytes(buffers));
    EXPECT_LE(plan.arena_bytes, greedy_by_size(buffers));
    const MemoryPlan again = plan_memory(buffers, quick);
    EXPECT_EQ(plan.offsets, again.offsets);
    EXPECT_EQ(plan.order_used, again.order_used);
    EXPECT_GE(first_fit_reference(buffers), plan.lower_bound);
  }
}

TEST(MemoryPlan, FillsCutRectangles) {
  Dice dice(17);
  const int64_t height = 64 * 4096;
  for (int pieces : {5, 20, 60, 100, 150}) {
    for (int round = 0; round < 4; ++round) {
      const std::vector<Buffer> buffers = cut_rectangle(dice, pieces, 200, height, 64);
      const MemoryPlan plan = checked_plan(buffers);
      EXPECT_EQ(plan.lower_bound, height);
      EXPECT_EQ(plan.arena_bytes, height) << pieces << " pieces, round " << round << ", " << plan.order_used;
    }
  }
  // Without a byte to spare, more pieces can outlast the budget.
  const std::vector<Buffer> many = cut_rectangle(dice, 400, 200, height, 64);
  EXPECT_LE(checked_plan(many).arena_bytes, height + height / 5);
}

TEST(MemoryPlan, PutsNetworksAtTheBound) {
  Dice dice(19);
  for (int layers : {20, 100, 400}) {
    for (int round = 0; round < 5; ++round) {
      const std::vector<Buffer> buffers = network_buffers(dice, layers);
      const MemoryPlan plan = checked_plan(buffers);
      EXPECT_EQ(plan.arena_bytes, plan.lower_bound) << layers << " layers, round " << round;
      EXPECT_LE(plan.arena_bytes, first_fit_reference(buffers));
    }
  }
}

/// Where no buffer crosses, what was found for one stage is kept while another is searched.
TEST(MemoryPlan, SearchesStagesApart) {
  MemoryPlanOptions quick;
  quick.search_budget = 12'000'000;
  for (uint64_t seed : {1, 3, 4, 6}) {
    Dice dice(seed);
    const std::vector<Buffer> buffers = memory_instances::stages(dice, 12, 80, 100, 8 * 4096);
    const MemoryPlan plan = checked_plan(buffers, quick);
    EXPECT_EQ(plan.lower_bound, 9 * 4096);
    EXPECT_EQ(plan.arena_bytes, plan.lower_bound) << "seed " << seed;
    EXPECT_TRUE(plan.proven_optimal);
  }
}

/// A stage need not be lower than the highest must be.
TEST(MemoryPlan, AsksOfAStageOnlyWhatTheHighestNeeds) {
  Dice dice(41);
  std::vector<Buffer> buffers = cut_rectangle(dice, 400, 200, 64 * 4000, 64);
  buffers.push_back(make_buffer(64 * 5000, 200, 203, 64));
  const MemoryPlan plan = checked_plan(buffers);
  EXPECT_EQ(plan.arena_bytes, 64 * 5000);
  EXPECT_TRUE(plan.proven_optimal);
}

int64_t polls = 0, most_polls = 0;

TEST(MemoryPlan, LetsItselfBeEnded) {
  Dice dice(43);
  const std::vector<Buffer> buffers = cut_rectangle(dice, 400, 200, 64 * 4096, 64);
  MemoryPlanOptions options;
  options.search_budget = 50'000'000;
  polls = 0;
  most_polls = std::numeric_limits<int64_t>::max();
  set_interrupt_hook([] {
    if (++polls > most_polls) throw CompileError(ExitCode::kInterrupted, "enough");
  });
  const MemoryPlan plan = plan_memory(buffers, options);
  EXPECT_GE(polls, plan.search_work / 2'000'000);
  most_polls = polls - 20;
  polls = 0;
  EXPECT_THROW(plan_memory(buffers, options), CompileError);
  EXPECT_EQ(polls, most_polls + 1);
  set_interrupt_hook(nullptr);
}

TEST(FirstFitReference, PlacesInOrderAndFreesAfterTheLastUse) {
  // a [0,2) 10, b [1,3) 20 above it, c [2,4) 15 does not fit under b (10), so on top: 45.
  const std::vector<Buffer> buffers{make_buffer(10, 0, 2), make_buffer(20, 1, 3), make_buffer(15, 2, 4)};
  EXPECT_EQ(first_fit_reference(buffers), 45);
  EXPECT_EQ(plan_memory(buffers).arena_bytes, 35);
}

TEST(MemoryPlanCheck, SeesEveryKindOfViolation) {
  Buffer fixed = make_buffer(8, 0, 4, 8);
  fixed.fixed_offset = 32;
  const std::vector<Buffer> buffers{make_buffer(16, 0, 4, 16), make_buffer(8, 3, 5, 8), fixed};
  MemoryPlan plan;
  plan.arena_bytes = 40;
  plan.lower_bound = 32;
  plan.offsets = {0, 16, 32};
  EXPECT_THAT(check_memory_plan(buffers, plan), IsEmpty());
  auto violation = [&](std::vector<int64_t> offsets, int64_t arena) {
    MemoryPlan bad = plan;
    bad.offsets = std::move(offsets);
    bad.arena_bytes = arena;
    return check_memory_plan(buffers, bad);
  };
  EXPECT_THAT(violation({0, 8, 32}, 40), ElementsAre(HasSubstr("overlap while both live")));
  EXPECT_THAT(violation({0, 12, 32}, 40), ElementsAre(HasSubstr("not aligned to 8")));
  EXPECT_THAT(violation({0, -8, 32}, 40), ElementsAre(HasSubstr("negative offset")));
  EXPECT_THAT(violation({0, 40, 32}, 40), ElementsAre(HasSubstr("outside the arena")));
  EXPECT_THAT(violation({0, INT64_MAX - 7, 32}, 40), ElementsAre(HasSubstr("outside the arena")));
  EXPECT_THAT(violation({0, 16, 24}, 40), ElementsAre(HasSubstr("moved to 24")));
  EXPECT_THAT(violation({0, 16}, 40), ElementsAre(HasSubstr("3 buffers, but 2 offsets")));
  EXPECT_THAT(violation({0, 16, 32}, 31), testing::Contains(HasSubstr("below the bound")));
}

TEST(MemoryPlanCheck, CountsThePaddingAsOwned) {
  const std::vector<Buffer> buffers{make_buffer(10, 0, 2, 16), make_buffer(4, 0, 2, 4)};
  MemoryPlan plan;
  plan.arena_bytes = 20;
  plan.offsets = {0, 12};
  EXPECT_THAT(check_memory_plan(buffers, plan), ElementsAre(HasSubstr("overlap")));
  plan.offsets = {0, 16};
  EXPECT_THAT(check_memory_plan(buffers, plan), IsEmpty());
}

TEST(MemoryPlanCheck, StopsAtItsLimit) {
  const std::vector<Buffer> buffers(30, make_buffer(4, 0, 1));
  MemoryPlan plan;
  plan.arena_bytes = 4;
  plan.offsets.assign(buffers.size(), 0);
  EXPECT_THAT(check_memory_plan(buffers, plan, 7), SizeIs(7));
}

TEST(MemoryCsv, ReadsWhatItWrites) {
  const std::vector<Buffer> buffers{make_buffer(4, 0, 3), make_buffer(5, 2, 9)};
  const std::string text = memory_csv::write(buffers, {0, 4});
  const auto read = memory_csv::read(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(read->offsets, ElementsAre(0, 4));
  EXPECT_EQ(memory_csv::write(read->buffers, read->offsets), text);
  EXPECT_FALSE(memory_csv::read("id,lower,upper\na,0,1\n").has_value());
  EXPECT_FALSE(memory_csv::read("id,lower,upper,size\na,0,x,3\n").has_value());
  EXPECT_FALSE(memory_csv::read("").has_value());
}

}  // namespace
}  // namespace gcompile
