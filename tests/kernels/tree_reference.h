// Random decision trees, and what they give rows, way by way.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gcrt/scalar/trees.h"

namespace tree_reference {

struct Case {
  std::ptrdiff_t rows, columns, groups, of_group, width;
  int leaves;  // of a tree at most
};
constexpr Case kCases[] = {{1, 3, 1, 1, 1, 1},   {1, 5, 1, 21, 1, 9},  {7, 4, 2, 5, 3, 17},
                           {64, 6, 1, 9, 1, 32}, {70, 3, 3, 4, 1, 64}, {131, 9, 1, 3, 2, 31}};

template <class T, class Feature, class Child>
class Forest {
 public:
  using Node = gcrt::TreeNode<T, Feature, Child>;
  explicit Forest(const Case& shape) : shape_(shape) {
    for (std::ptrdiff_t i = 0; i < shape.groups * shape.of_group; ++i) add(1 + number(shape.leaves));
    padded.resize(static_cast<std::size_t>(shape.leaves), Node{});
    padded.insert(padded.begin(), nodes.begin(), nodes.end());
    for (std::ptrdiff_t i = 0; i < shape.rows * shape.columns; ++i)
      x.push_back(static_cast<T>(number(21) - 10));
    x[0] = std::numeric_limits<T>::quiet_NaN();
    y.resize(static_cast<std::size_t>(shape.rows * shape.groups * shape.width), T(77));
  }

  // The sum of the leaves in the order of trees, with the same roundings.
  std::vector<T> expected() const {
    std::vector<T> sums(y.size(), T(0));
    for (std::ptrdiff_t row = 0; row < shape_.rows; ++row) {
      for (std::ptrdiff_t tree = 0; tree < shape_.groups * shape_.of_group; ++tree) {
        const gcrt::TreeRow& root = trees[static_cast<std::size_t>(tree)];
        std::uint32_t at = 0;
        while (at < static_cast<std::uint32_t>(root.inner)) {
          const Node& node = nodes[static_cast<std::size_t>(root.first) + at];
          const bool stays =
              x[static_cast<std::size_t>(row * shape_.columns + node.feature)] <= node.threshold;
          at = static_cast<std::uint32_t>(stays ? node.children[0] : node.children[1]);
        }
        const std::ptrdiff_t leaf = root.leaf + static_cast<std::ptrdiff_t>(at) - root.inner;
        for (std::ptrdiff_t v = 0; v < shape_.width; ++v) {
          const std::ptrdiff_t to = (row * shape_.groups + tree / shape_.of_group) * shape_.width + v;
          sums[static_cast<std::size_t>(to)] += values[static_cast<std::size_t>(leaf * shape_.width + v)];
        }
      }
    }
    return sums;
  }

  // Leaves that are left where the comparison of a node fails.
  std::uint64_t left_of(std::size_t node) const { return left_[node]; }

  std::vector<Node> nodes, padded;
  std::vector<gcrt::TreeRow> trees;
  std::vector<T> values, x, y;

 private:
  int number(int below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(below));
  }

  // Nodes are split in the order in which they were made, so that children stand behind their parents; leaves are
  // numbered in the order of their ranges.
  void add(int leaves) {
    struct Range {
      int begin, end;
    };
    gcrt::TreeRow tree{static_cast<std::int32_t>(nodes.size()), leaves - 1, 0,
                       static_cast<std::int32_t>(values.size()) / static_cast<std::int32_t>(shape_.width)};
    std::vector<Range> open = {{0, leaves}};
    std::vector<int> depth = {0};
    int inner = 1;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const Range range = open[i];
      if (range.end - range.begin == 1) break;  // a tree that is a leaf
      const int middle = range.begin + 1 + number(range.end - range.begin - 1);
      Node node{};
      node.threshold = static_cast<T>(number(21) - 10);
      node.feature = static_cast<Feature>(number(static_cast<int>(shape_.columns)));
      const Range parts[2] = {{range.begin, middle}, {middle, range.end}};
      for (int k = 0; k < 2; ++k) {
        const bool is_leaf = parts[k].end - parts[k].begin == 1;
        node.children[k] = static_cast<Child>(is_leaf ? leaves - 1 + parts[k].begin : inner++);
        tree.depth = tree.depth < depth[i] + 1 ? depth[i] + 1 : tree.depth;
        if (is_leaf) continue;
        open.push_back(parts[k]);
        depth.push_back(depth[i] + 1);
      }
      nodes.push_back(node);
      const int bits = middle - range.begin;
      const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
      left_.push_back(~(all << range.begin));
    }
    trees.push_back(tree);
    for (std::ptrdiff_t i = 0; i < leaves * shape_.width; ++i) {
      values.push_back(static_cast<T>(number(1000)) / T(7));
    }
  }

  Case shape_;
  std::uint64_t state_ = 42;
  std::vector<std::uint64_t> left_;
};

}  // namespace tree_reference
