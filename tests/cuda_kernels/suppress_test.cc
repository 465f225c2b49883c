// Suppression of boxes on the emulator against one comparison after the other.
#include "gcrt/cuda/suppress.h"

#include "../kernels/suppress_reference.h"
#include "cuda_kernel_test.h"

namespace cuda_kernel_test {
namespace {

using suppress_reference::Case;
using suppress_reference::Problem;

template <class Boxes>
void check(const Case& c) {
  SCOPED_TRACE(c.boxes);
  const Problem problem(c);
  std::int64_t expected_count = 0;
  const std::vector<std::int64_t> expected = problem.expected<Boxes>(expected_count);
  const DeviceArray<float> boxes(problem.boxes), scores(problem.scores);
  const DeviceArray<float> overlap(std::vector<float>{c.overlap});
  const DeviceArray<std::int64_t> asked(std::vector<std::int64_t>{c.asked});
  DeviceArray<std::int64_t> selected(problem.room()), count(1);
  const std::ptrdiff_t words = suppress_device_words(problem.shape.lines(), c.boxes);
  DeviceArray<std::int32_t> scratch(static_cast<std::size_t>(words));
  Queue queue;
  suppress<Boxes>(queue, problem.shape, SuppressLimits{overlap.data(), c.score, c.has_score, asked.data()},
                  boxes.data(), scores.data(), selected.data(), count.data(), scratch.data());
  expect_no_error(queue);
  EXPECT_EQ(count.read(), std::vector<std::int64_t>{expected_count});
  EXPECT_EQ(selected.read(), expected);
}

TEST(CudaSuppress, Corners) {
  for (const Case& c : suppress_reference::kCases) check<CornerBoxes>(c);
}

TEST(CudaSuppress, Centres) {
  for (const Case& c : suppress_reference::kCases) check<CenteredBoxes>(c);
}

}  // namespace
}  // namespace cuda_kernel_test
