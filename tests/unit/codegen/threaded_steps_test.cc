// Which steps run in several threads: judged with their neighbours, by the times that calls carry.
#include "codegen/program/threaded_steps.h"

#include <gtest/gtest.h>

namespace gcompile {
namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;  // picoseconds

LoweredStep step_of(std::int64_t time, std::int64_t bytes) {
  LoweredStep step;
  step.call.threaded = true;
  step.call.time_alone = time;
  step.bytes_read = step.bytes_written = bytes;
  return step;
}

std::vector<LoweredStep> chain(const std::vector<std::int64_t>& times, std::int64_t bytes) {
  std::vector<LoweredStep> steps;
  for (const std::int64_t time : times) steps.push_back(step_of(time, bytes));
  return steps;
}

using Numbers = std::vector<std::size_t>;

/// Places of the steps that are left to one thread.
Numbers steps_in_one_thread(std::vector<LoweredStep> steps) {
  leave_to_one_thread(steps, Machine{});
  Numbers places;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].alone) places.push_back(i);
  }
  return places;
}

TEST(ThreadedSteps, LongStepsRunInThreads) {
  const std::vector<std::int64_t> times(5, 100 * kMicrosecond);
  EXPECT_EQ(steps_in_one_thread(chain(times, 100'000)), Numbers{});
}

TEST(ThreadedSteps, AChainOfSmallStepsRunsInOneThread) {
  const std::vector<std::int64_t> times(3, 2 * kMicrosecond);
  EXPECT_EQ(steps_in_one_thread(chain(times, 60'000)), (Numbers{0, 1, 2}));
}

TEST(ThreadedSteps, AStepThatGainsLessThanItsDataTakesRunsInOneThread) {
  const std::vector<std::int64_t> times = {20 * kMicrosecond};
  EXPECT_EQ(steps_in_one_thread(chain(times, 1'000)), Numbers{});
  EXPECT_EQ(steps_in_one_thread(chain(times, 100'000)), Numbers{0});
}

TEST(ThreadedSteps, ASmallStepBetweenLongOnesStaysWhereItsDataAre) {
  const std::vector<std::int64_t> times = {200 * kMicrosecond, 2 * kMicrosecond, 200 * kMicrosecond};
  EXPECT_EQ(steps_in_one_thread(chain(times, 60'000)), Numbers{});
  EXPECT_EQ(steps_in_one_thread(chain(times, 100)), Numbers{1});
}

TEST(ThreadedSteps, StepsThatDoNotAskForThreadsAreNotNamed) {
  std::vector<LoweredStep> steps = chain({kMicrosecond, kMicrosecond}, 1'000);
  steps[0].call.threaded = false;
  EXPECT_EQ(steps_in_one_thread(steps), Numbers{1});
}

TEST(ThreadedSteps, WeightsAndScratchAreNotFetched) {
  std::vector<LoweredStep> steps = chain({20 * kMicrosecond}, 100'000);
  steps[0].weight_bytes = steps[0].bytes_read;
  steps[0].scratch_bytes = steps[0].bytes_written;
  EXPECT_EQ(steps_in_one_thread(steps), Numbers{});
}

TEST(ThreadedSteps, StripsKeepTheirThreads) {
  // Their neighbours then have their data there, and run in threads for less.
  std::vector<LoweredStep> steps = chain({0, 5 * kMicrosecond, 0}, 60'000);
  steps[0].kind = steps[2].kind = LoweredStep::Kind::kStrips;
  EXPECT_EQ(steps_in_one_thread(steps), Numbers{});
}

TEST(ThreadedSteps, BranchesAreJudgedByThemselves) {
  std::vector<LoweredStep> steps(1);
  steps[0].kind = LoweredStep::Kind::kIf;
  steps[0].then_steps = chain({kMicrosecond}, 1'000);
  steps[0].else_steps = chain({100 * kMicrosecond}, 1'000);
  leave_to_one_thread(steps, Machine{});
  EXPECT_TRUE(steps[0].then_steps[0].alone);
  EXPECT_FALSE(steps[0].else_steps[0].alone);
}

}  // namespace
}  // namespace gcompile
