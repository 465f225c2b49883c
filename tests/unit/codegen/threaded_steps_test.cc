// Which steps run in several threads: judged with their neighbours, by the times that calls carry.
#include "codegen/program/threaded_steps.h"

#include <gtest/gtest.h>

namespace gcompile {
namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;  // picoseconds

LoweredStep step_of(std::int64_t number, std::int64_t time, std::int64_t bytes) {
  LoweredStep step;
  step.number = number;
  step.call.threaded = true;
  step.call.time_alone = time;
  step.bytes_read = step.bytes_written = bytes;
  return step;
}

std::vector<LoweredStep> chain(const std::vector<std::int64_t>& times, std::int64_t bytes) {
  std::vector<LoweredStep> steps;
  for (const std::int64_t time : times)
    steps.push_back(step_of(static_cast<std::int64_t>(steps.size()), time, bytes));
  return steps;
}

using Numbers = std::set<std::int64_t>;

TEST(ThreadedSteps, LongStepsRunInThreads) {
  const std::vector<std::int64_t> times(5, 100 * kMicrosecond);
  EXPECT_EQ(steps_in_one_thread(chain(times, 100'000), Machine{}), Numbers{});
}

TEST(ThreadedSteps, AChainOfSmallStepsRunsInOneThread) {
  const std::vector<std::int64_t> times(3, 2 * kMicrosecond);
  EXPECT_EQ(steps_in_one_thread(chain(times, 60'000), Machine{}), (Numbers{0, 1, 2}));
}

TEST(ThreadedSteps, AStepThatGainsLessThanItsDataTakesRunsInOneThread) {
  const std::vector<std::int64_t> times = {20 * kMicrosecond};
  EXPECT_EQ(steps_in_one_thread(chain(times, 1'000), Machine{}), Numbers{});
  EXPECT_EQ(steps_in_one_thread(chain(times, 100'000), Machine{}), Numbers{0});
}

TEST(ThreadedSteps, ASmallStepBetweenLongOnesStaysWhereItsDataAre) {
  const std::vector<std::int64_t> times = {200 * kMicrosecond, 2 * kMicrosecond, 200 * kMicrosecond};
  EXPECT_EQ(steps_in_one_thread(chain(times, 60'000), Machine{}), Numbers{});
  EXPECT_EQ(steps_in_one_thread(chain(times, 100), Machine{}), Numbers{1});
}

TEST(ThreadedSteps, StepsThatDoNotAskForThreadsAreNotNamed) {
  std::vector<LoweredStep> steps = chain({kMicrosecond, kMicrosecond}, 1'000);
  steps[0].call.threaded = false;
  EXPECT_EQ(steps_in_one_thread(steps, Machine{}), Numbers{1});
}

TEST(ThreadedSteps, WeightsAndScratchAreNotFetched) {
  std::vector<LoweredStep> steps = chain({20 * kMicrosecond}, 100'000);
  steps[0].weight_bytes = steps[0].bytes_read;
  steps[0].scratch_bytes = steps[0].bytes_written;
  EXPECT_EQ(steps_in_one_thread(steps, Machine{}), Numbers{});
}

TEST(ThreadedSteps, StripsKeepTheirThreads) {
  // Their neighbours then have their data there, and run in threads for less.
  std::vector<LoweredStep> steps = chain({0, 5 * kMicrosecond, 0}, 60'000);
  steps[0].kind = steps[2].kind = LoweredStep::Kind::kStrips;
  EXPECT_EQ(steps_in_one_thread(steps, Machine{}), Numbers{});
}

TEST(ThreadedSteps, BranchesAreJudgedByThemselves) {
  LoweredStep branch;
  branch.kind = LoweredStep::Kind::kIf;
  branch.then_steps = chain({kMicrosecond}, 1'000);
  branch.else_steps = {step_of(7, 100 * kMicrosecond, 1'000)};
  EXPECT_EQ(steps_in_one_thread({branch}, Machine{}), Numbers{0});
}

}  // namespace
}  // namespace gcompile
