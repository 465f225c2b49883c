// The price at which larger weights fit their budget.
#include "codegen/program/weight_budget.h"

#include <gtest/gtest.h>

namespace gcompile::testing {
namespace {

LoweredStep step_of(std::vector<Rival> rivals) {
  LoweredStep step;
  step.call.rivals = std::move(rivals);
  return step;
}

Rival rival(std::int64_t picoseconds, std::int64_t extra_weights, std::string refusal = "") {
  return {"conv.some", "", picoseconds, extra_weights, std::move(refusal)};
}

/// What a program takes whose choices follow from the price.
std::int64_t taken(const std::vector<LoweredStep>& steps, double price) {
  std::int64_t sum = 0;
  for (const LoweredStep& step : steps) {
    const Rival* best = nullptr;
    double least = 0;
    for (const Rival& r : step.call.rivals) {
      const double cost = static_cast<double>(r.picoseconds) + price * static_cast<double>(r.extra_weights);
      if (!r.refusal.empty() || (best && cost >= least)) continue;
      best = &r;
      least = cost;
    }
    if (best) sum += best->extra_weights;
    sum += taken(step.then_steps, price) + taken(step.else_steps, price);
  }
  return sum;
}

/// Saving 90 for 100 bytes, 50 for 10 bytes or 60 for 40, 30 for 100.
std::vector<LoweredStep> three_steps() {
  std::vector<LoweredStep> steps = {step_of({rival(10, 100), rival(100, 0), rival(1, 500, "refuses")}),
                                    step_of({rival(40, 40), rival(50, 10), rival(100, 0)})};
  LoweredStep branches;
  branches.kind = LoweredStep::Kind::kIf;
  branches.then_steps = {step_of({rival(70, 100), rival(100, 0)})};
  steps.push_back(std::move(branches));
  return steps;
}

TEST(WeightBudget, CountsWhatIsTakenInBranchesToo) {
  EXPECT_EQ(extra_weights(three_steps()), 240);
  EXPECT_EQ(extra_weights({}), 0);
}

TEST(WeightBudget, GivesBackWhatSavesLeastForItsBytes) {
  const std::vector<LoweredStep> steps = three_steps();
  for (const auto& [budget, expected] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {239, 140}, {139, 110}, {110, 110}, {109, 10}, {9, 0}, {0, 0}}) {
    EXPECT_EQ(taken(steps, weight_price_within(steps, budget)), expected) << budget;
  }
}

TEST(WeightBudget, WhatIsForcedStays) {
  const std::vector<LoweredStep> steps = {step_of({rival(10, 100)}), step_of({rival(10, 50), rival(20, 0)})};
  EXPECT_EQ(taken(steps, weight_price_within(steps, 0)), 100);
  EXPECT_EQ(weight_price_within({step_of({rival(10, 100)})}, 0), 0);
}

}  // namespace
}  // namespace gcompile::testing
