#include "ir/plain_loops.h"

#include <limits>

#include "ir/diagnostics.h"

namespace gcompile::ir {
namespace {

/// Builds the form; axes 0 to rank - 1 are those of the results.
class Builder {
 public:
  Builder(const Problem& problem, const LoopForm& epilogue)
      : problem_(problem), form_(epilogue), rank_(static_cast<int>(epilogue.extents.size())) {
    GC_CHECK(epilogue.is_map());
    form_.parallel = rank_;
  }

  LoopForm operator()(const ConvWork& work) {
    const std::int64_t group_outputs = problem_.shape(1)[0] / work.groups;
    const int channel = reduce(problem_.shape(1)[1]);
    const std::vector<int> taps = reduce(work.window);
    std::vector<Index> x = {Index::axis(0),
                            group_channel(floor_div(Index::axis(1), group_outputs, ranges()), channel)};
    std::vector<Index> w = {Index::axis(1), Index::axis(channel)};
    int inside = -1;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const Index at = window_position(work.window, i, taps[i]);
      x.push_back(clamped(at, problem_.shape(0)[i + 2], inside));
      w.push_back(Index::axis(taps[i]));
    }
    return sum_of_products(std::move(x), std::move(w), inside, Index::axis(1));
  }

  LoopForm operator()(const ConvTransposeWork& work) {
    const Shape& weights = problem_.shape(1);
    const int channel = reduce(weights[0] / work.groups);
    const std::vector<int> taps = reduce(work.window);
    const Index group = floor_div(Index::axis(1), weights[1], ranges());
    const Index from = group_channel(group, channel);
    std::vector<Index> x = {Index::axis(0), from};
    std::vector<Index> w = {from, modulo(Index::axis(1), weights[1], ranges())};
    int inside = -1;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      // y[i * stride + k * dilation - pad] += x[i] * w[k]
      const std::int64_t stride = work.window.strides[i];
      const Index reached = Index::axis(static_cast<int>(i) + 2) +
                            Index(work.window.begin(static_cast<int>(i))) -
                            Index::axis(taps[i]) * work.window.dilations[i];
      if (stride > 1) require(inside, equal(dag().iota(modulo(reached, stride, ranges())), 0));
      x.push_back(clamped(floor_div(reached, stride, ranges()), problem_.shape(0)[i + 2], inside));
      w.push_back(Index::axis(taps[i]));
    }
    return sum_of_products(std::move(x), std::move(w), inside, Index::axis(1));
  }

  LoopForm operator()(const ProductWork&) {
    const int depth = reduce(problem_.shape(0).back());
    return sum_of_products(factor(0, rank_ - 2, depth), factor(1, depth, rank_ - 1), -1,
                           Index::axis(rank_ - 1));
  }

  LoopForm operator()(const PoolWork& work) {
    const std::vector<int> taps = reduce(work.window);
    std::vector<Index> x = {Index::axis(0), Index::axis(1)};
    int inside = -1, counts = -1;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const Index at = window_position(work.window, i, taps[i]);
      const std::int64_t extent = problem_.shape(0)[i + 2];
      x.push_back(clamped(at, extent, inside));
      // What ceil_mode reaches beyond the padding never counts.
      if (range_of(at, ranges()).high > extent + work.window.end(static_cast<int>(i))) {
        require(counts, less(dag().iota(at), extent + work.window.end(static_cast<int>(i))));
      }
    }
    const ElementType element = problem_.operands[0].element;
    const int value = dag().cast(dag().load(0, element, std::move(x)), problem_.accumulator);
    if (work.is_max) {
      form_.stages = {{Combine::kMax, where(inside, value, lowest())}};
      return std::move(form_);
    }
    if (!work.count_include_pad) counts = inside;
    const int zero = dag().constant(problem_.accumulator, 0), one = dag().constant(problem_.accumulator, 1);
    form_.stages = {{Combine::kSum, where(inside, value, zero)}, {Combine::kSum, where(counts, one, zero)}};
    divide_by_count();
    return std::move(form_);
  }

  template <class T>
  LoopForm operator()(const T&) {
    GC_CHECK(false);  // has no plain loops
  }

 private:
  Dag& dag() { return form_.dag; }
  std::vector<Range> ranges() const { return full_ranges(form_.extents); }

  int reduce(std::int64_t extent) {
    form_.extents.push_back(extent);
    return static_cast<int>(form_.extents.size()) - 1;
  }
  std::vector<int> reduce(const Window& window) {
    std::vector<int> axes;
    for (const std::int64_t k : window.kernel) axes.push_back(reduce(k));
    return axes;
  }

  /// Input channel of a group.
  Index group_channel(const Index& group, int channel) const {
    return group * form_.extents[static_cast<std::size_t>(channel)] + Index::axis(channel);
  }
  static Index window_position(const Window& window, std::size_t i, int tap) {
    return Index::axis(static_cast<int>(i) + 2) * window.strides[i] + Index::axis(tap) * window.dilations[i] -
           Index(window.begin(static_cast<int>(i)));
  }

  int equal(int scalar, std::int64_t value) {
    return dag().apply(ScalarOp::kEqual,
                       {scalar, dag().constant(ElementType::kInt64, static_cast<double>(value))});
  }
  int less(int scalar, std::int64_t bound) {
    return dag().apply(ScalarOp::kLess,
                       {scalar, dag().constant(ElementType::kInt64, static_cast<double>(bound))});
  }
  void require(int& all, int condition) {
    all = all < 0 ? condition : dag().apply(ScalarOp::kLogicalAnd, {all, condition});
  }
  int where(int condition, int value, int other) {
    return condition < 0 ? value : dag().apply(ScalarOp::kSelect, {condition, value, other});
  }
  int lowest() {
    const ElementType type = problem_.accumulator;
    return is_float(type)
               ? dag().constant(type, -std::numeric_limits<double>::infinity())
               : dag().constant(Scalar::of_integer(type, integer_lowest(problem_.operands[0].element)));
  }

  /// The index itself when it is always in [0, extent); else one that is, and `inside` learns when it is the
  /// same.
  Index clamped(const Index& at, std::int64_t extent, int& inside) {
    const Range range = range_of(at, ranges());
    if (range.low >= 0 && range.high <= extent) return at;
    const int zero = dag().constant(ElementType::kInt64, 0);
    const int last = dag().constant(ElementType::kInt64, static_cast<double>(extent - 1));
    const int position = dag().iota(at);
    if (range.low < 0) require(inside, dag().apply(ScalarOp::kGreaterEqual, {position, zero}));
    if (range.high > extent) require(inside, less(position, extent));
    const int safe = dag().apply(ScalarOp::kMax, {dag().apply(ScalarOp::kMin, {position, last}), zero});
    return Index::loaded(safe, Range{0, extent});
  }

  /// Operand of a product at (batch..., row, column).
  std::vector<Index> factor(std::size_t operand, int row, int column) const {
    const Shape& shape = problem_.shape(operand);
    const std::size_t lead = static_cast<std::size_t>(rank_) - shape.size();
    std::vector<Index> index;
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) {
      index.push_back(shape[axis] == 1 ? Index(0) : Index::axis(static_cast<int>(axis + lead)));
    }
    index.push_back(Index::axis(row));
    index.push_back(Index::axis(column));
    return index;
  }

  /// Operand i of an integer product, less its zero point; `column` counts the weights' columns.
  int value_of(std::size_t i, std::vector<Index> index, const Index& column) {
    const ElementType type = problem_.accumulator;
    const int value =
        dag().cast(dag().load(static_cast<int>(i), problem_.operands[i].element, std::move(index)), type);
    const std::size_t zero = i + 2;
    if (is_float(type) || zero >= problem_.operands.size() || !problem_.operands[zero].present) return value;
    const ProblemOperand& operand = problem_.operands[zero];
    std::vector<Index> at(operand.shape.size(), Index(0));
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      if (operand.shape[axis] > 1) at[axis] = column;
    }
    const int subtracted =
        dag().cast(dag().load(static_cast<int>(zero), operand.element, std::move(at)), type);
    return dag().apply(ScalarOp::kSub, {value, subtracted});
  }

  LoopForm sum_of_products(std::vector<Index> x, std::vector<Index> w, int inside, const Index& column) {
    const int left = value_of(0, std::move(x), column);
    const int product = dag().apply(ScalarOp::kMul, {left, value_of(1, std::move(w), column)});
    form_.stages = {{Combine::kSum, where(inside, product, dag().constant(problem_.accumulator, 0))}};
    return std::move(form_);
  }

  /// The epilogue reads sum / count where it read the sum; windows in the padding alone have the mean 0.
  void divide_by_count() {
    const Dag before = dag();
    std::vector<Index> axes;
    for (int axis = 0; axis < rank_; ++axis) axes.push_back(Index::axis(axis));
    const std::vector<Range> all = ranges();
    const ElementType type = problem_.accumulator;
    for (Region& region : form_.regions) {
      region.root = dag().import(before, region.root, axes, all, [&](const ScalarNode& node) {
        if (node.op == ScalarOp::kLoad) return dag().load(node.operand, node.type, node.index);
        const int sum = dag().accumulator(0, type), count = dag().accumulator(1, type);
        const int none = dag().apply(ScalarOp::kEqual, {count, dag().constant(type, 0)});
        const int mean =
            dag().apply(ScalarOp::kDiv, {sum, dag().apply(ScalarOp::kMax, {count, dag().constant(type, 1)})});
        return dag().apply(ScalarOp::kSelect, {none, dag().constant(type, 0), mean});
      });
    }
  }

  const Problem& problem_;
  LoopForm form_;
  int rank_;
};

}  // namespace

LoopForm plain_loops(const Problem& problem, const LoopForm& epilogue) {
  return std::visit(Builder(problem, epilogue), problem.work);
}

}  // namespace gcompile::ir
