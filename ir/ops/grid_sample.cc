// GridSample: elements of an image at the places that a grid names, in -1 to 1 along each axis, copied or
// weighed with their neighbours. Places are made in the grid's type, rounded after each operation as other
// implementations do, so that all of them agree on the nearest element.

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr int kImage = 0, kGrid = 1;

struct Method {
  std::string mode;     // nearest, linear, cubic
  std::string padding;  // zeros, border, reflection
  bool aligned;         // -1 and 1 are the middles of the outermost elements, not their edges
};

Method method_of(const Attributes& attributes) {
  return {attributes.string_of("mode"), attributes.string_of("padding_mode"),
          attributes.flag("align_corners")};
}

/// Opsets before 20 name the modes of images.
void normalise(RewriteContext& context) {
  if (!context.attributes().has("mode")) return;
  const std::string mode = context.attributes().string_of("mode");
  if (mode == "bilinear") context.mutable_attributes().set("mode", std::string("linear"));
  if (mode == "bicubic") context.mutable_attributes().set("mode", std::string("cubic"));
}

void require_one_of(const Attributes& attributes, std::string_view name,
                    std::initializer_list<std::string_view> known) {
  const std::string& value = attributes.string_of(name);
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  operator_error(fmt::format("attribute '{}' is '{}', which is not known", name, printable(value)));
}

void infer(InferContext& context) {
  require_computable(context, kImage);
  require_float(context, kGrid);
  require_one_of(context.attributes(), "mode", {"nearest", "linear", "cubic"});
  require_one_of(context.attributes(), "padding_mode", {"zeros", "border", "reflection"});
  const Shape &x = context.shape(kImage), &grid = context.shape(kGrid);
  const auto axes = static_cast<std::int64_t>(x.size()) - 2;
  if (axes < 1) operator_error("an image has the axes (N, C, ...)");
  if (grid.size() != x.size() || grid.back() != axes || grid[0] != x[0]) {
    operator_error(fmt::format("the grid must be ({}, ..., {}) of {} axes, its shape is {}", to_string(x[0]),
                               axes, x.size(), to_string(grid)));
  }
  if (method_of(context.attributes()).mode != "nearest") require_float(context, kImage);
  for (std::size_t i = 2; i < x.size(); ++i) {
    if (!always_less(0, x[i])) operator_error("an image that may be empty has no elements to read");
  }
  Shape out = {x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  context.set_result(0, context.element(kImage), std::move(out));
}

/// Floats of one type, of which each operation is rounded.
class Arithmetic {
 public:
  Arithmetic(Dag& dag, ElementType type) : dag_(dag), type_(type) {}
  int number(double value) const { return dag_.constant(type_, value); }
  int size(Dim value) const { return dag_.size(type_, value); }
  int apply(ScalarOp op, Arguments arguments) const { return dag_.round(dag_.apply(op, arguments)); }
  int add(int a, int b) const { return apply(ScalarOp::kAdd, {a, b}); }
  int subtract(int a, int b) const { return apply(ScalarOp::kSub, {a, b}); }
  int multiply(int a, int b) const { return apply(ScalarOp::kMul, {a, b}); }
  int divide(int a, int b) const { return apply(ScalarOp::kDiv, {a, b}); }
  int select(int condition, int a, int b) const { return dag_.apply(ScalarOp::kSelect, {condition, a, b}); }
  int less(int a, int b) const { return dag_.apply(ScalarOp::kLess, {a, b}); }
  int clamped(int x, int low, int high) const {
    return dag_.apply(ScalarOp::kMin, {dag_.apply(ScalarOp::kMax, {x, low}), high});
  }

 private:
  Dag& dag_;
  ElementType type_;
};

/// A place along an axis and how the image goes on beyond it.
class SampledAxis {
 public:
  SampledAxis(Dag& dag, ElementType type, Dim extent, const Method& method)
      : dag_(dag),
        real_(dag, type),
        extent_(extent),
        method_(method),
        low_(real_.number(method.aligned ? 0 : -0.5)),
        high_(real_.subtract(real_.size(extent), real_.number(method.aligned ? 1 : 0.5))) {}

  /// The place that the grid's number is, inside the image but for `zeros`, and for `cubic`, whose neighbours
  /// are found inside one by one: so it is in PyTorch and ONNX Runtime, while onnx's reference moves the place.
  int place(int coordinate) const {
    const int one = real_.number(1), shifted = real_.add(coordinate, one), two = real_.number(2);
    int x = method_.aligned
                ? real_.multiply(real_.divide(shifted, two), real_.subtract(real_.size(extent_), one))
                : real_.divide(real_.subtract(real_.multiply(shifted, real_.size(extent_)), one), two);
    if (method_.mode == "nearest") x = dag_.apply(ScalarOp::kRoundHalfEven, {x});
    return method_.mode == "cubic" ? x : inside(x);
  }

  /// What is read at a whole place: an index, and whether the image has it, -1 where it always does.
  struct Read {
    Index index;
    int is_there;
  };
  Read read(int place) const {
    const int zero = real_.number(0), last = real_.subtract(real_.size(extent_), real_.number(1));
    int is_there = -1;
    if (method_.padding == "zeros") {
      is_there = dag_.apply(ScalarOp::kLogicalAnd, {dag_.apply(ScalarOp::kLessEqual, {zero, place}),
                                                    dag_.apply(ScalarOp::kLessEqual, {place, last})});
    }
    const int at = dag_.cast(inside(place), ElementType::kInt64);
    const int first = dag_.constant(ElementType::kInt64, 0), end = dag_.size(extent_ - 1);
    const int index = dag_.apply(ScalarOp::kMin, {dag_.apply(ScalarOp::kMax, {at, first}), end});
    return {Index::loaded(index, Range{0, extent_}), is_there};
  }

 private:
  int inside(int x) const {
    if (method_.padding == "zeros") return x;
    if (method_.padding == "border") {
      return real_.clamped(x, real_.number(0), real_.subtract(real_.size(extent_), real_.number(1)));
    }
    // Reflected at both ends, as often as it takes: by how far x lies beyond one of them.
    const int range = real_.subtract(high_, low_), zero = real_.number(0);
    const int is_below = real_.less(x, low_), is_above = real_.less(high_, x);
    const int beyond = real_.select(is_below, real_.subtract(low_, x), real_.subtract(x, high_));
    const int turns = dag_.apply(ScalarOp::kTrunc, {real_.divide(beyond, range)});
    const int rest = real_.subtract(beyond, real_.multiply(turns, range));
    const int half = real_.divide(turns, real_.number(2));
    const int is_even = dag_.apply(ScalarOp::kEqual, {half, dag_.apply(ScalarOp::kTrunc, {half})});
    const int from_low = real_.add(low_, rest), from_high = real_.subtract(high_, rest);
    const int below = real_.select(is_even, from_low, from_high);
    const int above = real_.select(is_even, from_high, from_low);
    const int reflected = real_.select(is_below, below, real_.select(is_above, above, x));
    // An axis of one element, whose ends are one place.
    return real_.select(dag_.apply(ScalarOp::kLessEqual, {range, zero}), zero, reflected);
  }

  Dag& dag_;
  Arithmetic real_;
  Dim extent_;
  const Method& method_;
  int low_, high_;
};

/// Whole places around one along an axis, and their weights.
struct Tap {
  int place;
  int weight;  // -1: it is the only one
};

/// Weights of four neighbours of which the second is `t` before the place: cubic convolution with a = -0.75
/// (Keys, 1981).
std::vector<int> cubic_weights(const Arithmetic& real, int t) {
  constexpr double kA = -0.75;
  const int one = real.number(1);
  const auto near = [&](int x) {
    const int polynomial = real.subtract(real.multiply(real.number(kA + 2), x), real.number(kA + 3));
    return real.add(real.multiply(real.multiply(polynomial, x), x), one);
  };
  const auto far = [&](int x) {
    const int a = real.subtract(real.multiply(real.number(kA), x), real.number(5 * kA));
    const int b = real.add(real.multiply(a, x), real.number(8 * kA));
    return real.subtract(real.multiply(b, x), real.number(4 * kA));
  };
  const int rest = real.subtract(one, t);
  return {far(real.add(t, one)), near(t), near(rest), far(real.add(rest, one))};
}

std::vector<Tap> taps_of(Dag& dag, ElementType type, const Method& method, int place) {
  const Arithmetic real(dag, type);
  if (method.mode == "nearest") return {{place, -1}};
  const int floor = dag.apply(ScalarOp::kFloor, {place}), one = real.number(1);
  const int t = real.subtract(place, floor);
  if (method.mode == "linear") return {{floor, real.subtract(one, t)}, {real.add(floor, one), t}};
  const std::vector<int> weights = cubic_weights(real, t);
  std::vector<Tap> taps;
  for (int i = 0; i < 4; ++i)
    taps.push_back({real.add(floor, real.number(i - 1)), weights[static_cast<std::size_t>(i)]});
  return taps;
}

/// The sum over the taps of spatial axis `i` and those behind it, of what the image has at `index`.
struct Sampler {
  const LowerContext& context;
  Dag& dag;
  const std::vector<SampledAxis>& axes;
  const std::vector<std::vector<Tap>>& taps;

  int sum(std::vector<Index>& index, std::size_t i, int is_there) const {
    const ElementType element = context.element(kImage), compute = compute_type(element);
    if (i == axes.size()) {
      const int value = dag.cast(dag.load(kImage, element, index), compute);
      if (is_there < 0) return value;
      return dag.apply(ScalarOp::kSelect, {is_there, value, dag.constant(compute, 0)});
    }
    int total = -1;
    for (const Tap& tap : taps[i]) {
      const SampledAxis::Read read = axes[i].read(tap.place);
      index[i + 2] = read.index;
      const int both = is_there < 0        ? read.is_there
                       : read.is_there < 0 ? is_there
                                           : dag.apply(ScalarOp::kLogicalAnd, {is_there, read.is_there});
      int term = sum(index, i + 1, both);
      if (tap.weight >= 0) term = dag.apply(ScalarOp::kMul, {dag.cast(tap.weight, dag.type(term)), term});
      total = total < 0 ? term : dag.apply(ScalarOp::kAdd, {total, term});
    }
    return total;
  }
};

Form lower(const LowerContext& context) {
  const Method method = method_of(context.attributes());
  const TensorType& type = context.result(0);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const ElementType stored = context.element(kGrid), real = compute_type(stored);
  const int count = type.rank() - 2;
  std::vector<SampledAxis> axes;
  std::vector<std::vector<Tap>> taps;
  for (int i = 0; i < count; ++i) {
    std::vector<Index> at = {Index::axis(0)};
    for (int k = 0; k < count; ++k) at.push_back(Index::axis(k + 2));
    at.push_back(Index(count - 1 - i));  // the grid names the last axis first
    const int coordinate = dag.cast(dag.load(kGrid, stored, std::move(at)), real);
    axes.emplace_back(dag, real, context.shape(kImage)[static_cast<std::size_t>(i) + 2], method);
    taps.push_back(taps_of(dag, real, method, axes.back().place(coordinate)));
  }
  std::vector<Index> index(static_cast<std::size_t>(type.rank()));
  index[0] = Index::axis(0);
  index[1] = Index::axis(1);
  form.set_root(dag.cast(Sampler{context, dag, axes, taps}.sum(index, 0, -1), type.element));
  return form;
}

}  // namespace

const Operator& operator_GridSample() {
  static const Operator op = [] {
    Operator o = {
        .name = "GridSample",
        .versions = {16, 20, 22},
        .operands = {2, 2},
        .attributes = {{"align_corners", AttributeKind::kInt, std::int64_t{0}},
                       {"mode", AttributeKind::kString, std::string("linear")},
                       {"padding_mode", AttributeKind::kString, std::string("zeros")}},
        .accuracy = Accuracy::kSum,
        .summary = "elements of an image at the places of a grid, nearest, linear or cubic",
        .normalise = normalise,
        .infer = infer,
        .lower = lower,
    };
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
