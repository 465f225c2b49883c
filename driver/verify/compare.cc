#include "driver/verify/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gcompile {
namespace {

/// The error in units of what is allowed.
double error_ratio(double expected, double actual, const Tolerance& tolerance, double rms) {
  if (std::isnan(expected) || std::isnan(actual)) {
    return std::isnan(expected) && std::isnan(actual) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (expected == actual) return 0;
  if (!std::isfinite(expected) || !std::isfinite(actual)) return std::numeric_limits<double>::infinity();
  const double allowed = tolerance.largest(expected, rms);
  const double error = std::fabs(expected - actual);
  return allowed > 0 ? error / allowed : std::numeric_limits<double>::infinity();
}

/// Neighbours in memory that share what noise they have, as pixels of a row or states of a step: a few
/// elements tell little of theirs, least of all where states flip.
constexpr std::int64_t kFewest = 8;

std::int64_t line_of(const ir::Shape& shape) {
  std::int64_t line = 1;
  for (auto size = shape.rbegin(); size != shape.rend() && line < kFewest; ++size)
    line *= std::int64_t{*size};
  return line;
}

void compare_integers(const ir::Tensor& expected, const ir::Tensor& actual, bool quantised, Comparison& out) {
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const ir::Scalar a = expected.at(i), b = actual.at(i);
    if (a.integer == b.integer) continue;
    ++different;
    const double distance = std::fabs(a.as_double() - b.as_double());
    const bool near = quantised && distance <= 1;
    if (!near) ++out.wrong;
    if (distance > out.worst_ratio || out.worst < 0) {
      out.worst = i;
      out.worst_ratio = distance;
      out.expected = a.as_double();
      out.actual = b.as_double();
    }
  }
  if (different * 1000 > expected.count()) out.wrong = std::max(out.wrong, different);
}

}  // namespace

double Tolerance::typical(double ref, double rms) const {
  return relative * std::fabs(ref) + absolute * std::max(1.0, rms) + product * std::max(kSmallestScale, rms);
}

double Tolerance::largest(double ref, double rms) const {
  return typical(ref, rms) + product * (4 * std::fabs(ref) + 3 * std::max(kSmallestScale, rms));
}

double root_mean_square(const ir::Tensor& tensor) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double value = tensor.real_at(i);
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

Tolerance tolerance_of(ir::ElementType type, Precision precision) {
  const double product = product_tolerance(precision);
  switch (type) {
    case ir::ElementType::kFloat32:
    case ir::ElementType::kFloat64:
      return {1e-4, 1e-5, product};
    case ir::ElementType::kFloat16:
      return {1e-2, 1e-3, product};
    case ir::ElementType::kBFloat16:
      return {8e-2, 8e-3, product};
    default:
      return {};
  }
}

Comparison compare(const ir::Tensor& expected, const ir::Tensor& actual, bool quantised,
                   Precision precision) {
  Comparison out;
  if (expected.type() != actual.type()) {
    out.same = false;
    out.mismatch = fmt::format("expected {}, got {}", to_string(expected.type()), to_string(actual.type()));
    return out;
  }
  if (!is_float(expected.element())) {
    compare_integers(expected, actual, quantised, out);
  } else {
    const Tolerance tolerance = tolerance_of(expected.element(), precision);
    const double rms = root_mean_square(expected);
    double squares = 0;
    std::int64_t finite = 0;
    out.line = line_of(expected.shape());
    out.ratios.reserve(static_cast<std::size_t>(expected.count()));
    for (std::int64_t i = 0; i < expected.count(); ++i) {
      const double a = expected.real_at(i), b = actual.real_at(i);
      const double ratio = error_ratio(a, b, tolerance, rms);
      out.ratios.push_back(static_cast<float>(ratio));
      if (ratio > 1) ++out.wrong;
      if (ratio > out.worst_ratio) {
        out.worst = i;
        out.worst_ratio = ratio;
        out.expected = a;
        out.actual = b;
      }
      if (std::isfinite(a) && std::isfinite(b)) {
        squares += (a - b) * (a - b);
        ++finite;
      }
    }
    if (finite > 0) out.rms_error = std::sqrt(squares / static_cast<double>(finite));
    if (tolerance.product > 0) out.rms_ratio = out.rms_error / tolerance.typical(rms, rms);
  }
  out.same = out.wrong == 0 && out.rms_ratio <= 1;
  return out;
}

std::string position_text(const ir::Shape& shape, std::int64_t index) {
  std::string text;
  for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) {
    text = fmt::format("{}{}{}", index % *dim, text.empty() ? "" : ", ", text);
    index /= *dim;
  }
  return "[" + text + "]";
}

}  // namespace gcompile
