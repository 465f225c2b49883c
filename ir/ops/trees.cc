// gcompile.Trees: what decision trees give rows of numbers, from tables (ir/ops/tree_tables.h).

#include <algorithm>
#include <bit>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "ir/forms/rounding.h"
#include "ir/ops/support.h"
#include "ir/ops/tree_tables.h"

namespace gcompile::ir {
namespace {

constexpr int kX = 0, kTable = 1, kValues = 2;

void infer(InferContext& context) {
  const Shape &x = context.shape(kX), &table = context.shape(kTable), &values = context.shape(kValues);
  if (x.size() != 2 || table.size() != 2 || values.size() != 2 || !context.constant(kTable) ||
      table[1] != TreeRows::kColumns || context.element(kX) != context.element(kValues)) {
    operator_error("the tables of the trees do not fit");
  }
  context.set_result(0, context.element(kX), {x[0], context.attributes().int_of("groups"), values[1]});
}

TreeCombine combine_of(const NodeView& node) {
  const std::string& name = node.attributes().string_of("combine");
  return name == "min" ? TreeCombine::kMin : name == "max" ? TreeCombine::kMax : TreeCombine::kSum;
}

/// One row after the other, tree by tree, as the table says.
class Evaluation {
 public:
  Evaluation(const EvaluateContext& context)
      : combine_(combine_of(context)),
        trees_(context.attributes().int_of("trees")),
        groups_(context.attributes().int_of("groups")),
        table_(context.value(kTable)->ints()),
        x_(*context.value(kX)),
        values_(*context.value(kValues)),
        columns_(x_.shape()[1]),
        width_(values_.shape()[1]),
        y_(context.result(0)) {}

  Tensor run() {
    const std::int64_t rows = x_.shape()[0], of_group = trees_ / groups_;
    for (std::int64_t row = 0; row < rows; ++row) {
      poll_interrupt();
      for (std::int64_t group = 0; group < groups_; ++group) {
        std::vector<double> sums(static_cast<std::size_t>(width_), 0);
        for (std::int64_t i = 0; i < of_group; ++i) add(leaf_of(row, group * of_group + i), i == 0, sums);
        for (std::int64_t v = 0; v < width_; ++v) {
          const double sum = sums[static_cast<std::size_t>(v)];
          y_.set((row * groups_ + group) * width_ + v, Scalar::of_real(y_.element(), sum));
        }
      }
    }
    return y_;
  }

 private:
  std::int64_t cell(std::int64_t row, int column) const {
    return table_[static_cast<std::size_t>(row * TreeRows::kColumns + column)];
  }

  std::int64_t leaf_of(std::int64_t row, std::int64_t tree) const {
    const std::int64_t first = trees_ + cell(tree, TreeRows::kFirstNode),
                       inner = cell(tree, TreeRows::kInner);
    std::int64_t at = 0;
    while (at < inner) {
      const double x = x_.real_at(row * columns_ + cell(first + at, TreeRows::kFeature));
      const bool stays = x <= std::bit_cast<double>(cell(first + at, TreeRows::kThreshold));
      at = cell(first + at, stays ? TreeRows::kFirst : TreeRows::kSecond);
    }
    return cell(tree, TreeRows::kFirstLeaf) + at - inner;
  }

  void add(std::int64_t leaf, bool is_first, std::vector<double>& sums) const {
    Rounding* const rounding = Rounding::in_force();
    for (std::int64_t v = 0; v < width_; ++v) {
      double& sum = sums[static_cast<std::size_t>(v)];
      const double value = values_.real_at(leaf * width_ + v);
      if (is_first) {
        sum = value;
      } else if (combine_ == TreeCombine::kSum) {
        sum += value;
        if (rounding) sum = rounding->inside_unless_exact(sum, y_.element(), 1);
      } else {
        sum = combine_ == TreeCombine::kMin ? std::min(sum, value) : std::max(sum, value);
      }
    }
  }

  TreeCombine combine_;
  std::int64_t trees_, groups_;
  std::vector<std::int64_t> table_;
  const Tensor& x_;
  const Tensor& values_;
  std::int64_t columns_, width_;
  Tensor y_;
};

std::vector<Tensor> evaluate(const EvaluateContext& context) { return {Evaluation(context).run()}; }

Form lower(const LowerContext& context) {
  const Tensor* table = context.constant(kTable);
  GC_CHECK(table != nullptr);
  TreesWork work;
  work.trees = context.attributes().int_of("trees");
  work.groups = context.attributes().int_of("groups");
  work.combine = combine_of(context);
  const std::int64_t leaves = context.shape(kValues)[0].constant();
  for (std::int64_t tree = 0; tree < work.trees; ++tree) {
    const std::int64_t row = tree * TreeRows::kColumns;
    const std::int64_t inner = table->int_at(row + TreeRows::kInner);
    const std::int64_t first_leaf = table->int_at(row + TreeRows::kFirstLeaf);
    const std::int64_t end =
        tree + 1 < work.trees ? table->int_at(row + TreeRows::kColumns + TreeRows::kFirstLeaf) : leaves;
    work.nodes += inner;
    work.levels += table->int_at(row + TreeRows::kDepth);
    work.most_leaves = std::max(work.most_leaves, end - first_leaf);
    work.most_nodes = std::max(work.most_nodes, inner + end - first_leaf);
  }
  return LibraryForm{work};
}

}  // namespace

const Operator& operator_Trees() {
  static const Operator op = {
      .name = "Trees",
      .domain = "gcompile",
      .versions = {1},
      .operands = {3, 3},
      .attributes = {{"trees", AttributeKind::kInt, std::nullopt, true},
                     {"groups", AttributeKind::kInt, std::nullopt, true},
                     {"combine", AttributeKind::kString, std::string("sum")}},
      .accuracy = Accuracy::kSum,
      .summary = "sum, least or largest of what the leaves of decision trees hold",
      .traits = {.decides = true},
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
