#include "ir/graph/plain_loops.h"

#include <limits>

#include "base/diagnostics.h"

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

  LoopForm operator()(const ProductWork& work) {
    const int depth = reduce(problem_.shape(0).back());
    if (work.block > 0) return sum_of_blocks(work.block, depth);
    std::vector<Index> b = factor(1, depth, rank_ - 1), a = factor(0, rank_ - 2, depth);
    return sum_of_products(std::move(a), std::move(b), -1, Index::axis(rank_ - 1));
  }

  LoopForm operator()(const PoolWork& work) {
    const std::vector<int> taps = reduce(work.window);
    std::vector<Index> x = {Index::axis(0), Index::axis(1)};
    int inside = -1, counts = -1;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const Index at = window_position(work.window, i, taps[i]);
      const Dim extent = problem_.shape(0)[i + 2];
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

  /// The sum, or product, of what lies before, or behind.
  LoopForm operator()(const ScanWork& work) {
    const int other = reduce(problem_.shape(0)[work.axis]);
    std::vector<Index> from = result_axes();
    from[work.axis] = Index::axis(other);
    int first = dag().iota(Index::axis(other)), second = dag().iota(Index::axis(work.axis));
    if (work.reverse) std::swap(first, second);
    const int counts = dag().apply(work.exclusive ? ScalarOp::kLess : ScalarOp::kLessEqual, {first, second});
    const Combine combine = work.is_product ? Combine::kProduct : Combine::kSum;
    const int other_element = dag().constant(identity_of(combine, type_of(0)));
    form_.stages = {{combine, where(counts, widened(0, std::move(from)), other_element)}};
    return finished(dag().accumulator(0, type_of(0)));
  }

  /// Every element looks for its updates.
  LoopForm operator()(const ScatterWork& work) {
    const Updates updates = work.by_tuples ? tuples() : lines(work.axis);
    const int data = widened(0, result_axes());
    if (work.combine != ScatterCombine::kReplace) {
      const CombineRow row = row_of(work.combine);
      const int other = dag().constant(identity_of(row.combine, type_of(0)));
      form_.stages = {{row.combine, where(updates.match, widened(2, updates.index), other)}};
      return finished(dag().apply(row.op, {data, dag().accumulator(0, type_of(0))}));
    }
    // The last one counts: of the largest number, from which the axes it was found along follow.
    Index number(0);
    Dim stride = 1;
    for (auto axis = updates.axes.rbegin(); axis != updates.axes.rend(); ++axis) {
      number = number + Index::axis(*axis) * stride;
      stride *= extent(*axis);
    }
    const int none = integer(-1);
    form_.stages = {{Combine::kMax, where(updates.match, dag().iota(number), none)}};
    const int last = dag().accumulator(0, ElementType::kInt64);
    int rest = dag().apply(ScalarOp::kMax, {last, integer(0)});
    std::vector<Index> index = updates.index;
    for (std::size_t i = updates.axes.size(); i-- > 0;) {
      const Dim count = extent(updates.axes[i]);
      const int at = dag().apply(ScalarOp::kMod, {rest, integer(count)});
      index[updates.places[i]] = Index::loaded(at, Range{0, count});
      rest = dag().apply(ScalarOp::kDiv, {rest, integer(count)});
    }
    const int found = dag().apply(ScalarOp::kGreaterEqual, {last, integer(0)});
    return finished(dag().apply(ScalarOp::kSelect, {found, widened(2, std::move(index)), data}));
  }

  template <class T>
  LoopForm operator()(const T&) {
    GC_CHECK(false);  // has no plain loops
  }

  /// Taps come in the order of their positions: the first with the value of the maximum is the smallest.
  LoopForm positions(const Window& window, bool column_major) {
    const ProblemOperand& x = problem_.operands[0];
    const Shape strides = row_major_strides(x.shape);
    const std::vector<int> taps = reduce(window);
    std::vector<Index> from = {Index::axis(0), Index::axis(1)};
    Index position = from[0] * strides[0] + from[1] * strides[1];
    int chosen = -1;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const Index at = window_position(window, i, taps[i]);
      from.push_back(clamped(at, x.shape[i + 2], chosen));
      position = position + at * strides[i + 2];
    }
    const int value = widened(0, std::move(from)), best = widened(1, result_axes());
    int same = dag().apply(ScalarOp::kEqual, {value, best});
    if (is_float(x.element)) {
      const int both = dag().apply(ScalarOp::kLogicalAnd, {dag().apply(ScalarOp::kIsNan, {value}),
                                                           dag().apply(ScalarOp::kIsNan, {best})});
      same = dag().apply(ScalarOp::kLogicalOr, {same, both});
    }
    require(chosen, same);
    const int none = integer(element_count(x.shape));
    form_.stages = {{Combine::kMin, where(chosen, dag().iota(position), none)}};
    const int first = dag().accumulator(0, ElementType::kInt64);
    const int found = dag().apply(ScalarOp::kLess, {first, none});
    const bool is_nothing = element_count(x.shape) == 0;  // then there are no columns to count by
    const int reported = column_major && !is_nothing ? by_columns(first, x.shape) : first;
    form_.set_root(dag().apply(ScalarOp::kSelect, {found, reported, integer(-1)}));
    return std::move(form_);
  }

 private:
  /// What a scatter reduces over to find the updates of one element.
  struct Updates {
    std::vector<int> axes;            // outermost first, in the order of the updates
    std::vector<std::size_t> places;  // of those axes in `index`
    std::vector<Index> index;         // of operand 2
    int match = -1;                   // whether the update goes to the element; -1: always
  };
  struct CombineRow {
    Combine combine;
    ScalarOp op;
  };

  static CombineRow row_of(ScatterCombine combine) {
    switch (combine) {
      case ScatterCombine::kAdd:
        return {Combine::kSum, ScalarOp::kAdd};
      case ScatterCombine::kMul:
        return {Combine::kProduct, ScalarOp::kMul};
      case ScatterCombine::kMax:
        return {Combine::kMax, ScalarOp::kMax};
      case ScatterCombine::kMin:
        return {Combine::kMin, ScalarOp::kMin};
      case ScatterCombine::kReplace:
        break;
    }
    GC_CHECK(false);
  }
  /// What changes nothing.
  static Scalar identity_of(Combine combine, ElementType type) {
    if (combine == Combine::kSum || combine == Combine::kProduct) {
      const int value = combine == Combine::kProduct ? 1 : 0;
      return is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, value);
    }
    const bool low = combine == Combine::kMax;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (is_float(type)) return Scalar::of_real(type, low ? -kInfinity : kInfinity);
    return Scalar::of_integer(type,
                              low ? integer_lowest(type) : static_cast<std::int64_t>(integer_highest(type)));
  }

  /// Slices of data that index tuples name.
  Updates tuples() {
    const Shape& indices = problem_.shape(1);
    Updates out;
    for (std::size_t i = 0; i + 1 < indices.size(); ++i) {
      out.axes.push_back(reduce(indices[i]));
      out.places.push_back(i);
      out.index.push_back(Index::axis(out.axes.back()));
    }
    std::vector<Index> tuple = out.index;
    tuple.emplace_back(0);
    for (int k = 0; k < static_cast<int>(indices.back()); ++k) {
      tuple.back() = Index(k);
      require(out.match, hits(tuple, k));
    }
    for (int k = static_cast<int>(indices.back()); k < rank_; ++k) out.index.push_back(Index::axis(k));
    return out;
  }

  /// Elements along one axis; along the others an update goes where it lies.
  Updates lines(int axis) {
    const Shape& box = problem_.shape(1);
    Updates out;
    out.axes = {reduce(box[axis])};
    out.places = {static_cast<std::size_t>(axis)};
    for (int k = 0; k < rank_; ++k) {
      out.index.push_back(k == axis ? Index::axis(out.axes[0]) : clamped(Index::axis(k), box[k], out.match));
    }
    require(out.match, hits(out.index, axis));
    return out;
  }

  /// Whether the index at `at` names this element along `axis` of data, negative ones from the end.
  int hits(const std::vector<Index>& at, int axis) {
    const Dim count = problem_.shape(0)[axis];
    const int index = dag().cast(dag().load(1, problem_.operands[1].element, at), ElementType::kInt64);
    form_.checks.push_back({index, Range{-count, count}});
    const int wrapped = dag().apply(ScalarOp::kAdd, {index, integer(count)});
    const int is_negative = dag().apply(ScalarOp::kLess, {index, integer(0)});
    const int counted = dag().apply(ScalarOp::kSelect, {is_negative, wrapped, index});
    return dag().apply(ScalarOp::kEqual, {counted, dag().iota(Index::axis(axis))});
  }

  Dim extent(int axis) const { return form_.extents[axis]; }
  std::vector<Index> result_axes() const {
    std::vector<Index> axes;
    for (int axis = 0; axis < rank_; ++axis) axes.push_back(Index::axis(axis));
    return axes;
  }
  /// In which elements of operand i are computed.
  ElementType type_of(std::size_t i) const { return compute_type(problem_.operands[i].element); }
  int widened(int i, std::vector<Index> index) {
    const auto at = static_cast<std::size_t>(i);
    return dag().cast(dag().load(i, problem_.operands[at].element, std::move(index)), type_of(at));
  }
  LoopForm finished(int root) {
    form_.set_root(dag().cast(root, problem_.results[0].element));
    return std::move(form_);
  }

  Dag& dag() { return form_.dag; }
  std::vector<Range> ranges() const { return full_ranges(form_.extents); }

  int reduce(Dim extent) {
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
    return group * form_.extents[channel] + Index::axis(channel);
  }
  static Index window_position(const Window& window, std::size_t i, int tap) {
    return Index::axis(static_cast<int>(i) + 2) * window.strides[i] + Index::axis(tap) * window.dilations[i] -
           Index(window.begin(static_cast<int>(i)));
  }

  int integer(Dim value) { return dag().size(value); }
  int equal(int scalar, Dim value) { return dag().apply(ScalarOp::kEqual, {scalar, integer(value)}); }
  int less(int scalar, Dim bound) { return dag().apply(ScalarOp::kLess, {scalar, integer(bound)}); }
  /// The row-major position in `shape` as one that counts the first spatial axis of its plane fastest.
  int by_columns(int position, const Shape& shape) {
    const Dim plane = element_count(Shape(shape.begin() + 2, shape.end()));
    int rest = dag().apply(ScalarOp::kMod, {position, integer(plane)});
    int out = dag().apply(ScalarOp::kSub, {position, rest});
    Dim stride = plane;
    for (std::size_t axis = shape.size(); axis-- > 2;) {
      stride /= shape[axis];
      const int coordinate = dag().apply(ScalarOp::kMod, {rest, integer(shape[axis])});
      out = dag().apply(ScalarOp::kAdd, {out, dag().apply(ScalarOp::kMul, {coordinate, integer(stride)})});
      rest = dag().apply(ScalarOp::kDiv, {rest, integer(shape[axis])});
    }
    return out;
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

  /// The index itself when it is always in [0, extent);
  /// else one that is, and `inside` learns when it is the same.
  Index clamped(const Index& at, Dim extent, int& inside) {
    const Range range = range_of(at, ranges());
    if (always_less_equal(0, range.low) && always_less_equal(range.high, extent)) return at;
    const int zero = integer(0), last = integer(extent - 1);
    const int position = dag().iota(at);
    if (!always_less_equal(0, range.low))
      require(inside, dag().apply(ScalarOp::kGreaterEqual, {position, zero}));
    if (!always_less_equal(range.high, extent)) require(inside, less(position, extent));
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

  /// The sum over k of a[k] * ((w[k] - zero[k / block]) * scale[k / block]).
  LoopForm sum_of_blocks(std::int64_t block, int depth) {
    const auto load = [&](std::size_t i, std::vector<Index> index) {
      const int element = dag().load(static_cast<int>(i), problem_.operands[i].element, std::move(index));
      return dag().cast(element, problem_.accumulator);
    };
    const std::vector<Index> at = {floor_div(Index::axis(depth), block, ranges()), Index::axis(rank_ - 1)};
    int weight = load(1, factor(1, depth, rank_ - 1));
    if (problem_.operands.size() > 3 && problem_.operands[3].present) {
      weight = dag().apply(ScalarOp::kSub, {weight, load(3, at)});
    }
    weight = dag().apply(ScalarOp::kMul, {weight, load(2, at)});
    const int product = dag().apply(ScalarOp::kMul, {load(0, factor(0, rank_ - 2, depth)), weight});
    form_.stages = {{Combine::kSum, product}};
    return std::move(form_);
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

LoopForm window_positions(const Window& window, const TensorType& x, const Shape& result, bool column_major) {
  Problem problem;
  problem.work = PoolWork{window, true, false};
  problem.accumulator = ElementType::kInt64;
  problem.operands.resize(2);
  problem.operands[0].element = problem.operands[1].element = x.element;
  problem.operands[0].shape = x.shape;
  return Builder(problem, LoopForm::over(result)).positions(window, column_major);
}

}  // namespace gcompile::ir
