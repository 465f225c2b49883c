// Resample (internal): reads each axis at floor((multiplier * i + offset) / divisor), or at the positions of
// a constant table with the weights of another. Operands: x, then for each table axis positions of shape
// (rows, taps), and weights of that shape where there are several taps.
//
// A size of -1 is that of the operand, divisor / multiplier times, which only a run knows. Its table has
// `divisor` rows: i reads multiplier * floor(i / divisor) further than row i mod divisor says, at most to the
// ends of the axis.

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// Operands of one table axis.
struct Table {
  std::size_t axis;
  int positions;
  bool has_weights;  // behind the positions
};

std::vector<Table> tables_of(const NodeView& node) {
  std::vector<Table> tables;
  int next = 1;
  for (const std::int64_t axis : node.attributes().ints_of("table_axes")) {
    if (next >= node.operand_count() || node.shape(next).size() != 2) {
      operator_error("a table must have the shape (rows, taps)");
    }
    const Table& table =
        tables.emplace_back(Table{static_cast<std::size_t>(axis), next, node.shape(next)[1] != 1});
    if (table.has_weights && (next + 1 >= node.operand_count() || node.shape(next + 1) != node.shape(next))) {
      operator_error("a table of positions needs weights of its shape");
    }
    next += table.has_weights ? 2 : 1;
  }
  if (next != node.operand_count()) operator_error("every operand must belong to a table axis");
  return tables;
}

void infer(InferContext& context) {
  require_computable(context, 0);
  const auto& sizes = context.attributes().ints_of("sizes");
  const std::size_t rank = context.shape(0).size();
  if (sizes.size() != rank || context.attributes().ints_of("multipliers").size() != rank ||
      context.attributes().ints_of("offsets").size() != rank ||
      context.attributes().ints_of("divisors").size() != rank) {
    operator_error("the attributes must have one entry per axis");
  }
  for (const Table& table : tables_of(context)) {
    const std::int64_t size = sizes[table.axis];
    const std::int64_t rows = size < 0 ? context.attributes().ints_of("divisors")[table.axis] : size;
    if (context.shape(table.positions)[0] != rows) operator_error("a table must have a row for each element");
  }
  Shape out = shape_of(sizes);
  for (std::size_t i = 0; i < rank; ++i) {
    if (sizes[i] >= 0) continue;
    out[i] = floor_div(context.shape(0)[i] * context.attributes().ints_of("divisors")[i],
                       context.attributes().ints_of("multipliers")[i]);
  }
  context.set_result(0, context.element(0), std::move(out));
}

/// Nested sums over the taps of the table axes, outermost first.
class Sampler {
 public:
  Sampler(const LowerContext& context, LoopForm& form)
      : context_(context), dag_(form.dag), tables_(tables_of(context)), ranges_(form.ranges()) {
    const auto& multipliers = context.attributes().ints_of("multipliers");
    const auto& offsets = context.attributes().ints_of("offsets");
    const auto& divisors = context.attributes().ints_of("divisors");
    for (std::size_t i = 0; i < multipliers.size(); ++i) {
      const Index scaled = Index::axis(static_cast<int>(i)) * multipliers[i] + Index(offsets[i]);
      index_.push_back(floor_div(scaled, divisors[i], ranges_));
    }
    for (const Table& table : tables_) weighted_ = weighted_ || table.has_weights;
  }

  /// The part of the last open axis that reads within it whatever the phase; nullopt: there is none, or no
  /// such part at some size.
  std::optional<std::pair<std::size_t, Range>> inner_part() const {
    const auto table = std::find_if(tables_.rbegin(), tables_.rend(), [&](const Table& candidate) {
      return context_.attributes().ints_of("sizes")[candidate.axis] < 0;
    });
    if (table == tables_.rend()) return std::nullopt;
    const std::int64_t step = context_.attributes().ints_of("multipliers")[table->axis],
                       period = context_.attributes().ints_of("divisors")[table->axis];
    const Range taps = range_of(*table);
    const Dim out = context_.result(0).shape[table->axis];
    const Dim low = ceil_div(max(-taps.low, 0), step) * period;
    const Dim high = (floor_div(context_.shape(0)[table->axis] - taps.high, step) + 1) * period;
    if (!always_less_equal(low, high) || !always_less_equal(high, out)) return std::nullopt;
    return std::pair(table->axis, Range{low, high});
  }
  /// Where that is, its positions are not held to the axis, so that they walk with it.
  int inner_sum(std::size_t axis) {
    inner_axis_ = axis;
    const int root = sum(0);
    inner_axis_.reset();
    return root;
  }

  int sum(std::size_t k) {
    if (k == tables_.size()) return element();
    const auto& [axis, positions, has_weights] = tables_[k];
    const std::int64_t taps = context_.shape(positions)[1];
    int total = -1;
    const bool is_open = context_.attributes().ints_of("sizes")[axis] < 0;
    const Index at = Index::axis(static_cast<int>(axis));
    const Dim period = context_.attributes().ints_of("divisors")[axis];
    const Index row = is_open ? modulo(at, period, ranges_) : at;
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::vector<Index> entry = {row, Index(t)};
      int position = dag_.load(positions, ElementType::kInt64, entry);
      if (is_open && axis == inner_axis_) {
        index_[axis] = repeats(axis) + Index::loaded(position, range_of(tables_[k]));
      } else {
        if (is_open) position = within(axis, position);
        index_[axis] = Index::loaded(position, Range{0, context_.shape(0)[axis]});
      }
      int term = sum(k + 1);
      if (has_weights) {
        const int loaded = dag_.load(positions + 1, context_.element(positions + 1), entry);
        const int weight = dag_.cast(loaded, dag_.type(term));
        term = dag_.apply(ScalarOp::kMul, {weight, term});
      }
      total = total < 0 ? term : dag_.apply(ScalarOp::kAdd, {total, term});
    }
    return total;
  }

 private:
  /// How much further than the first phases those of an open axis read.
  Index repeats(std::size_t axis) const {
    return floor_div(Index::axis(static_cast<int>(axis)), context_.attributes().ints_of("divisors")[axis],
                     ranges_) *
           context_.attributes().ints_of("multipliers")[axis];
  }
  Range range_of(const Table& table) const {
    const std::vector<std::int64_t> positions = context_.constant(table.positions)->ints();
    const auto [low, high] = std::minmax_element(positions.begin(), positions.end());
    return {*low, *high + 1};
  }

  /// Position of a phase on the axis.
  int within(std::size_t axis, int phase) {
    const int further = dag_.iota(repeats(axis));
    const int position = dag_.apply(ScalarOp::kAdd, {further, phase});
    const int zero = dag_.size(0), last = dag_.size(context_.shape(0)[axis] - 1);
    return dag_.apply(ScalarOp::kMin, {dag_.apply(ScalarOp::kMax, {position, zero}), last});
  }

  /// Weighted sums of integers are computed in float32; elements only moved keep their type.
  int element() {
    const ElementType type = context_.element(0);
    const int x = dag_.load(0, type, index_);
    if (!weighted_) return x;
    return dag_.cast(x, is_float(type) ? compute_type(type) : ElementType::kFloat32);
  }

  const LowerContext& context_;
  Dag& dag_;
  const std::vector<Table> tables_;
  const std::vector<Range> ranges_;
  std::optional<std::size_t> inner_axis_;
  std::vector<Index> index_;
  bool weighted_ = false;
};

Form lower(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  Sampler sampler(context, form);
  const ElementType element = context.result(0).element;
  const int root = form.dag.cast(sampler.sum(0), element);
  const auto inner = sampler.inner_part();
  if (!inner) {
    form.set_root(root);
    return form;
  }
  const std::size_t axis = inner->first;
  const Range part = inner->second;
  const auto add = [&](const Range& range, int value) {
    Region region{form.ranges(), value};
    region.box[axis] = range;
    if (range.low != range.high) form.regions.push_back(std::move(region));
  };
  add({0, part.low}, root);
  add(part, form.dag.cast(sampler.inner_sum(axis), element));
  add({part.high, form.extents[axis]}, root);
  return form;
}

}  // namespace

const Operator& operator_Resample() {
  static const Operator op = {
      .name = "Resample",
      .domain = "gcompile",
      .versions = {1},
      .operands = {1, -1},
      .attributes = {{"sizes", AttributeKind::kInts, std::nullopt, true},
                     {"multipliers", AttributeKind::kInts, std::nullopt, true},
                     {"offsets", AttributeKind::kInts, std::nullopt, true},
                     {"divisors", AttributeKind::kInts, std::nullopt, true},
                     {"table_axes", AttributeKind::kInts, std::nullopt, true}},
      .accuracy = Accuracy::kSum,
      .summary = "reads every axis at computed or tabulated positions",
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
