// When chains of kernels are cut into strips, and how.
#include "codegen/schedule/strips.h"

#include <gtest/gtest.h>

namespace gcompile {
namespace {

constexpr std::int64_t kKilo = 1024;

/// An expansion to images of 112 x 112, and the depthwise convolution that halves them.
std::vector<StripKernel> inverted_residual(std::int64_t row_bytes) {
  StripKernel expand, depthwise;
  expand.rows = 112;
  expand.row_bytes = row_bytes;
  expand.weight_bytes = 6 * kKilo;
  depthwise.rows = 56;
  depthwise.span = 3;
  depthwise.stride = 2;
  depthwise.pad = 1;
  depthwise.row_bytes = row_bytes / 2;
  return {expand, depthwise};
}

TEST(StripsTest, LargeImagesArePlannedForTime) {
  const Machine machine;
  const auto plan = plan_strips(inverted_residual(42 * kKilo), machine);
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->saved_picoseconds, 0);
  EXPECT_EQ(plan->rows, 56);
  EXPECT_EQ(plan->whole_bytes, 112 * 42 * kKilo);
  ASSERT_EQ(plan->images.size(), 1u);
  EXPECT_EQ(plan->images[0].held, (plan->step - 1) * 2 + 3);
  EXPECT_EQ(plan->images[0].pad, 1);
  EXPECT_LE(plan->part_bytes(), machine.l2);
  EXPECT_LE(2 * plan->parts * plan->part_bytes(), plan->whole_bytes);
  EXPECT_GE(plan->parts, 4);
  EXPECT_LE(plan->parts, machine.cores);
}

TEST(StripsTest, SmallImagesStayWholeForTimeButNotForSize) {
  Machine machine;
  EXPECT_FALSE(plan_strips(inverted_residual(8 * kKilo), machine));
  machine.smallest_scratch = true;
  const auto plan = plan_strips(inverted_residual(8 * kKilo), machine);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->step, 1);
  EXPECT_EQ(plan->parts, 1);
  EXPECT_EQ(plan->images[0].held, 3);
  EXPECT_EQ(plan->saved_bytes(), 112 * 8 * kKilo - (3 * 8 * kKilo + 64));
}

TEST(StripsTest, ImagesThatAStripNeedsWholeStayWhole) {
  Machine machine;
  machine.smallest_scratch = true;
  std::vector<StripKernel> kernels = inverted_residual(8 * kKilo);
  kernels[0].rows = 3;
  kernels[1].rows = 1;
  EXPECT_FALSE(plan_strips(kernels, machine));
}

TEST(StripsTest, HeldRowsGrowTowardsTheFirstKernel) {
  Machine machine;
  machine.smallest_scratch = true;
  StripKernel kernel;
  kernel.rows = 64;
  kernel.span = 3;
  kernel.pad = 1;
  kernel.row_bytes = kKilo;
  const std::vector<StripKernel> kernels(4, kernel);
  const auto plan = plan_strips(kernels, machine);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->images.size(), 3u);
  EXPECT_EQ(plan->images[0].held, 7);
  EXPECT_EQ(plan->images[1].held, 5);
  EXPECT_EQ(plan->images[2].held, 3);
  EXPECT_EQ(to_string(*plan), "64 rows, 1 at a time, in 1 part: 15552 bytes in place of 196608");
}

}  // namespace
}  // namespace gcompile
