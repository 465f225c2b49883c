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

TEST(StripsTest, SizesOfARunArePlannedAtTheLargest) {
  ir::Sizes sizes;
  const ir::Dim height = ir::Dim::symbol(sizes.add_symbol({"height", {1, 28}, 3}));
  const ir::SizesScope scope(&sizes);
  std::vector<StripKernel> kernels = inverted_residual(42 * kKilo);
  kernels[0].rows = 4 * height;
  kernels[1].rows = 2 * height;
  const Machine machine;
  const auto plan = plan_strips(kernels, machine),
             fixed = plan_strips(inverted_residual(42 * kKilo), machine);
  ASSERT_TRUE(plan && fixed);
  EXPECT_EQ(to_string(*plan), to_string(*fixed));
  EXPECT_TRUE(plan->is_open());
  EXPECT_FALSE(fixed->is_open());
  EXPECT_TRUE(plan->sizes[1].rows == 2 * height);
  EXPECT_EQ(fixed->sizes[1].rows, 56);
}

const auto kAlways = [](std::size_t, std::size_t, const StripPlan&) { return true; };

std::vector<std::size_t> lengths(const std::vector<StripGroup>& groups) {
  std::vector<std::size_t> out;
  for (const StripGroup& group : groups) out.push_back(group.length);
  return out;
}

/// Images of 64 rows of that many KiB, by windows of three rows, each in a buffer of its own, from buffer 0.
std::vector<StripKernel> chain_of(const std::vector<std::int64_t>& row_kilobytes) {
  std::vector<StripKernel> chain;
  for (const std::int64_t kilobytes : row_kilobytes) {
    StripKernel kernel;
    kernel.rows = 64;
    kernel.span = 3;
    kernel.pad = 1;
    kernel.row_bytes = kilobytes * kKilo;
    kernel.result = static_cast<int>(chain.size()) + 1;
    chain.push_back(kernel);
  }
  chain[0].reads = {{0, 64 * kKilo}};
  return chain;
}

TEST(StripsTest, ForSizeTheLargestImageIsCutOut) {
  Machine machine;
  machine.smallest_scratch = true;
  // Only the cut behind the fourth kernel spares the image of 64 x 8 KiB on both sides.
  EXPECT_EQ(lengths(cut_into_groups(chain_of({8, 8, 8, 1, 8, 8, 1}), machine, kAlways)),
            (std::vector<std::size_t>{4, 3}));
}

TEST(StripsTest, WhatIsReadLaterCounts) {
  Machine machine;
  machine.smallest_scratch = true;
  // The last kernel adds what the first one reads, in its place: with all three together nothing but that and
  // strips live.
  std::vector<StripKernel> chain = chain_of({4, 4, 1});
  chain[2].reads = chain[0].reads;
  chain[2].result = 0;
  EXPECT_EQ(lengths(cut_into_groups(chain, machine, kAlways)), (std::vector<std::size_t>{3}));
  // Where that cannot be, the first two still leave the larger image out.
  chain[1].row_bytes = kKilo;
  const auto not_all = [](std::size_t, std::size_t length, const StripPlan&) { return length < 3; };
  EXPECT_EQ(lengths(cut_into_groups(chain, machine, not_all)), (std::vector<std::size_t>{2, 1}));
}

TEST(StripsTest, ForTimeOnlyLargeImagesJoin) {
  const Machine machine;
  std::vector<StripKernel> chain = chain_of({8, 64, 8, 8});
  chain[2].span = 1;
  chain[2].pad = 0;
  EXPECT_EQ(lengths(cut_into_groups(chain, machine, kAlways)), (std::vector<std::size_t>{1, 2, 1}));
  EXPECT_EQ(lengths(cut_into_groups(chain_of({8, 8}), machine, kAlways)), (std::vector<std::size_t>{1, 1}));
}

}  // namespace
}  // namespace gcompile
