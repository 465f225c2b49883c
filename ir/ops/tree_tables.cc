// Trees as tables. Every decision becomes !(column <= threshold), which NaN meets too: where NaN has to fail it, the
// column has -infinity instead; whether a number is one of a set is a column of its own, 0 or 1.

#include "ir/ops/tree_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/interrupt.h"

namespace gcompile::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kDeepest = 1024;               // levels of a tree
constexpr std::size_t kMostNodes = 1 << 23;  // of all trees, those that share them counted again
constexpr std::size_t kMostMembers = 1 << 22;
constexpr std::size_t kMostWeights = 1 << 26;

/// The largest number of the type that is at most `value`, or below it.
double rounded_down(double value, ElementType type, bool is_below) {
  if (type == ElementType::kFloat64) return is_below ? std::nextafter(value, -kInfinity) : value;
  auto nearest = static_cast<float>(value);
  const auto wide = static_cast<double>(nearest);
  if (wide > value || (is_below && wide == value)) {
    nearest = std::nextafter(nearest, -std::numeric_limits<float>::infinity());
  }
  return static_cast<double>(nearest);
}

/// A decision in the one way that tables know: to `first` where column <= threshold.
struct Test {
  enum class Column : std::uint8_t { kAsItIs, kLowNan, kIsMember };
  Column column = Column::kAsItIs;
  double threshold = 0;
  int first = -1, second = -1;
};

bool is_of_members(BranchMode mode) {
  return mode == BranchMode::kEqual || mode == BranchMode::kNotEqual || mode == BranchMode::kMember;
}

Test test_of(const TreeNode& node, ElementType type) {
  if (is_of_members(node.mode)) {
    const bool turned = node.mode == BranchMode::kNotEqual;
    return {Test::Column::kIsMember, 0.5, turned ? node.yes : node.no, turned ? node.no : node.yes};
  }
  BranchMode mode = node.mode;
  double value = node.value;
  // What holds for no number, or for all of them.
  if (std::isnan(value) || (mode == BranchMode::kBelow && value == -kInfinity)) {
    mode = BranchMode::kAbove;
    value = kInfinity;
  } else if (mode == BranchMode::kAtLeast && value == -kInfinity) {
    mode = BranchMode::kAtMost;
    value = kInfinity;
  }
  const bool yes_is_low = mode == BranchMode::kAtMost || mode == BranchMode::kBelow;
  const bool is_below = mode == BranchMode::kBelow || mode == BranchMode::kAtLeast;
  Test test;
  test.threshold = rounded_down(value, type, is_below);
  test.first = yes_is_low ? node.yes : node.no;
  test.second = yes_is_low ? node.no : node.yes;
  // NaN goes to the second one unless its column is low.
  if (node.nan_is_yes == yes_is_low) test.column = Test::Column::kLowNan;
  return test;
}

/// The nodes that a tree reaches: inner ones in the order of levels, and leaves in that of the ways to them; and the longest
/// way to a leaf.
struct Reached {
  std::vector<int> inner, leaves;
  int depth = 0;
};

/// Nodes in an order in which they stand before their children, and what the first child reaches before what only the
/// second one does; found by depth first search without recursion.
std::vector<int> sorted_from(const Forest& forest, int root, std::vector<char>& state) {
  enum : char { kNew, kOpen, kDone };
  std::vector<int> order, path = {root};
  while (!path.empty()) {
    const int at = path.back();
    const TreeNode& node = forest.nodes[static_cast<std::size_t>(at)];
    char& mine = state[static_cast<std::size_t>(at)];
    if (mine == kNew && !node.is_leaf) {
      mine = kOpen;
      const Test test = test_of(node, ElementType::kFloat64);
      for (const int child : {test.first, test.second}) {
        const char other = state[static_cast<std::size_t>(child)];
        if (other == kOpen) operator_error("the nodes of a tree form a cycle");
        if (other == kNew) path.push_back(child);
      }
      continue;
    }
    path.pop_back();
    if (mine == kDone) continue;
    mine = kDone;
    order.push_back(at);
  }
  for (const int at : order) state[static_cast<std::size_t>(at)] = kNew;
  std::reverse(order.begin(), order.end());
  return order;
}

Reached reach(const Forest& forest, int root, std::vector<char>& state, std::vector<int>& level) {
  Reached reached;
  std::vector<int> order = sorted_from(forest, root, state);
  for (const int at : order) level[static_cast<std::size_t>(at)] = 0;
  for (const int at : order) {
    const TreeNode& node = forest.nodes[static_cast<std::size_t>(at)];
    const int below = level[static_cast<std::size_t>(at)] + 1;
    if (node.is_leaf) continue;
    for (const int child : {node.yes, node.no}) {
      int& of_child = level[static_cast<std::size_t>(child)];
      of_child = std::max(of_child, below);
      reached.depth = std::max(reached.depth, of_child);
    }
  }
  if (reached.depth > kDeepest) operator_error(fmt::format("a tree has more than {} levels", kDeepest));
  for (const int at : order) {
    const bool is_leaf = forest.nodes[static_cast<std::size_t>(at)].is_leaf;
    (is_leaf ? reached.leaves : reached.inner).push_back(at);
  }
  std::stable_sort(reached.inner.begin(), reached.inner.end(), [&](int a, int b) {
    return level[static_cast<std::size_t>(a)] < level[static_cast<std::size_t>(b)];
  });
  return reached;
}

std::vector<Reached> reach_all(const Forest& forest) {
  std::vector<char> state(forest.nodes.size(), 0);
  std::vector<int> level(forest.nodes.size(), 0);
  std::vector<Reached> all;
  std::size_t nodes = 0;
  for (const int root : forest.roots) {
    poll_interrupt();
    all.push_back(reach(forest, root, state, level));
    nodes += all.back().inner.size() + all.back().leaves.size();
    if (nodes > kMostNodes) operator_error(fmt::format("the trees have more than {} nodes", kMostNodes));
  }
  return all;
}

/// The columns that nodes compare: those of x, some of them with -infinity for NaN, and whether a number is in a set.
class Columns {
 public:
  Columns(const Forest& forest, const std::vector<Reached>& trees, std::int64_t count, ElementType type)
      : count_(count) {
    for (const Reached& tree : trees) {
      for (const int at : tree.inner) {
        const TreeNode& node = forest.nodes[static_cast<std::size_t>(at)];
        const Test::Column column = test_of(node, type).column;
        has_plain_ = has_plain_ || column != Test::Column::kLowNan;
        if (column == Test::Column::kLowNan) low_.emplace(node.feature, 0);
        if (column == Test::Column::kIsMember) sets_.emplace(set_of(node), 0);
      }
    }
    if (!has_plain_) return;  // the low ones take the places of all
    std::int64_t next = count_;
    for (auto& [feature, place] : low_) place = next++;
    for (auto& [set, place] : sets_) place = next++;
  }

  std::int64_t of(const TreeNode& node, Test::Column column) const {
    if (column == Test::Column::kIsMember) return sets_.at(set_of(node));
    return column == Test::Column::kAsItIs || !has_plain_ ? node.feature : low_.at(node.feature);
  }

  std::int64_t count() const {
    return has_plain_ ? count_ + static_cast<std::int64_t>(low_.size() + sets_.size()) : count_;
  }

  ValueId emit(RewriteContext& context, ValueId x) const {
    std::vector<ValueId> parts = {x};
    if (!has_plain_ && !low_.empty()) return emit_low(context, x);
    if (!low_.empty()) parts.push_back(emit_low(context, emit_columns(context, x, features_of(low_))));
    if (!sets_.empty()) parts.push_back(emit_members(context, x));
    return parts.size() == 1 ? x : emit_concat(context, parts, 1);
  }

 private:
  /// Feature, whether NaN belongs to the set, and its numbers.
  struct Set {
    std::int64_t feature;
    bool has_nan;
    std::vector<double> members;
    auto operator<=>(const Set&) const = default;
  };

  static Set set_of(const TreeNode& node) {
    Set set{node.feature, node.mode != BranchMode::kNotEqual && node.nan_is_yes, node.members};
    if (node.mode != BranchMode::kMember) set.members = {node.value};
    std::erase_if(set.members, [](double member) { return std::isnan(member); });
    std::sort(set.members.begin(), set.members.end());
    return set;
  }

  static std::vector<std::int64_t> features_of(const std::map<std::int64_t, std::int64_t>& columns) {
    std::vector<std::int64_t> features;
    for (const auto& [feature, place] : columns) features.push_back(feature);
    return features;
  }

  static ValueId emit_columns(RewriteContext& context, ValueId x, const std::vector<std::int64_t>& features) {
    Attributes attributes;
    attributes.set("axis", std::int64_t{1});
    return context.emit("Gather", {x, context.constant_ints(features)}, attributes);
  }

  static ValueId emit_low(RewriteContext& context, ValueId x) {
    const ValueId low = context.constant_scalar(context.type(x).element, -kInfinity);
    const ValueId is_nan = context.emit("IsNaN", {x});
    return context.emit("Where", {is_nan, low, x});
  }

  /// 1 where a number is in a set, else 0: compared with all members of each set, repeated up to those of the largest.
  ValueId emit_members(RewriteContext& context, ValueId x) const {
    const TensorType type = context.type(x);
    std::size_t most = 1;
    for (const auto& [set, place] : sets_) most = std::max(most, set.members.size());
    if (most * sets_.size() > kMostMembers) {
      operator_error(fmt::format("{} sets of up to {} members are too many", sets_.size(), most));
    }
    std::vector<std::int64_t> features;
    const Dim sets = static_cast<std::int64_t>(sets_.size());
    Tensor members(TensorType{type.element, {1, sets, static_cast<std::int64_t>(most)}});
    Tensor has_nan(TensorType{ElementType::kBool, {1, sets}});
    std::int64_t at = 0;
    for (const auto& [set, place] : sets_) {
      has_nan.set(static_cast<std::int64_t>(features.size()),
                  Scalar::of_integer(ElementType::kBool, set.has_nan));
      features.push_back(set.feature);
      for (std::size_t i = 0; i < most; ++i) {
        members.set(at++, Scalar::of_real(type.element, member_at(set, i, type.element)));
      }
    }
    const ValueId columns = emit_columns(context, x, features);
    const ValueId each = emit_reshape(context, columns, {type.shape[0], sets, 1});
    const ValueId same = context.emit("Equal", {each, context.constant(std::move(members))});
    Attributes attributes;
    attributes.set("keepdims", std::int64_t{0});
    const std::vector<std::int64_t> last = {2};
    const ValueId numbers = emit_cast(context, same, type.element);
    const ValueId found = context.emit("ReduceMax", {numbers, context.constant_ints(last)}, attributes);
    const ValueId is_nan = context.emit("IsNaN", {columns});
    const ValueId nan_counts = context.emit("And", {is_nan, context.constant(std::move(has_nan))});
    return context.emit("Max", {found, emit_cast(context, nan_counts, type.element)});
  }

  /// NaN, which equals nothing, where there is none, or none that the type has.
  static double member_at(const Set& set, std::size_t i, ElementType type) {
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    if (set.members.empty()) return nothing;
    const double member = set.members[std::min(i, set.members.size() - 1)];
    return Scalar::of_real(type, member).real == member ? member : nothing;
  }

  std::int64_t count_;
  bool has_plain_ = false;
  std::map<std::int64_t, std::int64_t> low_;  // places of columns, by feature
  std::map<Set, std::int64_t> sets_;
};

/// The one target that a tree gives weights to; nullopt: several, or none.
std::optional<std::int64_t> only_target(const Forest& forest, const Reached& tree) {
  std::optional<std::int64_t> only;
  for (const int leaf : tree.leaves) {
    for (const auto& [target, weight] : forest.nodes[static_cast<std::size_t>(leaf)].weights) {
      if (only && *only != target) return std::nullopt;
      only = target;
    }
  }
  return only;
}

/// Trees in the order of the tables, in groups of equal size, one for each target; or all in one group, each for all
/// targets. -1: a leaf that gives nothing.
struct Groups {
  std::vector<int> trees;
  std::int64_t count = 1;
};

Groups groups_of(const Forest& forest, const std::vector<Reached>& trees) {
  Groups all;
  std::vector<std::vector<int>> of_target(static_cast<std::size_t>(forest.targets));
  bool is_split = forest.targets > 1;
  std::size_t most = 0;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    all.trees.push_back(static_cast<int>(i));
    const auto target = is_split ? only_target(forest, trees[i]) : std::nullopt;
    is_split = is_split && target;
    if (!is_split) continue;
    auto& group = of_target[static_cast<std::size_t>(*target)];
    group.push_back(static_cast<int>(i));
    most = std::max(most, group.size());
  }
  if (!is_split || most * of_target.size() > 2 * trees.size() + of_target.size()) return all;
  Groups split;
  split.count = forest.targets;
  for (std::vector<int>& group : of_target) {
    group.resize(most, -1);
    split.trees.insert(split.trees.end(), group.begin(), group.end());
  }
  return split;
}

class TableMaker {
 public:
  TableMaker(const Forest& forest, const std::vector<Reached>& trees, const Columns& columns,
             ElementType type, double nothing, bool is_grouped)
      : forest_(forest),
        trees_(trees),
        columns_(columns),
        type_(type),
        nothing_(nothing),
        width_(is_grouped ? 1 : forest.targets),
        local_(forest.nodes.size(), -1) {}

  void add(int number) {
    static const Reached kNothing;
    const Reached& tree = number < 0 ? kNothing : trees_[static_cast<std::size_t>(number)];
    const auto count = [](const auto& list, std::int64_t width) {
      return static_cast<std::int64_t>(list.size()) / width;
    };
    tree_rows_.insert(tree_rows_.end(), {count(node_rows_, TreeRows::kColumns), count(tree.inner, 1),
                                         tree.depth, count(values_, width_)});
    std::int64_t next = 0;
    for (const auto* nodes : {&tree.inner, &tree.leaves}) {
      for (const int at : *nodes) local_[static_cast<std::size_t>(at)] = next++;
    }
    for (const int at : tree.inner) {
      const TreeNode& node = forest_.nodes[static_cast<std::size_t>(at)];
      const Test test = test_of(node, type_);
      node_rows_.insert(
          node_rows_.end(),
          {std::bit_cast<std::int64_t>(test.threshold), columns_.of(node, test.column),
           local_[static_cast<std::size_t>(test.first)], local_[static_cast<std::size_t>(test.second)]});
    }
    for (const int at : tree.leaves) add_leaf(forest_.nodes[static_cast<std::size_t>(at)]);
    if (tree.leaves.empty()) add_leaf({});
  }

  ValueId emit(RewriteContext& context, ValueId x, std::int64_t groups, const std::string& combine) {
    const std::int64_t trees = static_cast<std::int64_t>(tree_rows_.size()) / TreeRows::kColumns;
    std::vector<std::int64_t> rows = std::move(tree_rows_);
    rows.insert(rows.end(), node_rows_.begin(), node_rows_.end());
    const std::int64_t count = static_cast<std::int64_t>(rows.size()) / TreeRows::kColumns;
    const ValueId table = context.constant(Tensor::of_ints(rows, {count, TreeRows::kColumns}));
    Tensor values(TensorType{type_, {static_cast<std::int64_t>(values_.size()) / width_, width_}});
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values.set(static_cast<std::int64_t>(i), Scalar::of_real(type_, values_[i]));
    }
    Attributes attributes;
    attributes.set("trees", trees);
    attributes.set("groups", groups);
    attributes.set("combine", combine);
    return context.emit("Trees", {x, table, context.constant(std::move(values))}, attributes);
  }

 private:
  void add_leaf(const TreeNode& leaf) {
    const std::size_t begin = values_.size();
    values_.resize(begin + static_cast<std::size_t>(width_), nothing_);
    for (const auto& [target, weight] : leaf.weights) {
      values_[begin + static_cast<std::size_t>(width_ == 1 ? 0 : target)] = weight;
    }
  }

  const Forest& forest_;
  const std::vector<Reached>& trees_;
  const Columns& columns_;
  ElementType type_;
  double nothing_;
  std::int64_t width_;
  std::vector<std::int64_t> local_;  // number within the tree at hand
  std::vector<std::int64_t> tree_rows_, node_rows_;
  std::vector<double> values_;
};

}  // namespace

void check_forest(const Forest& forest, Dim columns) {
  if (forest.targets < 1 || forest.targets > 1 << 20)
    operator_error(fmt::format("there are {} targets", forest.targets));
  if (forest.roots.empty()) operator_error("there is no tree");
  for (const TreeNode& node : forest.nodes) {
    if (!node.is_leaf && (node.feature < 0 || !always_less(node.feature, columns))) {
      operator_error(fmt::format("a node asks for feature {}, of {}", node.feature, to_string(columns)));
    }
    std::vector<std::int64_t> targets;
    for (const auto& [target, weight] : node.weights) targets.push_back(target);
    std::sort(targets.begin(), targets.end());
    if (std::adjacent_find(targets.begin(), targets.end()) != targets.end()) {
      operator_error(fmt::format("a leaf has two weights of one of {} targets", forest.targets));
    }
    if (!targets.empty() && (targets.front() < 0 || targets.back() >= forest.targets)) {
      operator_error(fmt::format("a leaf has a weight of target {}, of {}",
                                 targets.front() < 0 ? targets.front() : targets.back(), forest.targets));
    }
  }
  std::size_t leaves = 0;
  for (const Reached& tree : reach_all(forest)) leaves += tree.leaves.size() + 1;
  if (leaves * static_cast<std::size_t>(forest.targets) > kMostWeights) {
    operator_error(fmt::format("{} leaves for {} targets are too many", leaves, forest.targets));
  }
}

bool always_scores(const Forest& forest, std::int64_t target) {
  const std::vector<Reached> trees = reach_all(forest);
  return std::any_of(trees.begin(), trees.end(), [&](const Reached& tree) {
    return std::all_of(tree.leaves.begin(), tree.leaves.end(), [&](int leaf) {
      const auto& weights = forest.nodes[static_cast<std::size_t>(leaf)].weights;
      return std::any_of(weights.begin(), weights.end(),
                         [&](const auto& pair) { return pair.first == target; });
    });
  });
}

ValueId emit_forest(RewriteContext& context, ValueId x, const Forest& forest, const std::string& combine) {
  const TensorType type = context.type(x);
  const std::vector<Reached> trees = reach_all(forest);
  const Columns columns(forest, trees, type.shape[1].constant(), type.element);
  const Groups groups = groups_of(forest, trees);
  const double nothing = combine == "min" ? kInfinity : combine == "max" ? -kInfinity : 0;
  TableMaker tables(forest, trees, columns, type.element, nothing, groups.count > 1);
  for (const int tree : groups.trees) tables.add(tree);
  const ValueId sums = tables.emit(context, columns.emit(context, x), groups.count, combine);
  const ValueId result = emit_reshape(context, sums, {type.shape[0], forest.targets});
  if (combine == "sum") return result;
  const ValueId zero = context.constant_scalar(type.element, 0);
  const ValueId none = context.constant_scalar(type.element, nothing);
  return context.emit("Where", {context.emit("Equal", {result, none}), zero, result});
}

}  // namespace gcompile::ir
