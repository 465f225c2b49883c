#pragma once
// Tables of decision trees as kernels read them.

#include <string>

#include "codegen/packing/packing.h"
#include "ir/graph/problem.h"

namespace gcompile {

/// The types of gcrt::TreeNode's members, the least that have all features and nodes.
struct TreeNodeType {
  std::string threshold, feature, child;
  std::int64_t threshold_bytes = 4, feature_bytes = 2, child_bytes = 1;

  explicit TreeNodeType(const ir::Problem& problem);
  std::string text() const;
  std::int64_t bytes() const;
};

/// gcrt::TreeRow of each tree.
Packing pack_tree_rows(const ir::Tensor& table, std::int64_t trees);
/// gcrt::TreeNode of all inner nodes, and as many more as a tree has leaves.
Packing pack_tree_nodes(const ir::Tensor& table, const ir::TreesWork& work, const TreeNodeType& type);
/// gcrt::MaskNode<Words> of all inner nodes: a tree of at most 32 * Words leaves.
Packing pack_tree_masks(const ir::Tensor& table, const ir::TreesWork& work, int words);

}  // namespace gcompile
