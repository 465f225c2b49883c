#include "driver/projects/edit_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gcompile {
namespace {

using Sequence = std::vector<std::int64_t>;

/// How many elements a longest common subsequence has.
std::size_t longest_common(const Sequence& a, const Sequence& b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
    }
  }
  return best[a.size()][b.size()];
}

/// Every position once and in order, equal elements matched; returns how many are.
std::size_t expect_sound(const Sequence& a, const Sequence& b) {
  std::size_t i = 0, j = 0, matched = 0;
  for (const Edit& edit : edit_script(a, b)) {
    EXPECT_TRUE(edit.before || edit.after);
    EXPECT_EQ(edit.before.value_or(i), i);
    EXPECT_EQ(edit.after.value_or(j), j);
    i += edit.before.has_value();
    j += edit.after.has_value();
    if (!edit.before || !edit.after) continue;
    EXPECT_EQ(a.at(*edit.before), b.at(*edit.after));
    ++matched;
  }
  EXPECT_EQ(i, a.size());
  EXPECT_EQ(j, b.size());
  return matched;
}

TEST(EditScript, MatchesAsMuchAsCanBe) {
  std::mt19937 random(3);
  const auto sequence = [&] {
    Sequence out(random() % 14);
    for (std::int64_t& each : out) each = static_cast<std::int64_t>(random() % 4);
    return out;
  };
  for (int i = 0; i < 3000; ++i) {
    const Sequence a = sequence(), b = sequence();
    ASSERT_EQ(expect_sound(a, b), longest_common(a, b))
        << testing::PrintToString(a) << testing::PrintToString(b);
  }
}

TEST(EditScript, MatchesTheEndsOfWhatHasNothingElseInCommon) {
  Sequence a(5000), b(5000);
  for (std::int64_t i = 0; i < 5000; ++i) {
    a[i] = i;
    b[i] = i < 10 || i > 4990 ? i : 10'000 + i;
  }
  EXPECT_EQ(expect_sound(a, b), 19U);
}

TEST(EditScript, OfNothing) {
  EXPECT_TRUE(edit_script({}, {}).empty());
  EXPECT_EQ(expect_sound({}, {1, 2}), 0U);
  EXPECT_EQ(expect_sound({1, 2}, {}), 0U);
}

}  // namespace
}  // namespace gcompile
