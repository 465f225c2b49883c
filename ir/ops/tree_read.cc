// What a model says of trees, in lists with an entry for each node and each weight.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/ops/tree_tables.h"

namespace gcompile::ir {
namespace {

using NodeKey = std::pair<std::int64_t, std::int64_t>;  // of a tree, of a node in it

BranchMode mode_of(const std::string& name) {
  if (name == "BRANCH_LEQ") return BranchMode::kAtMost;
  if (name == "BRANCH_LT") return BranchMode::kBelow;
  if (name == "BRANCH_GTE") return BranchMode::kAtLeast;
  if (name == "BRANCH_GT") return BranchMode::kAbove;
  if (name == "BRANCH_EQ") return BranchMode::kEqual;
  if (name == "BRANCH_NEQ") return BranchMode::kNotEqual;
  operator_error(fmt::format("attribute 'nodes_modes' has the entry '{}'", printable(name)));
}

/// Lists may come as floats, or as a tensor of float64.
std::vector<double> reals_of(const Attributes& attributes, const std::string& name) {
  std::vector<double> reals;
  if (attributes.has(name + "_as_tensor")) {
    const Tensor& tensor = attributes.tensor_of(name + "_as_tensor");
    if (!is_float(tensor.element()))
      operator_error(fmt::format("attribute '{}_as_tensor' has no floats", name));
    for (std::int64_t i = 0; i < tensor.count(); ++i) reals.push_back(tensor.real_at(i));
  } else if (attributes.has(name)) {
    for (const float real : attributes.floats_of(name)) reals.push_back(static_cast<double>(real));
  }
  return reals;
}

std::vector<std::int64_t> ints_of(const Attributes& attributes, const std::string& name) {
  return attributes.has(name) ? attributes.ints_of(name) : std::vector<std::int64_t>{};
}

void require_entries(const std::string& name, std::size_t entries, std::size_t wanted) {
  if (entries == wanted) return;
  operator_error(fmt::format("attribute '{}' has {} entries instead of {}", name, entries, wanted));
}

int child_of(const std::map<NodeKey, int>& nodes, const NodeKey& key) {
  const auto at = nodes.find(key);
  if (at == nodes.end()) operator_error(fmt::format("tree {} has no node {}", key.first, key.second));
  return at->second;
}

}  // namespace

std::vector<double> base_values(const Attributes& attributes) { return reals_of(attributes, "base_values"); }

Forest read_forest(const Attributes& attributes, const std::string& prefix, std::int64_t targets) {
  Forest forest;
  forest.targets = targets;
  const std::vector<std::int64_t> trees = ints_of(attributes, "nodes_treeids"),
                                  ids = ints_of(attributes, "nodes_nodeids"),
                                  features = ints_of(attributes, "nodes_featureids"),
                                  yes = ints_of(attributes, "nodes_truenodeids"),
                                  no = ints_of(attributes, "nodes_falsenodeids"),
                                  missing = ints_of(attributes, "nodes_missing_value_tracks_true");
  const std::vector<double> values = reals_of(attributes, "nodes_values");
  const std::vector<std::string> modes =
      attributes.has("nodes_modes") ? attributes.strings_of("nodes_modes") : std::vector<std::string>{};
  const std::size_t count = ids.size();
  if (count == 0) operator_error("there is no node");
  require_entries("nodes_treeids", trees.size(), count);
  require_entries("nodes_featureids", features.size(), count);
  require_entries("nodes_truenodeids", yes.size(), count);
  require_entries("nodes_falsenodeids", no.size(), count);
  require_entries("nodes_values", values.size(), count);
  require_entries("nodes_modes", modes.size(), count);
  if (!missing.empty()) require_entries("nodes_missing_value_tracks_true", missing.size(), count);
  std::map<NodeKey, int> nodes;
  std::map<std::int64_t, int> roots;  // the node of a tree that is listed first
  for (std::size_t i = 0; i < count; ++i) {
    if (!nodes.emplace(NodeKey{trees[i], ids[i]}, static_cast<int>(i)).second) {
      operator_error(fmt::format("tree {} has two nodes {}", trees[i], ids[i]));
    }
    const bool is_new = roots.emplace(trees[i], static_cast<int>(i)).second;
    if (!is_new && trees[i] != trees[i - 1]) {
      operator_error(fmt::format("the nodes of tree {} do not lie together", trees[i]));
    }
    if (is_new) forest.roots.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < count; ++i) {
    TreeNode& node = forest.nodes.emplace_back();
    node.is_leaf = modes[i] == "LEAF";
    if (node.is_leaf) continue;
    node.mode = mode_of(modes[i]);
    node.feature = features[i];
    node.value = values[i];
    node.nan_is_yes = !missing.empty() && missing[i] != 0;
    node.yes = child_of(nodes, {trees[i], yes[i]});
    node.no = child_of(nodes, {trees[i], no[i]});
  }
  const std::vector<std::int64_t> of_trees = ints_of(attributes, prefix + "_treeids"),
                                  of_nodes = ints_of(attributes, prefix + "_nodeids"),
                                  of_targets = ints_of(attributes, prefix + "_ids");
  const std::vector<double> weights = reals_of(attributes, prefix + "_weights");
  require_entries(prefix + "_treeids", of_trees.size(), weights.size());
  require_entries(prefix + "_nodeids", of_nodes.size(), weights.size());
  require_entries(prefix + "_ids", of_targets.size(), weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    TreeNode& node = forest.nodes[static_cast<std::size_t>(child_of(nodes, {of_trees[i], of_nodes[i]}))];
    if (node.is_leaf) node.weights.emplace_back(of_targets[i], weights[i]);
  }
  return forest;
}

namespace {

/// Members of each node that has a set, which NaN separate.
std::vector<std::vector<double>> sets_of(const Attributes& attributes) {
  std::vector<std::vector<double>> sets;
  if (!attributes.has("membership_values")) return sets;
  const Tensor& values = attributes.tensor_of("membership_values");
  bool is_open = false;
  for (std::int64_t i = 0; i < values.count(); ++i) {
    const double value = values.real_at(i);
    if (!is_open) sets.emplace_back();
    is_open = !std::isnan(value);
    if (is_open) sets.back().push_back(value);
  }
  return sets;
}

}  // namespace

/// Nodes and leaves have lists of their own; a leaf gives one target a weight.
Forest read_forest(const Attributes& attributes) {
  constexpr std::int64_t kModes = 7;
  Forest forest;
  forest.targets = attributes.has("n_targets") ? attributes.int_of("n_targets") : 1;
  const std::vector<std::int64_t>& features = attributes.ints_of("nodes_featureids");
  const std::vector<std::int64_t>& yes = attributes.ints_of("nodes_truenodeids");
  const std::vector<std::int64_t>& no = attributes.ints_of("nodes_falsenodeids");
  const std::vector<std::int64_t>& yes_leaves = attributes.ints_of("nodes_trueleafs");
  const std::vector<std::int64_t>& no_leaves = attributes.ints_of("nodes_falseleafs");
  const std::vector<std::int64_t> missing = ints_of(attributes, "nodes_missing_value_tracks_true");
  const Tensor &modes = attributes.tensor_of("nodes_modes"), &splits = attributes.tensor_of("nodes_splits");
  const std::vector<std::int64_t>& targets = attributes.ints_of("leaf_targetids");
  const Tensor& weights = attributes.tensor_of("leaf_weights");
  const std::size_t count = features.size(), leaf_count = targets.size();
  require_entries("nodes_truenodeids", yes.size(), count);
  require_entries("nodes_falsenodeids", no.size(), count);
  require_entries("nodes_trueleafs", yes_leaves.size(), count);
  require_entries("nodes_falseleafs", no_leaves.size(), count);
  require_entries("nodes_modes", static_cast<std::size_t>(modes.count()), count);
  require_entries("nodes_splits", static_cast<std::size_t>(splits.count()), count);
  require_entries("leaf_weights", static_cast<std::size_t>(weights.count()), leaf_count);
  if (!missing.empty()) require_entries("nodes_missing_value_tracks_true", missing.size(), count);
  if (is_float(modes.element())) operator_error("attribute 'nodes_modes' must have integers");
  const std::vector<std::vector<double>> sets = sets_of(attributes);
  const auto child = [&](std::int64_t number, bool is_leaf) {
    const std::size_t least = is_leaf ? leaf_count : count;
    if (number < 0 || static_cast<std::size_t>(number) >= least) {
      operator_error(fmt::format("there is no {} {}", is_leaf ? "leaf" : "node", number));
    }
    return static_cast<int>(number) + static_cast<int>(is_leaf ? count : 0);
  };
  std::size_t set = 0;
  for (std::size_t i = 0; i < count; ++i) {
    TreeNode& node = forest.nodes.emplace_back();
    const std::int64_t mode = modes.int_at(static_cast<std::int64_t>(i));
    if (mode < 0 || mode >= kModes)
      operator_error(fmt::format("attribute 'nodes_modes' has the entry {}", mode));
    node.mode = static_cast<BranchMode>(mode);
    node.feature = features[i];
    node.value = splits.real_at(static_cast<std::int64_t>(i));
    node.nan_is_yes = !missing.empty() && missing[i] != 0;
    node.yes = child(yes[i], yes_leaves[i] != 0);
    node.no = child(no[i], no_leaves[i] != 0);
    if (node.mode != BranchMode::kMember) continue;
    if (set >= sets.size()) operator_error("attribute 'membership_values' has too few sets");
    node.members = sets[set++];
  }
  if (set != sets.size()) operator_error("attribute 'membership_values' has more sets than nodes ask for");
  for (std::size_t i = 0; i < leaf_count; ++i) {
    TreeNode& node = forest.nodes.emplace_back();
    node.is_leaf = true;
    node.weights.emplace_back(targets[i], weights.real_at(static_cast<std::int64_t>(i)));
  }
  for (const std::int64_t root : attributes.ints_of("tree_roots")) forest.roots.push_back(child(root, false));
  return forest;
}

}  // namespace gcompile::ir
