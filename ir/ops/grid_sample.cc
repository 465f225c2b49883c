// GridSample: elements of an image at the places that a grid names, in -1 to 1 along each axis, copied or
// weighed with their neighbours. Places are made in the grid's type, rounded after each operation as other
// implementations do, so that all of them agree on the nearest element.

#include <fmt/format.h>

#include "ir/ops/rounded_arithmetic.h"
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

/// A place along an axis and how the image goes on beyond it.
class SampledAxis : public RoundedArithmetic {
 public:
  SampledAxis(Dag& dag, ElementType type, Dim extent, const Method& method)
      : RoundedArithmetic(dag, type), extent_(extent), method_(method) {}

  /// The place that the grid's number is, inside the image but for `zeros`, and for `cubic`, whose neighbours
  /// are found inside one by one: so it is in PyTorch and ONNX Runtime, while onnx's reference moves the place.
  int place(int coordinate) const {
    const int one = number(1), two = number(2), length = size(extent_), shifted = add(coordinate, one);
    int x = -1;
    if (method_.aligned) {
      const int steps = sub(length, one);
      x = mul(div(shifted, two), steps);
    } else {
      x = div(sub(mul(shifted, length), one), two);
    }
    if (method_.mode == "nearest") x = dag_.apply(ScalarOp::kRoundHalfEven, {x});
    return method_.mode == "cubic" ? x : inside(x);
  }

  /// Whole places that are read for one, and their weights; -1: it is the only one.
  struct Tap {
    int place;
    int weight;
  };
  std::vector<Tap> taps_of(int place) const {
    if (method_.mode == "nearest") return {{place, -1}};
    const int floor = dag_.apply(ScalarOp::kFloor, {place}), one = number(1), ratio = sub(place, floor);
    if (method_.mode == "linear") return {{floor, sub(one, ratio)}, {add(floor, one), ratio}};
    constexpr double kA = -0.75;  // as PyTorch and ONNX Runtime have it
    std::vector<Tap> taps;
    for (const int weight : cubic_weights(kA, ratio)) {
      const int distance = number(static_cast<double>(taps.size()) - 1);
      taps.push_back({add(floor, distance), weight});
    }
    return taps;
  }

  /// What is read at a whole place: an index, and whether the image has it, -1 where it always does.
  struct Read {
    Index index;
    int is_there;
  };
  Read read(int place) const {
    int is_there = -1;
    if (method_.padding == "zeros") {
      const int zero = number(0), last = size(extent_ - 1);
      const int is_above = dag_.apply(ScalarOp::kLessEqual, {zero, place});
      const int is_below = dag_.apply(ScalarOp::kLessEqual, {place, last});
      is_there = dag_.apply(ScalarOp::kLogicalAnd, {is_above, is_below});
    }
    // Neighbours of a place inside are at most one beyond, where both ways of going on have the last element.
    const bool is_far = method_.mode == "cubic" && method_.padding == "reflection";
    const int at = dag_.cast(is_far ? reflected(place) : place, ElementType::kInt64);
    const int first = dag_.constant(ElementType::kInt64, 0), end = dag_.size(extent_ - 1);
    return {Index::loaded(clamped(at, first, end), Range{0, extent_}), is_there};
  }

 private:
  int inside(int x) const {
    if (method_.padding == "zeros") return x;
    if (method_.padding == "border") {
      const int zero = number(0), last = size(extent_ - 1);
      return clamped(x, zero, last);
    }
    return reflected(x);
  }
  /// At both ends, as often as it takes: by how far x lies beyond one of them.
  int reflected(int x) const {
    const int length = size(extent_), margin = number(method_.aligned ? 1 : 0.5);
    const int low = number(method_.aligned ? 0 : -0.5), high = sub(length, margin), range = sub(high, low);
    const int is_below = dag_.apply(ScalarOp::kLess, {x, low});
    const int is_above = dag_.apply(ScalarOp::kLess, {high, x});
    const int below = sub(low, x), above = sub(x, high), beyond = select(is_below, below, above);
    const int turns = dag_.apply(ScalarOp::kTrunc, {div(beyond, range)}), two = number(2);
    const int rest = sub(beyond, mul(turns, range)), half = div(turns, two);
    const int is_even = dag_.apply(ScalarOp::kEqual, {half, dag_.apply(ScalarOp::kTrunc, {half})});
    const int from_low = add(low, rest), from_high = sub(high, rest);
    const int below_low = select(is_even, from_low, from_high);
    const int above_high = select(is_even, from_high, from_low);
    const int moved = select(is_below, below_low, select(is_above, above_high, x));
    if (!method_.aligned || always_less(1, extent_)) return moved;
    const int zero = number(0), is_place = dag_.apply(ScalarOp::kLessEqual, {range, zero});
    return select(is_place, zero, moved);  // the ends of one element are one place
  }
  int select(int condition, int a, int b) const { return dag_.apply(ScalarOp::kSelect, {condition, a, b}); }

  Dim extent_;
  const Method& method_;
};

/// The sum over the taps of spatial axis `i` and those behind it, of what the image has at `index`.
struct Sampler {
  const LowerContext& context;
  Dag& dag;
  const std::vector<SampledAxis>& axes;
  const std::vector<std::vector<SampledAxis::Tap>>& taps;

  int sum(std::vector<Index>& index, std::size_t i, int is_there) const {
    const ElementType element = context.element(kImage), compute = compute_type(element);
    if (i == axes.size()) {
      const int value = dag.cast(dag.load(kImage, element, index), compute);
      if (is_there < 0) return value;
      return dag.apply(ScalarOp::kSelect, {is_there, value, dag.constant(compute, 0)});
    }
    int total = -1;
    for (const SampledAxis::Tap& tap : taps[i]) {
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
  std::vector<std::vector<SampledAxis::Tap>> taps;
  for (int i = 0; i < count; ++i) {
    std::vector<Index> at = {Index::axis(0)};
    for (int k = 0; k < count; ++k) at.push_back(Index::axis(k + 2));
    at.push_back(Index(count - 1 - i));  // the grid names the last axis first
    const int coordinate = dag.cast(dag.load(kGrid, stored, std::move(at)), real);
    axes.emplace_back(dag, real, context.shape(kImage)[static_cast<std::size_t>(i) + 2], method);
    taps.push_back(axes.back().taps_of(axes.back().place(coordinate)));
  }
  std::vector<Index> index(static_cast<std::size_t>(type.rank()));
  index[0] = Index::axis(0);
  index[1] = Index::axis(1);
  form.set_root(dag.cast(Sampler{context, dag, axes, taps}.sum(index, 0, -1), type.element));
  return form;
}

// AffineGrid: where the pixels of an image lie in another one that an affine map takes them to, per image.

constexpr int kTheta = 0, kSize = 1;

/// The result: images, their spatial axes, coordinates with that of the last axis first.
Shape grid_of(const NodeView& node) {
  const Shape& theta = node.shape(kTheta);
  Shape size = node.known_sizes(kSize, "the size of the images");
  if (size.size() < 4 || size.size() > 5) operator_error("the size must be (N, C, H, W) or (N, C, D, H, W)");
  const auto axes = static_cast<std::int64_t>(size.size()) - 2;
  if (theta != Shape{size[0], axes, axes + 1}) {
    operator_error(fmt::format("theta must be ({}, {}, {}), its shape is {}", to_string(size[0]), axes,
                               axes + 1, to_string(theta)));
  }
  size.erase(size.begin() + 1);
  size.push_back(axes);
  return size;
}

void infer_affine(InferContext& context) {
  require_float(context, kTheta);
  context.set_result(0, context.element(kTheta), grid_of(context));
}

/// theta[n, c, last] + sum over axes k of theta[n, c, k] * (2 * i_k + 1 - e_k) / d, of extents e_k: d is e_k,
/// or e_k - 1 where the outermost pixels lie at -1 and 1.
Form lower_affine(const LowerContext& context) {
  const TensorType& type = context.result(0);
  const bool aligned = context.attributes().flag("align_corners");
  const int axes = type.rank() - 2;
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const ElementType compute = compute_type(type.element);
  const auto theta = [&](int k) {
    const std::vector<Index> at = {Index::axis(0), Index::axis(axes + 1), Index(k)};
    return dag.cast(dag.load(kTheta, type.element, at), compute);
  };
  int sum = theta(axes);
  for (int k = 0; k < axes; ++k) {
    const Dim extent = type.shape[static_cast<std::size_t>(axes - k)];
    const int position = dag.iota(Index::axis(axes - k) * 2 + Index(1) - Index(extent));
    const int divisor = dag.size(compute, aligned ? max(extent - 1, 1) : extent);
    const int x = dag.apply(ScalarOp::kDiv, {dag.cast(position, compute), divisor});
    sum = dag.apply(ScalarOp::kAdd, {sum, dag.apply(ScalarOp::kMul, {theta(k), x})});
  }
  form.set_root(dag.cast(sum, type.element));
  return form;
}

}  // namespace

const Operator& operator_AffineGrid() {
  static const Operator op = {
      .name = "AffineGrid",
      .versions = {20},
      .operands = {2, 2},
      .attributes = {{"align_corners", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "positions of pixels under an affine map",
      .infer = infer_affine,
      .lower = lower_affine,
  };
  return op;
}

const Operator& operator_GridSample() {
  static const Operator op = {
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
  return op;
}

}  // namespace gcompile::ir
