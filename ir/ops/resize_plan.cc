#include "ir/ops/resize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/operator.h"
#include "ir/ops/rounded_arithmetic.h"
#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

/// Position in the input, in units of pixels, of output position `x`.
double source_of(const ResizeAxis& axis, const std::string& mode, double x) {
  const double in = static_cast<double>(axis.in), scale = *axis.scale;
  // Corners are those of the result, as exporters and ONNX Runtime have it: whole numbers of elements.
  if (mode == "align_corners") return axis.out == 1 ? 0 : x * (in - 1) / (static_cast<double>(axis.out) - 1);
  const double length = scale * in;  // not rounded, as the reference has it
  if (mode == "asymmetric") return x / scale;
  if (mode == "tf_crop_and_resize") {
    const double extent = axis.roi_end - axis.roi_begin;
    if (axis.out == 1) return 0.5 * (axis.roi_begin + axis.roi_end) * (in - 1);
    return axis.roi_begin * (in - 1) + x * extent * (in - 1) / (length - 1);
  }
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (mode == "pytorch_half_pixel" && axis.out == 1) return 0;
  double offset = 0;
  if (mode == "half_pixel_symmetric") offset = in / 2 * (1 - static_cast<double>(axis.out) / length);
  return offset + (x + 0.5) / scale - 0.5;
}

/// The same as an expression whose every step is rounded to its type, float32 or float64.
class Source : public RoundedArithmetic {
 public:
  Source(Dag& dag, const ResizeAxis& axis, ElementType type) : RoundedArithmetic(dag, type), axis_(axis) {}

  int of(const std::string& mode, int at) const {
    const int x = dag_.cast(at, type_);
    if (mode == "align_corners") {
      const int zero = number(0);
      return if_several(spread(x, size(axis_.out)), zero);
    }
    if (mode == "asymmetric") return div(x, scale());
    if (mode == "tf_crop_and_resize") return cropped(x);
    if (mode == "half_pixel_symmetric") return symmetric(x);
    if (mode == "tf_half_pixel_for_nn") {
      const int middle = add(x, number(0.5));
      return div(middle, scale());
    }
    const int position = half_pixel(x, scale());
    return mode == "pytorch_half_pixel" ? if_several(position, number(0)) : position;
  }

  int last() const { return size(axis_.in - 1); }
  int scale() const {
    if (axis_.scale_element >= 0) return given(kScales, axis_.scale_element);
    return axis_.scale ? number(*axis_.scale) : ratio(axis_.out, axis_.in);
  }

 private:
  static constexpr ElementType kDouble = ElementType::kFloat64;

  int given(int operand, int element) const {
    return dag_.cast(dag_.load(operand, ElementType::kFloat32, {Index(element)}), type_);
  }
  int ratio(Dim a, Dim b) const {
    const int below = size(b);
    return div(size(a), below);
  }
  /// The length of the result: in the reference and in ONNX Runtime the same,
  /// wherever that is a whole number.
  int length() const {
    if (!axis_.is_scaled) return size(axis_.out);
    const int factor = scale();
    return mul(size(axis_.in), factor);
  }

  int half_pixel(int x, int scale) const {
    const int half = dag_.constant(dag_.type(x), 0.5);
    return sub(div(add(x, half), scale), half);
  }
  /// From the first to the last of `length` elements.
  int spread(int x, int length) const {
    const int one = number(1), steps = sub(length, one);
    return div(mul(x, last()), steps);
  }
  int cropped(int x) const {
    const bool reads = axis_.begin_element >= 0;
    const int begin = reads ? given(kRegion, axis_.begin_element) : number(axis_.roi_begin);
    const int end = reads ? given(kRegion, axis_.end_element) : number(axis_.roi_end);
    const int top = last(), sum = add(begin, end);
    const int middle = mul(mul(number(0.5), sum), top);
    const int width = spread(mul(x, sub(end, begin)), length());
    return if_several(add(mul(begin, top), width), middle);
  }
  int symmetric(int x) const {
    const int in = size(axis_.in), factor = scale(), scaled = mul(factor, in);
    const int adjustment = div(size(axis_.out), scaled);
    const int rest = sub(number(1), adjustment), two = number(2);
    const int offset = mul(div(in, two), rest), precise = dag_.cast(factor, kDouble);
    const int position = half_pixel(dag_.cast(x, kDouble), precise);
    return dag_.cast(add(dag_.cast(offset, kDouble), position), type_);
  }
  /// `several` where the result has several elements, `one` where it has one.
  int if_several(int several, int one) const {
    if (axis_.out.is_constant()) return axis_.out == 1 ? one : several;
    if (always_less(1, axis_.out)) return several;
    return dag_.apply(ScalarOp::kSelect,
                      {dag_.apply(ScalarOp::kLess, {number(1), size(axis_.out)}), several, one});
  }

  const ResizeAxis& axis_;
};

/// The whole number that is nearest to x, a float32.
int nearest_of(Dag& dag, const Source& source, const std::string& nearest, bool shrinks, int x) {
  if (nearest == "ceil" || (nearest == "simple" && shrinks)) return dag.apply(ScalarOp::kCeil, {x});
  const int floor = dag.apply(ScalarOp::kFloor, {x});
  if (nearest == "floor" || nearest == "simple") return floor;
  // x + 0.5 may be rounded up to a whole number; what is left of x is exact.
  const ScalarOp rounds_up = nearest == "round_prefer_ceil" ? ScalarOp::kGreaterEqual : ScalarOp::kGreater;
  const int is_above = dag.apply(rounds_up, {source.sub(x, floor), source.number(0.5)});
  return dag.apply(ScalarOp::kSelect, {is_above, source.add(floor, source.number(1)), floor});
}

int outside(Dag& dag, int x, int first, int last) {
  const int is_before = dag.apply(ScalarOp::kLess, {x, first});
  const int is_behind = dag.apply(ScalarOp::kGreater, {x, last});
  return dag.apply(ScalarOp::kLogicalOr, {is_before, is_behind});
}

double cubic_weight(double a, double distance) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

struct Kernel {
  std::int64_t first;  // of the taps, relative to the pixel left of the position
  int taps;
  double stretch;  // the kernel is wider by 1 / stretch
};

/// Shrinking with antialias widens the kernel by the scale.
Kernel kernel_of(const ResizeMethod& method, double scale) {
  const double radius = method.mode == "cubic" ? 2 : 1;
  const double stretch = method.antialias ? std::min(scale, 1.0) : 1.0;
  const auto first = static_cast<std::int64_t>(std::floor(-radius / stretch)) + 1;
  return {first, static_cast<int>(2 - 2 * first), stretch};
}

/// `in`: elements of the axis; 0: edges are not near.
void add_weighted_row(AxisTable& table, std::int64_t in, double scale, const ResizeMethod& method, double x) {
  const Kernel kernel = kernel_of(method, scale);
  // The pixel left of the position, also when the position is a pixel: the ratio is in (0, 1].
  const double left = std::ceil(x) - 1;
  const double ratio = x - left;
  std::vector<double> weights;
  double sum = 0;
  for (int t = 0; t < kernel.taps; ++t) {
    const double distance = (static_cast<double>(kernel.first + t) - ratio) * kernel.stretch;
    double weight = method.mode == "cubic" ? cubic_weight(method.cubic_a, distance)
                                           : std::max(0.0, 1 - std::fabs(distance));
    const std::int64_t position = static_cast<std::int64_t>(left) + kernel.first + t;
    if (method.exclude_outside && (position < 0 || position >= in)) weight = 0;
    weights.push_back(weight);
    sum += weight;
    table.positions.push_back(in == 0 ? position : std::clamp<std::int64_t>(position, 0, in - 1));
  }
  const bool normalise = method.exclude_outside || method.antialias;
  for (const double weight : weights) table.weights.push_back(normalise ? weight / sum : weight);
}

/// Keeps one tap when every row has one position that carries all the weight.
void drop_idle_taps(AxisTable& table) {
  if (table.taps == 1) return;
  std::vector<std::int64_t> positions;
  for (std::int64_t row = 0; row < table.rows; ++row) {
    std::int64_t only = -1;
    for (int t = 0; t < table.taps; ++t) {
      const auto at = static_cast<std::size_t>(row * table.taps + t);
      if (table.weights[at] == 0) continue;
      if (only >= 0 && only != table.positions[at]) return;
      only = table.positions[at];
    }
    if (only < 0) return;
    positions.push_back(only);
  }
  table.taps = 1;
  table.positions = std::move(positions);
  table.weights.clear();
}

AxisTable nearest_table(const ResizeAxis& axis, const ResizeMethod& method) {
  Dag dag;
  const NearestElement element = nearest_element(dag, axis, method, dag.iota(Index::axis(0)));
  ExpressionEvaluator position(dag, element.position, {});
  std::optional<ExpressionEvaluator> is_outside;
  if (element.is_outside >= 0) is_outside.emplace(dag, element.is_outside, ExpressionInputs{});
  AxisTable table;
  for (std::int64_t i = 0, end = axis.out; i < end; ++i) {
    const std::int64_t at[] = {i};
    if (is_outside && (*is_outside)(at).integer != 0) {
      if (table.rows == 0) ++table.begin;
      continue;
    }
    ++table.rows;
    table.positions.push_back(position(at).integer);
  }
  return table;
}

}  // namespace

bool keeps(const ResizeAxis& axis, const ResizeMethod& method) {
  const bool is_whole =
      !method.crops() || (axis.roi_begin == 0 && axis.roi_end == 1 && axis.begin_element < 0);
  return axis.in == axis.out && axis.scale == 1.0 && is_whole;
}

bool copies(const ResizeAxis& axis, const ResizeMethod& method) {
  return method.mode == "nearest" || keeps(axis, method) || (axis.in == 1 && !method.crops());
}

NearestElement nearest_element(Dag& dag, const ResizeAxis& axis, const ResizeMethod& method, int at) {
  NearestElement element;
  // Whatever the coordinates: centres that are rounded up would be the next elements.
  if (keeps(axis, method)) {
    element.position = dag.cast(at, ElementType::kInt64);
    return element;
  }
  const Source source(dag, axis, ElementType::kFloat32);
  const int x = source.of(method.coordinates, at);
  const int zero = source.number(0), last = source.last();
  const int nearest = nearest_of(dag, source, method.nearest, axis.scale.value_or(1) < 1, x);
  element.position = dag.cast(source.clamped(nearest, zero, last), ElementType::kInt64);
  if (method.crops()) element.is_outside = outside(dag, x, zero, last);
  return element;
}

bool sums_anywhere(const ResizeMethod& method) {
  return method.mode != "nearest" && !method.antialias && !method.crops();
}

namespace {

/// The least scale that makes `out` of `in` elements.
double least_scale(const ResizeAxis& axis) {
  return static_cast<double>(std::int64_t{axis.out}) / static_cast<double>(std::int64_t{axis.in});
}

/// cubic_weight(), of a distance that is an expression.
int cubic_weight(Dag& dag, const Source& source, double a, int distance) {
  const auto horner = [&](std::initializer_list<double> coefficients) {
    int sum = -1;
    for (const double each : coefficients) {
      const int next = source.number(each);
      sum = sum < 0 ? next : source.add(source.mul(sum, distance), next);
    }
    return sum;
  };
  const int inner = horner({a + 2, -(a + 3), 0, 1}), outer = horner({a, -5 * a, 8 * a, -4 * a});
  const int zero = source.number(0), one = source.number(1), two = source.number(2);
  const int is_near = dag.apply(ScalarOp::kLess, {distance, two});
  const int far = dag.apply(ScalarOp::kSelect, {is_near, outer, zero});
  const int is_inner = dag.apply(ScalarOp::kLessEqual, {distance, one});
  return dag.apply(ScalarOp::kSelect, {is_inner, inner, far});
}

/// Weights of a kernel that is wider where a run shrinks: as many as the least scale takes, of which those that
/// lie beyond the kernel of a larger one are 0.
std::vector<int> antialiased_weights(Dag& dag, const Source& source, const ResizeMethod& method,
                                     const Kernel& kernel, int ratio) {
  const int one = source.number(1), zero = source.number(0);
  const int stretch = dag.apply(ScalarOp::kMin, {source.scale(), one});
  std::vector<int> weights;
  for (int t = 0; t < kernel.taps; ++t) {
    const int place = source.number(static_cast<double>(kernel.first + t));
    const int distance = dag.apply(ScalarOp::kAbs, {source.mul(source.sub(place, ratio), stretch)});
    weights.push_back(method.mode == "cubic" ? cubic_weight(dag, source, method.cubic_a, distance)
                                             : dag.apply(ScalarOp::kMax, {source.sub(one, distance), zero}));
  }
  return weights;
}

}  // namespace

int taps_at_any_scale(const ResizeAxis& axis, const ResizeMethod& method) {
  if (copies(axis, method)) return 1;
  return kernel_of(method, method.antialias ? least_scale(axis) : 1).taps;
}

WeighedElements weighed_elements(Dag& dag, const ResizeAxis& axis, const ResizeMethod& method, int at) {
  const Source source(dag, axis, ElementType::kFloat64);
  const int x = source.of(method.coordinates, at), one = source.number(1);
  const int left = source.sub(dag.apply(ScalarOp::kCeil, {x}), one);
  const int ratio = source.sub(x, left);
  const Kernel kernel = kernel_of(method, method.antialias ? least_scale(axis) : 1);
  std::vector<int> weights;
  if (method.antialias) {
    weights = antialiased_weights(dag, source, method, kernel, ratio);
  } else if (method.mode == "cubic") {
    weights = source.cubic_weights(method.cubic_a, ratio);
  } else {
    weights = {source.sub(one, ratio), ratio};
  }
  WeighedElements out;
  int sum = -1;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const double place = static_cast<double>(kernel.first) + static_cast<double>(t);
    const int position = source.add(left, source.number(place));
    const int zero = source.number(0), last = source.last();
    if (method.exclude_outside) {
      const int is_outside = outside(dag, position, zero, last);
      weights[t] = dag.apply(ScalarOp::kSelect, {is_outside, zero, weights[t]});
    }
    sum = sum < 0 ? weights[t] : source.add(sum, weights[t]);
    out.elements.push_back({dag.cast(source.clamped(position, zero, last), ElementType::kInt64), weights[t]});
  }
  if (method.exclude_outside || method.antialias) {
    for (WeighedElement& element : out.elements) element.weight = source.div(element.weight, sum);
  }
  if (method.crops()) {
    const int zero = source.number(0), last = source.last();
    out.is_outside = outside(dag, x, zero, last);
  }
  return out;
}

AxisTable axis_table(const ResizeAxis& axis, const ResizeMethod& method) {
  if (method.mode == "nearest") return nearest_table(axis, method);
  AxisTable table;
  table.taps = kernel_of(method, *axis.scale).taps;
  const double last = static_cast<double>(axis.in - 1);
  for (std::int64_t i = 0, end = axis.out; i < end; ++i) {
    const double x = source_of(axis, method.coordinates, static_cast<double>(i));
    if (method.crops() && (x < 0 || x > last)) {
      if (table.rows == 0) ++table.begin;
      continue;
    }
    ++table.rows;
    add_weighted_row(table, axis.in, *axis.scale, method, x);
  }
  drop_idle_taps(table);
  return table;
}

std::optional<AxisFormula> formula_of(const AxisTable& table) {
  if (table.taps != 1 || table.rows == 0) return std::nullopt;
  const std::int64_t first = table.positions[0];
  constexpr std::int64_t kLargest = 16;
  for (std::int64_t divisor = 1; divisor <= kLargest; ++divisor) {
    for (std::int64_t multiplier = 0; multiplier <= kLargest; ++multiplier) {
      for (std::int64_t offset = first * divisor; offset < (first + 1) * divisor; ++offset) {
        bool fits = true;
        for (std::int64_t i = 0; i < table.rows && fits; ++i) {
          fits = table.positions[i] == floor_div(multiplier * i + offset, divisor);
        }
        if (fits) return AxisFormula{multiplier, offset, divisor};
      }
    }
  }
  return std::nullopt;
}

std::optional<Fraction> fraction_of(double scale) {
  constexpr std::int64_t kMostDenominator = 64;
  for (std::int64_t q = 1; q <= kMostDenominator; ++q) {
    const auto p = static_cast<std::int64_t>(std::round(scale * static_cast<double>(q)));
    if (p > 0 &&
        static_cast<float>(static_cast<double>(p) / static_cast<double>(q)) == static_cast<float>(scale)) {
      return Fraction{p, q};
    }
  }
  return std::nullopt;
}

std::optional<Fraction> fraction_of(Dim out, Dim in) {
  constexpr std::int64_t kMostDenominator = 64;
  for (std::int64_t q = 1; q <= kMostDenominator; ++q) {
    const std::optional<Dim> p = exact_quotient(out * q, in);
    if (p && p->is_constant()) return Fraction{p->constant(), q};
  }
  return std::nullopt;
}

namespace {

/// Why positions do not repeat themselves, shifted, with every step of the scale, whatever the size; nullopt:
/// they do, but for edges.
std::optional<std::string> refuse_repetition(const ResizeAxis& axis, const ResizeMethod& method) {
  const std::string& coordinates = method.coordinates;
  if (coordinates == "align_corners" || method.crops()) return fmt::format("with '{}'", coordinates);
  const std::optional<Fraction> scale = axis.scale ? fraction_of(*axis.scale) : std::nullopt;
  if (!scale) return "by a factor that is no fraction of small numbers";
  if (coordinates == "half_pixel_symmetric" && axis.out * scale->denominator != axis.in * scale->numerator) {
    return "with 'half_pixel_symmetric' to a size that leaves a rest";
  }
  if (coordinates == "pytorch_half_pixel" && !always_less(1, axis.out)) {
    return "with 'pytorch_half_pixel' to what may be one element";
  }
  return std::nullopt;
}

}  // namespace

std::optional<AxisFormula> formula_of_all_sizes(const ResizeAxis& axis, const ResizeMethod& method) {
  constexpr std::int64_t kMostTried = 1 << 16;  // elements of an axis
  if (keeps(axis, method)) return AxisFormula{};
  if (axis.in == 1 && !method.crops()) return AxisFormula{0, 0, 1};
  if (refuse_repetition(axis, method) || highest(axis.out) > kMostTried) return std::nullopt;
  // The largest size is tried at every position that rounding could move,
  // the smallest at its ends with every rest.
  const Fraction scale = *fraction_of(*axis.scale);
  std::optional<AxisFormula> found;
  for (std::int64_t in = highest(axis.in), next = 2 * scale.denominator + 2; in >= 1; in = next--) {
    ResizeAxis sample = axis;
    sample.in = in;
    sample.out = in * scale.numerator / scale.denominator;
    const AxisTable table = axis_table(sample, method);
    if (!found) found = formula_of(table);
    if (!found) return std::nullopt;
    for (std::int64_t i = 0, end = sample.out; i < end; ++i) {
      const std::int64_t position = floor_div(found->multiplier * i + found->offset, found->divisor);
      if (position != table.positions[i]) return std::nullopt;
    }
  }
  return found;
}

namespace {

std::optional<std::string> refuse_phases(const ResizeAxis& axis, const ResizeMethod& method) {
  constexpr double kMostDrift = 1e-4;  // of an element, between the scale as it is given and its fraction
  if (method.exclude_outside) return "with exclude_outside";
  if (auto refusal = refuse_repetition(axis, method)) return refusal;
  const Fraction scale = *fraction_of(*axis.scale);
  const double p = static_cast<double>(scale.numerator), q = static_cast<double>(scale.denominator);
  if ((p != 1 && q != 1) ||
      std::fabs(1 / *axis.scale - q / p) * static_cast<double>(highest(axis.out)) > kMostDrift) {
    return "by other factors than whole numbers and one divided by them";
  }
  return std::nullopt;
}

}  // namespace

bool has_phases(const ResizeAxis& axis, const ResizeMethod& method) { return !refuse_phases(axis, method); }

AxisPhases axis_phases(const ResizeAxis& axis, const ResizeMethod& method) {
  if (const auto refusal = refuse_phases(axis, method)) {
    operator_error(
        fmt::format("sizes that only a run knows are not resized in mode '{}' {}", method.mode, *refusal),
        "give the dimension a number with --dim or --shape");
  }
  const Fraction scale = *fraction_of(*axis.scale);
  const double p = static_cast<double>(scale.numerator), q = static_cast<double>(scale.denominator);
  AxisPhases phases{scale, {}};
  AxisTable& table = phases.table;
  const ResizeAxis sample{2 * scale.denominator, 2 * scale.numerator, p / q};  // of several elements
  table.taps = kernel_of(method, *sample.scale).taps;
  for (table.rows = 0; table.rows < scale.numerator; ++table.rows) {
    add_weighted_row(table, 0, *sample.scale, method,
                     source_of(sample, method.coordinates, static_cast<double>(table.rows)));
  }
  drop_idle_taps(table);
  return phases;
}

Dim scaled_size(Dim in, double scale) {
  constexpr std::int64_t kMostTried = 1 << 20;
  const std::optional<Fraction> fraction = fraction_of(scale);
  const std::int64_t low = lowest(in), high = highest(in);
  bool is_exact = fraction && high - low <= kMostTried;
  for (std::int64_t n = low; n <= high && is_exact; ++n) {
    const float product = static_cast<float>(n) * static_cast<float>(scale);
    is_exact =
        floor_div(n * fraction->numerator, fraction->denominator) == static_cast<std::int64_t>(product);
  }
  if (!is_exact) {
    operator_error(
        fmt::format("sizes that only a run knows are scaled by fractions of small numbers, not by {}", scale),
        "give the dimension a number with --dim or --shape, or the model the sizes of the result");
  }
  return floor_div(in * fraction->numerator, fraction->denominator);
}

}  // namespace gcompile::ir
