// The table of docs/benchmarks.md, and what it promises: this program prints its rows.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "codegen/memory/check.h"
#include "codegen/memory/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codegen/memory/memory_csv.h"
#include "tests/unit/codegen/memory/memory_instances.h"
#include "tests/unit/codegen/memory/memory_yardstick.h"

namespace gcompile {
namespace {

using memory_instances::Dice;
using memory_instances::network_buffers;
using memory_instances::random_buffers;
using testing::IsEmpty;

std::string ratio(int64_t arena, int64_t bound) {
  return fmt::format("{:.4f}", static_cast<double>(arena) / static_cast<double>(bound));
}

struct Row {
  MemoryPlan plan;
  double seconds = 0.0;  // of processor time
};

Row print_row(const std::string& name, const std::vector<Buffer>& buffers,
              const MemoryPlanOptions& options = {}) {
  Row row;
  const std::clock_t start = std::clock();
  row.plan = plan_memory(buffers, options);
  row.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_THAT(check_memory_plan(buffers, row.plan), IsEmpty()) << name;
  const int64_t bound = row.plan.lower_bound;
  // The yardstick walks through all that is placed for each buffer.
  const std::string by_size =
      buffers.size() <= 30'000 ? ratio(memory_yardstick::greedy_by_size(buffers), bound) : "";
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.2f} | {:.1f} | {}{} |\n", name, buffers.size(), bound,
             by_size, ratio(first_fit_reference(buffers), bound), row.plan.arena_bytes,
             ratio(row.plan.arena_bytes, bound), row.seconds, static_cast<double>(row.plan.search_work) / 1e6,
             row.plan.order_used, row.plan.proven_optimal ? ", optimal" : "");
  return row;
}

void print_head() {
  fmt::print(
      "| instance | buffers | bound | by size | as they come | arena | ratio | s | 10^6 steps | by |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
}

/// Published instances, where the developer has them beside the sources; they are not part of the project.
TEST(MemoryTable, PlansPublishedInstances) {
  const std::filesystem::path folder =
      std::filesystem::path(GCOMPILE_SOURCE_DIR) / ".." / "shared/sets/memory-plan";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no published instances at ../shared/sets/memory-plan";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_THAT(files, testing::Not(IsEmpty()));
  print_head();
  for (const auto& file : files) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    const auto instance = memory_csv::read(text.str());
    ASSERT_TRUE(instance.has_value()) << file;
    const std::string name = file.stem().string();
    const MemoryPlan plan = print_row(name, instance->buffers).plan;
    if (name.size() == 1) {
      EXPECT_LE(plan.arena_bytes, 1'048'576) << name;
    }
    const int64_t allowed = name == "S_1" ? plan.lower_bound / 50 : plan.lower_bound / 16;
    EXPECT_LE(plan.arena_bytes, plan.lower_bound + allowed) << name;
  }
}

/// The greedy tier: what it may cost is counted, so the time printed is all that can differ.
TEST(MemoryTable, PlansTensOfThousands) {
  struct Case {
    std::string name;
    std::vector<Buffer> buffers;
    double most;  // times the bound
  };
  Dice dice(23);
  std::vector<Case> cases;
  cases.push_back({"network", network_buffers(dice, 13'000), 1.0});
  cases.push_back({"network", network_buffers(dice, 66'000), 1.0});
  cases.push_back({"random, 100 live", random_buffers(dice, 20'000, 20'000, 200, 1 << 20, 6), 1.05});
  cases.push_back({"random, 4,000 live", random_buffers(dice, 20'000, 20'000, 8'000, 1 << 20, 6), 1.03});
  cases.push_back({"random, 2,000 live", random_buffers(dice, 100'000, 100'000, 4'000, 1 << 20, 6), 1.04});
  MemoryPlanOptions greedy_only;
  greedy_only.search_budget = 0;
  print_head();
  for (const Case& one : cases) {
    const Row row = print_row(one.name, one.buffers, greedy_only);
    EXPECT_LE(static_cast<double>(row.plan.arena_bytes), one.most * static_cast<double>(row.plan.lower_bound))
        << one.name;
    // One second for 20,000 on a machine of 2026; the margin is for slow ones and for sanitizers.
    EXPECT_LT(row.seconds, 30.0) << one.name;
  }
}

}  // namespace
}  // namespace gcompile
