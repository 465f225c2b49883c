// Decision trees way by way and by masks, against one way after the other.
#include "gcrt/cpu/trees.h"

#include "gcrt/cpu/tree_masks.h"
#include "kernel_test.h"
#include "tree_reference.h"

namespace kernel_test {
namespace {

using tree_reference::Case;
using tree_reference::Forest;

template <class T, class Feature, class Child>
void check_ways() {
  for (const Case& c : tree_reference::kCases) {
    SCOPED_TRACE(c.rows);
    Forest<T, Feature, Child> f(c);
    const Trees<T, TreeNode<T, Feature, Child>> all{
        f.x.data(), f.trees.data(), f.padded.data(), f.values.data(), f.y.data(),
        c.rows,     c.columns,      c.groups,        c.of_group,      c.width};
    sum_trees<TreeSum>(nullptr, all);
    EXPECT_EQ(f.y, f.expected());
  }
}

TEST(Trees, WaysOfAllTypes) {
  check_ways<float, std::uint16_t, std::uint8_t>();
  check_ways<float, std::uint16_t, std::uint16_t>();
  check_ways<double, std::int32_t, std::int32_t>();
}

template <int Words>
void check_masks() {
  for (const Case& c : tree_reference::kCases) {
    if (c.leaves > 32 * Words) continue;
    SCOPED_TRACE(c.rows);
    Forest<float, std::uint16_t, std::uint8_t> f(c);
    std::vector<MaskNode<Words>> nodes;
    for (std::size_t i = 0; i < f.nodes.size(); ++i) {
      MaskNode<Words> node{f.nodes[i].threshold, f.nodes[i].feature, {}};
      for (int w = 0; w < Words; ++w) node.leaves[w] = static_cast<std::uint32_t>(f.left_of(i) >> (32 * w));
      nodes.push_back(node);
    }
    std::vector<float> features(static_cast<std::size_t>(2 * c.columns * kMaskRows<Words>));
    const Trees<float, MaskNode<Words>> all{f.x.data(), f.trees.data(), nodes.data(), f.values.data(),
                                            f.y.data(), c.rows,         c.columns,    c.groups,
                                            c.of_group, c.width};
    sum_trees_by_masks<TreeSum>(nullptr, all, features.data(), 2);
    EXPECT_EQ(f.y, f.expected());
  }
}

TEST(Trees, MasksOfOneWordAndOfTwo) {
  check_masks<1>();
  check_masks<2>();
}

TEST(Trees, LeastAndLargest) {
  const Case c = {9, 3, 1, 6, 2, 12};
  Forest<float, std::uint16_t, std::uint8_t> f(c);
  const Trees<float, TreeNode<float, std::uint16_t, std::uint8_t>> all{
      f.x.data(), f.trees.data(), f.padded.data(), f.values.data(), f.y.data(),
      c.rows,     c.columns,      c.groups,        c.of_group,      c.width};
  sum_trees<TreeMin>(nullptr, all);
  const std::vector<float> least = f.y;
  sum_trees<TreeMax>(nullptr, all);
  const std::vector<float> sums = f.expected();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_LE(least[i] * 6, sums[i] * 1.0001f);
    EXPECT_GE(f.y[i] * 6, sums[i] * 0.9999f);
    EXPECT_LT(least[i], f.y[i]);
  }
}

}  // namespace
}  // namespace kernel_test
