// Suppression of boxes against one comparison after the other.
#include "gcrt/cpu/suppress.h"

#include "kernel_test.h"
#include "suppress_reference.h"

namespace kernel_test {
namespace {

using suppress_reference::Case;
using suppress_reference::Problem;

template <class Boxes>
void check(const Case& c, std::ptrdiff_t parts) {
  SCOPED_TRACE(c.boxes);
  const Problem problem(c);
  std::int64_t expected_count = 0, count = -1;
  const std::vector<std::int64_t> expected = problem.expected<Boxes>(expected_count);
  std::vector<std::int64_t> selected(problem.room(), 77);
  const std::ptrdiff_t words = suppress_words(problem.shape.lines(), c.boxes, c.most, parts);
  std::vector<std::int32_t> scratch(static_cast<std::size_t>(words));
  const SuppressLimits limits{&c.overlap, c.score, c.has_score, &c.asked};
  suppress<Boxes>(nullptr, problem.shape, limits, problem.boxes.data(), problem.scores.data(),
                  selected.data(), &count, scratch.data(), parts);
  EXPECT_EQ(count, expected_count);
  EXPECT_EQ(selected, expected);
}

TEST(Suppress, Corners) {
  for (const Case& c : suppress_reference::kCases) check<CornerBoxes>(c, 1);
}

TEST(Suppress, CentresInParts) {
  for (const Case& c : suppress_reference::kCases) check<CenteredBoxes>(c, 3);
}

TEST(Suppress, AsManyAsTheModelSays) {
  Case c = suppress_reference::kCases[1];
  c.asked = c.most;
  const Problem problem(c);
  std::int64_t expected_count = 0, count = -1;
  const std::vector<std::int64_t> expected = problem.expected<CornerBoxes>(expected_count);
  std::vector<std::int64_t> selected(problem.room(), 77);
  std::vector<std::int32_t> scratch(
      static_cast<std::size_t>(suppress_words(problem.shape.lines(), c.boxes, c.most, 1)));
  suppress<CornerBoxes>(nullptr, problem.shape, SuppressLimits{c.overlap, &c.score, true, nullptr},
                        problem.boxes.data(), problem.scores.data(), selected.data(), &count, scratch.data(),
                        1);
  EXPECT_EQ(count, expected_count);
  EXPECT_EQ(selected, expected);
}

}  // namespace
}  // namespace kernel_test
