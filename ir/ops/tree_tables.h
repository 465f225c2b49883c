#pragma once
// Ensembles of decision trees: what a model says of them, and the tables that TreeWalk and TreeSums read.

#include <string>
#include <vector>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {

/// The table of gcompile.Trees, int64: a row for each tree, then one for each inner node, tree behind tree. A node goes
/// to its second child unless the feature is at most the threshold, of which the bits as float64 are there. Nodes are
/// counted within their tree, inner ones before leaves, and leaves in the order of all ways to them, first children first.
struct TreeRows {
  static constexpr int kColumns = 4;
  static constexpr int kFirstNode = 0, kInner = 1, kDepth = 2, kFirstLeaf = 3;  // of a tree
  static constexpr int kThreshold = 0, kFeature = 1, kFirst = 2, kSecond = 3;   // of a node
};

enum class BranchMode : std::uint8_t { kAtMost, kBelow, kAtLeast, kAbove, kEqual, kNotEqual, kMember };

/// A node of a tree: to `yes` where the feature compares as the mode says, or is NaN and `nan_is_yes`; else to `no`.
struct TreeNode {
  bool is_leaf = false;
  BranchMode mode = BranchMode::kAtMost;
  std::int64_t feature = 0;
  double value = 0;
  std::vector<double> members;  // kMember
  bool nan_is_yes = false;
  int yes = -1, no = -1;
  std::vector<std::pair<std::int64_t, double>> weights = {};  // of a leaf: targets and what they get
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int> roots;
  std::int64_t targets = 1;
};

/// Attributes of TreeEnsembleClassifier and TreeEnsembleRegressor, whose lists of weights begin with `prefix`.
Forest read_forest(const Attributes& attributes, const std::string& prefix, std::int64_t targets);
/// Attributes of TreeEnsemble.
Forest read_forest(const Attributes& attributes);
/// No tree has a cycle, all features are among `columns`, all targets are.
void check_forest(const Forest& forest, Dim columns);

/// The attribute "base_values", or the same as a tensor.
std::vector<double> base_values(const Attributes& attributes);

/// Whether every row gets a weight for the target from some tree.
bool always_scores(const Forest& forest, std::int64_t target);
/// What the leaves of all trees give each target, of x (rows, columns) of float32 or float64, as (rows, targets): their
/// sum, least or largest ("sum", "min", "max"), 0 where there is none.
ValueId emit_forest(RewriteContext& context, ValueId x, const Forest& forest, const std::string& combine);

}  // namespace gcompile::ir
