// Decision trees on the emulator against one way after the other.
#include "gcrt/cuda/trees.h"

#include "../kernels/tree_reference.h"
#include "cuda_kernel_test.h"

namespace cuda_kernel_test {
namespace {

TEST(CudaTrees, GiveWhatTheirLeavesHold) {
  for (const tree_reference::Case& c : tree_reference::kCases) {
    const tree_reference::Forest<float, std::uint16_t, std::uint8_t> f(c);
    using Node = TreeNode<float, std::uint16_t, std::uint8_t>;
    const DeviceArray<float> x(f.x), values(f.values);
    const DeviceArray<TreeRow> trees(f.trees);
    const DeviceArray<Node> nodes(f.padded);
    DeviceArray<float> y(f.y.size());
    Queue queue;
    sum_trees<TreeSum>(queue, Trees<float, Node>{x.data(), trees.data(), nodes.data(), values.data(),
                                                 y.data(), c.rows, c.columns, c.groups, c.of_group, c.width});
    expect_no_error(queue);
    EXPECT_EQ(y.read(), f.expected());
  }
}

}  // namespace
}  // namespace cuda_kernel_test
