// Det: determinants of the matrices in the last two axes, by Laplace's expansion along the columns: each minor
// is computed once. Its work doubles with each row, so that it serves small matrices, which are what models have.

#include <fmt/format.h>

#include <map>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr int kMostRows = 8;

int rows_of(const NodeView& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 2 || x[x.size() - 1] != x[x.size() - 2]) {
    operator_error(fmt::format("the last two axes must be a square matrix, the shape is {}", to_string(x)));
  }
  if (!x.back().is_constant()) {
    operator_error("the number of rows must be known at compile time", "give it a size by --dim or --shape");
  }
  const std::int64_t rows = x.back();
  if (rows > kMostRows) {
    operator_error(fmt::format("matrices of {} rows are not supported, {} are the most", rows, kMostRows));
  }
  return static_cast<int>(rows);
}

void infer(InferContext& context) {
  require_float(context, 0);
  rows_of(context);
  const Shape& x = context.shape(0);
  context.set_result(0, context.element(0), Shape(x.begin(), x.end() - 2));
}

/// Determinants of the rows of a set and the last columns, as many as it has rows.
class Minors {
 public:
  Minors(Dag& dag, ElementType stored, const std::vector<Index>& matrix, int rows)
      : dag_(dag), stored_(stored), compute_(compute_type(stored)), matrix_(matrix), rows_(rows) {}

  int of(unsigned set) {
    if (const auto at = known_.find(set); at != known_.end()) return at->second;
    const int column = rows_ - __builtin_popcount(set);
    int sum = -1;
    bool is_minus = false;
    for (int row = 0; row < rows_; ++row) {
      if ((set >> row & 1) == 0) continue;
      int term = element(row, column);
      const unsigned rest = set & ~(1u << row);
      if (rest != 0) {
        const int minor = of(rest);
        term = dag_.apply(ScalarOp::kMul, {term, minor});
      }
      sum = sum < 0 ? term : dag_.apply(is_minus ? ScalarOp::kSub : ScalarOp::kAdd, {sum, term});
      is_minus = !is_minus;
    }
    known_.emplace(set, sum);
    return sum;
  }

 private:
  int element(int row, int column) {
    std::vector<Index> at = matrix_;
    at.push_back(Index(row));
    at.push_back(Index(column));
    return dag_.cast(dag_.load(0, stored_, std::move(at)), compute_);
  }

  Dag& dag_;
  const ElementType stored_, compute_;
  const std::vector<Index> matrix_;
  const int rows_;
  std::map<unsigned, int> known_;
};

Form lower(const LowerContext& context) {
  const TensorType& type = context.result(0);
  const int rows = rows_of(context);
  LoopForm form = LoopForm::over(type.shape);
  if (rows == 0) {  // the product of nothing
    form.set_root(form.dag.constant(type.element, 1));
    return form;
  }
  const int value = Minors(form.dag, type.element, form.identity(), rows).of((1u << rows) - 1);
  form.set_root(form.dag.cast(value, type.element));
  return form;
}

}  // namespace

const Operator& operator_Det() {
  static const Operator op = {
      .name = "Det",
      .versions = {11, 22},
      .accuracy = Accuracy::kSum,
      .summary = "determinants of matrices of at most 8 rows",
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
