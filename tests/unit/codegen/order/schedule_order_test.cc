#include <algorithm>
#include <numeric>

#include "base/diagnostics.h"
#include "codegen/order/order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codegen/memory/memory_instances.h"

namespace gcompile {
namespace {

using memory_instances::Dice;
using testing::ElementsAre;
using testing::IsEmpty;

struct Problem {
  std::vector<ScheduleStep> steps;
  std::vector<ScheduleValue> values;
};

bool is_valid_order(const Problem& problem, const std::vector<int32_t>& order) {
  std::vector<int32_t> position(problem.steps.size(), -1);
  if (order.size() != problem.steps.size()) return false;
  for (size_t i = 0; i < order.size(); ++i)
    position.at(static_cast<size_t>(order[i])) = static_cast<int32_t>(i);
  for (size_t s = 0; s < problem.steps.size(); ++s) {
    if (position[s] < 0) return false;
    for (int32_t before : problem.steps[s].after) {
      if (position[static_cast<size_t>(before)] > position[s]) return false;
    }
    for (size_t other = 0; other < problem.steps.size(); ++other) {
      for (int32_t value : problem.steps[other].makes) {
        const auto& uses = problem.steps[s].uses;
        if (std::count(uses.begin(), uses.end(), value) > 0 && position[other] > position[s]) return false;
      }
    }
  }
  return true;
}

/// Straight from the definition: for each step the sum over all values whose first and last
/// positions enclose it.
int64_t peak_by_definition(const Problem& problem, const std::vector<int32_t>& order) {
  const auto count = static_cast<int32_t>(order.size());
  int64_t peak = 0;
  for (int32_t now = 0; now < count; ++now) {
    int64_t live = problem.steps[static_cast<size_t>(order[static_cast<size_t>(now)])].scratch;
    for (int32_t v = 0; v < static_cast<int32_t>(problem.values.size()); ++v) {
      int32_t first = -1;
      int32_t last = -1;
      for (int32_t at = 0; at < count; ++at) {
        const ScheduleStep& step = problem.steps[static_cast<size_t>(order[static_cast<size_t>(at)])];
        if (std::count(step.makes.begin(), step.makes.end(), v) > 0) first = last = at;
        if (std::count(step.uses.begin(), step.uses.end(), v) > 0) last = at;
      }
      const ScheduleValue& value = problem.values[static_cast<size_t>(v)];
      if (value.is_output) last = count;
      if (first <= now && now <= last) live += value.size;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

int64_t lowest_peak_by_permutation(const Problem& problem) {
  std::vector<int32_t> order(problem.steps.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    if (is_valid_order(problem, order))
      best = std::min(best, schedule_peak(problem.steps, problem.values, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

Problem random_problem(Dice& dice, int count) {
  Problem problem;
  for (int64_t inputs = dice.roll(0, 2); inputs > 0; --inputs)
    problem.values.push_back({dice.roll(0, 20), false});
  for (int s = 0; s < count; ++s) {
    ScheduleStep step;
    const auto known = static_cast<int64_t>(problem.values.size());
    for (int64_t k = dice.roll(0, 2); k > 0 && known > 0; --k) {
      step.uses.push_back(static_cast<int32_t>(dice.roll(std::max<int64_t>(0, known - 6), known - 1)));
    }
    for (int64_t k = dice.roll(0, 9) == 0 ? 2 : 1; k > 0; --k) {
      step.makes.push_back(static_cast<int32_t>(problem.values.size()));
      problem.values.push_back({dice.roll(0, 30), dice.roll(0, 7) == 0});
    }
    if (dice.roll(0, 4) == 0) step.scratch = dice.roll(1, 25);
    if (s > 0 && dice.roll(0, 9) == 0) step.after.push_back(static_cast<int32_t>(dice.roll(0, s - 1)));
    problem.steps.push_back(step);
  }
  return problem;
}

TEST(ScheduleOrder, AgreesWithAllPermutationsOfSmallGraphs) {
  Dice dice(3);
  int improved = 0;
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random_problem(dice, 6);
    const ScheduleOrder order = choose_schedule_order(problem.steps, problem.values);
    EXPECT_TRUE(is_valid_order(problem, order.steps));
    EXPECT_EQ(order.peak_bytes, peak_by_definition(problem, order.steps));
    EXPECT_EQ(order.peak_bytes, lowest_peak_by_permutation(problem))
        << "round " << round << ", " << order.rule;
    EXPECT_TRUE(order.proven_optimal);
    improved += order.peak_bytes < order.given_peak_bytes ? 1 : 0;
  }
  EXPECT_GT(improved, 20);
}

TEST(ScheduleOrder, IsNeverWorseThanGivenAndRepeatable) {
  Dice dice(4);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = random_problem(dice, static_cast<int>(dice.roll(1, 80)));
    for (int64_t budget : {int64_t{0}, int64_t{1}, int64_t{3000}}) {
      const ScheduleOrder order = choose_schedule_order(problem.steps, problem.values, {budget});
      EXPECT_TRUE(is_valid_order(problem, order.steps)) << order.rule;
      EXPECT_LE(order.peak_bytes, order.given_peak_bytes);
      EXPECT_EQ(order.peak_bytes, peak_by_definition(problem, order.steps)) << order.rule;
      EXPECT_EQ(order.steps, choose_schedule_order(problem.steps, problem.values, {budget}).steps);
      EXPECT_EQ(order.peak_bytes == order.given_peak_bytes, order.rule == "given");
    }
  }
}

/// Two branches, each wide inside and narrow at its end; the given order opens both before it closes either.
TEST(ScheduleOrder, ClosesOneBranchBeforeItOpensTheNext) {
  Problem problem;
  problem.values = {{1, false}, {100, false}, {100, false}, {1, false}, {1, false}, {1, true}};
  problem.steps.resize(5);
  problem.steps[0] = {{0}, {1}, 0, {}};
  problem.steps[1] = {{0}, {2}, 0, {}};
  problem.steps[2] = {{1}, {3}, 0, {}};
  problem.steps[3] = {{2}, {4}, 0, {}};
  problem.steps[4] = {{3, 4}, {5}, 0, {}};
  const ScheduleOrder order = choose_schedule_order(problem.steps, problem.values);
  EXPECT_EQ(order.given_peak_bytes, 201);
  EXPECT_EQ(order.peak_bytes, 102);
  EXPECT_THAT(order.steps, ElementsAre(0, 2, 1, 3, 4));
  EXPECT_EQ(order.rule, "depth-first");
}

TEST(ScheduleOrder, KeepsTheGivenOrderOfAChainAndOfNothing) {
  Problem chain;
  for (int32_t i = 0; i < 3000; ++i) {
    chain.values.push_back({8, false});
    chain.steps.push_back({{i}, {i + 1}, 0, {}});
  }
  chain.values.push_back({8, true});
  const ScheduleOrder order = choose_schedule_order(chain.steps, chain.values);
  EXPECT_EQ(order.rule, "given");
  EXPECT_EQ(order.peak_bytes, 16);
  EXPECT_TRUE(order.proven_optimal);
  EXPECT_THAT(choose_schedule_order({}, {}).steps, IsEmpty());
}

TEST(ScheduleOrder, CountsInputsOutputsAndScratch) {
  // An input nobody reads takes no part; one that is a result lives throughout.
  EXPECT_EQ(schedule_peak({{{}, {2}, 5, {}}}, {{100, false}, {7, true}, {3, false}}, {0}), 7 + 3 + 5);
}

TEST(ScheduleOrder, ObeysOrderingWithoutValues) {
  // Step 1 overwrites what step 0 reads. Running it first would be cheaper, and wrong.
  Problem problem;
  problem.values = {{10, false}, {50, false}, {1, true}};
  problem.steps = {{{0}, {1}, 0, {}}, {{0}, {}, 0, {0}}, {{0, 1}, {2}, 0, {1}}};
  EXPECT_THAT(choose_schedule_order(problem.steps, problem.values).steps, ElementsAre(0, 1, 2));
}

TEST(ScheduleOrder, RefusesGraphsThatAreNone) {
  const std::vector<ScheduleValue> values{{1, false}, {1, false}};
  auto refuse = [&](const std::vector<ScheduleStep>& steps) {
    EXPECT_THROW(choose_schedule_order(steps, values), CompileError);
  };
  refuse({{{2}, {}, 0, {}}});
  refuse({{{-1}, {}, 0, {}}});
  refuse({{{}, {0}, 0, {}}, {{}, {0}, 0, {}}});
  refuse({{{0}, {1}, 0, {}}, {{}, {0}, 0, {}}});
  refuse({{{0}, {0}, 0, {}}});
  refuse({{{}, {0}, 0, {0}}});
}

}  // namespace
}  // namespace gcompile
