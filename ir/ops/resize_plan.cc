#include "ir/ops/resize_plan.h"

#include <algorithm>
#include <cmath>

namespace gcompile::ir {
namespace {

/// Position in the input, in units of pixels, of output position `x`.
double source_of(const ResizeAxis& axis, const std::string& mode, double x) {
  const double in = static_cast<double>(axis.in);
  const double length = axis.scale * in;  // not rounded, as the reference has it
  if (mode == "align_corners") return axis.out == 1 ? 0 : x * (in - 1) / (length - 1);
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double extent = axis.roi_end - axis.roi_begin;
    if (axis.out == 1) return 0.5 * (axis.roi_begin + axis.roi_end) * (in - 1);
    return axis.roi_begin * (in - 1) + x * extent * (in - 1) / (length - 1);
  }
  if (mode == "pytorch_half_pixel" && axis.out == 1) return 0;
  double offset = 0;
  if (mode == "half_pixel_symmetric") offset = in / 2 * (1 - static_cast<double>(axis.out) / length);
  return offset + (x + 0.5) / axis.scale - 0.5;
}

double nearest_of(const ResizeMethod& method, double scale, double x) {
  if (method.nearest == "round_prefer_floor") return std::ceil(x - 0.5);
  if (method.nearest == "round_prefer_ceil") return std::floor(x + 0.5);
  if (method.nearest == "ceil" || (method.nearest == "simple" && scale < 1)) return std::ceil(x);
  return std::floor(x);
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

void add_weighted_row(AxisTable& table, const ResizeAxis& axis, const ResizeMethod& method, double x) {
  const Kernel kernel = kernel_of(method, axis.scale);
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
    if (method.exclude_outside && (position < 0 || position >= axis.in)) weight = 0;
    weights.push_back(weight);
    sum += weight;
    table.positions.push_back(std::clamp<std::int64_t>(position, 0, axis.in - 1));
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

}  // namespace

AxisTable axis_table(const ResizeAxis& axis, const ResizeMethod& method) {
  AxisTable table;
  table.taps = method.mode == "nearest" ? 1 : kernel_of(method, axis.scale).taps;
  const double last = static_cast<double>(axis.in - 1);
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double x = source_of(axis, method.coordinates, static_cast<double>(i));
    if (method.coordinates == "tf_crop_and_resize" && (x < 0 || x > last)) {
      if (table.rows == 0) ++table.begin;
      continue;
    }
    ++table.rows;
    if (method.mode == "nearest") {
      const double nearest = nearest_of(method, axis.scale, x);
      table.positions.push_back(static_cast<std::int64_t>(std::clamp(nearest, 0.0, last)));
    } else {
      add_weighted_row(table, axis, method, x);
    }
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
          fits = table.positions[static_cast<std::size_t>(i)] == floor_div(multiplier * i + offset, divisor);
        }
        if (fits) return AxisFormula{multiplier, offset, divisor};
      }
    }
  }
  return std::nullopt;
}

std::optional<AxisFormula> formula_of_all_sizes(ResizeAxis axis, const ResizeMethod& method) {
  const std::int64_t scale = axis.out / axis.in;
  std::optional<AxisFormula> found;
  for (axis.in = 4; axis.in >= 1; --axis.in) {
    axis.out = axis.in * scale;
    const AxisTable table = axis_table(axis, method);
    const std::optional<AxisFormula> formula = table.rows == axis.out ? formula_of(table) : std::nullopt;
    if (!formula) return std::nullopt;
    if (!found) found = formula;
    // Of one element, every formula that stays there is right: the one found is tried on it.
    for (std::int64_t i = 0; i < axis.out; ++i) {
      const std::int64_t position = floor_div(found->multiplier * i + found->offset, found->divisor);
      if (position != table.positions[static_cast<std::size_t>(i)]) return std::nullopt;
    }
  }
  return found->multiplier == 1 && found->divisor == scale ? found : std::nullopt;
}

}  // namespace gcompile::ir
