// Resample (internal): reads each axis at floor((multiplier * i + offset) / divisor), or at the positions of
// a constant table with the weights of another. A size of -1 is that of the operand, divisor times. Operands:
// x, then (positions, weights or none) per table axis, each of shape (rows, taps).

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  require_computable(context, 0);
  const auto& sizes = context.attributes().ints_of("sizes");
  const auto& axes = context.attributes().ints_of("table_axes");
  const std::size_t rank = context.shape(0).size();
  if (sizes.size() != rank || context.attributes().ints_of("multipliers").size() != rank ||
      context.attributes().ints_of("offsets").size() != rank ||
      context.attributes().ints_of("divisors").size() != rank) {
    operator_error("the attributes must have one entry per axis");
  }
  if (context.operand_count() != 1 + 2 * static_cast<int>(axes.size())) {
    operator_error("two operands per table axis are expected");
  }
  for (int k = 0; k < static_cast<int>(axes.size()); ++k) {
    const Shape& positions = context.shape(1 + 2 * k);
    const std::int64_t axis = axes[static_cast<std::size_t>(k)];
    if (positions.size() != 2 || positions[0] != sizes[static_cast<std::size_t>(axis)]) {
      operator_error("a table must have the shape (rows, taps)");
    }
    if (context.has_operand(2 + 2 * k) ? context.shape(2 + 2 * k) != positions : positions[1] != 1) {
      operator_error("a table of positions needs weights of its shape");
    }
  }
  Shape out = shape_of(sizes);
  for (std::size_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0) out[i] = context.shape(0)[i] * context.attributes().ints_of("divisors")[i];
  }
  context.set_result(0, context.element(0), std::move(out));
}

/// Nested sums over the taps of the table axes, outermost first.
class Sampler {
 public:
  Sampler(const LowerContext& context, LoopForm& form)
      : context_(context), dag_(form.dag), axes_(context.attributes().ints_of("table_axes")) {
    const auto& multipliers = context.attributes().ints_of("multipliers");
    const auto& offsets = context.attributes().ints_of("offsets");
    const auto& divisors = context.attributes().ints_of("divisors");
    const std::vector<Range> ranges = form.ranges();
    for (std::size_t i = 0; i < multipliers.size(); ++i) {
      const Index scaled = Index::axis(static_cast<int>(i)) * multipliers[i] + Index(offsets[i]);
      index_.push_back(floor_div(scaled, divisors[i], ranges));
    }
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      weighted_ = weighted_ || context.has_operand(2 + 2 * static_cast<int>(k));
    }
  }

  int sum(std::size_t k) {
    if (k == axes_.size()) return element();
    const auto axis = static_cast<std::size_t>(axes_[k]);
    const int positions = 1 + 2 * static_cast<int>(k);
    const std::int64_t taps = context_.shape(positions)[1];
    int total = -1;
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::vector<Index> entry = {Index::axis(static_cast<int>(axis)), Index(t)};
      const int position = dag_.load(positions, ElementType::kInt64, entry);
      index_[axis] = Index::loaded(position, Range{0, context_.shape(0)[axis]});
      int term = sum(k + 1);
      if (context_.has_operand(positions + 1)) {
        const int weight =
            dag_.cast(dag_.load(positions + 1, context_.element(positions + 1), entry), dag_.type(term));
        term = dag_.apply(ScalarOp::kMul, {weight, term});
      }
      total = total < 0 ? term : dag_.apply(ScalarOp::kAdd, {total, term});
    }
    return total;
  }

 private:
  /// Weighted sums of integers are computed in float32; elements only moved keep their type.
  int element() {
    const ElementType type = context_.element(0);
    const int x = dag_.load(0, type, index_);
    if (!weighted_) return x;
    return dag_.cast(x, is_float(type) ? compute_type(type) : ElementType::kFloat32);
  }

  const LowerContext& context_;
  Dag& dag_;
  const std::vector<std::int64_t>& axes_;
  std::vector<Index> index_;
  bool weighted_ = false;
};

Form lower(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  const int root = Sampler(context, form).sum(0);
  form.set_root(form.dag.cast(root, context.result(0).element));
  return form;
}

}  // namespace

const Operator& operator_Resample() {
  static const Operator op = [] {
    Operator o;
    o.name = "Resample";
    o.domain = "gcompile";
    o.versions = {1};
    o.operands = {1, -1};
    o.attributes = {{"sizes", AttributeKind::kInts, std::nullopt, true},
                    {"multipliers", AttributeKind::kInts, std::nullopt, true},
                    {"offsets", AttributeKind::kInts, std::nullopt, true},
                    {"divisors", AttributeKind::kInts, std::nullopt, true},
                    {"table_axes", AttributeKind::kInts, std::nullopt, true}};
    o.accuracy = Accuracy::kSum;
    o.summary = "reads every axis at computed or tabulated positions";
    o.infer = infer;
    o.lower = lower;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
