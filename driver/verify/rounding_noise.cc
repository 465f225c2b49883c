#include "driver/verify/rounding_noise.h"

#include <algorithm>
#include <cmath>

namespace gcompile {
namespace {

/// Whether a few bits hold the significand, at most half of those that the type has: such values come out of
/// sums and products without rounding.
bool is_short(double value, ir::ElementType type) {
  const int bits = std::min(12, -std::ilogb(unit_roundoff(type)) / 2);
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(value, &exponent), bits);
  return scaled == std::floor(scaled);
}

}  // namespace

double unit_roundoff(ir::ElementType type) {
  switch (type) {
    case ir::ElementType::kFloat64:
      return 0x1p-53;
    case ir::ElementType::kFloat32:
      return 0x1p-24;
    case ir::ElementType::kFloat16:
      return 0x1p-11;
    case ir::ElementType::kBFloat16:
      return 0x1p-8;
    default:
      return 0;
  }
}

ir::Tensor moved(const ir::Tensor& tensor, double units, std::uint64_t seed) {
  const double part = units * unit_roundoff(tensor.element());
  if (part == 0) return tensor;
  ir::Tensor out = tensor;
  RandomInputs random(seed);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double value = tensor.real_at(i);
    const double step = part * random.uniform();
    if (!std::isfinite(value) || is_short(value, tensor.element())) continue;
    out.set(i, ir::Scalar::of_real(tensor.element(), value * (1 + step)));
  }
  return out;
}

double MovedRounding::inside(double value, ir::ElementType type, double count) {
  return std::isfinite(value) ? value * (1 + count * unit_roundoff(type) * random_.uniform()) : value;
}

ir::Tensor MovedRounding::result(const ir::Tensor& tensor, double count) {
  const std::uint64_t seed = (seed_ << 32) + ++results_;
  if (count <= ir::roundings_of_sum(1)) return moved(tensor, count, seed);
  // What is left of terms that cancel is rounded as they are: their size shows in the sums beside it.
  const double part = count * unit_roundoff(tensor.element());
  const std::int64_t line = tensor.shape().empty() ? 1 : std::int64_t{tensor.shape().back()};
  ir::Tensor out = tensor;
  RandomInputs random(seed);
  for (std::int64_t begin = 0; begin < tensor.count(); begin += line) {
    double squares = 0;
    for (std::int64_t i = begin; i < begin + line; ++i) {
      const double value = tensor.real_at(i);
      if (std::isfinite(value)) squares += value * value;
    }
    const double usual = std::sqrt(squares / static_cast<double>(line));
    for (std::int64_t i = begin; i < begin + line; ++i) {
      const double value = tensor.real_at(i);
      const double step = part * random.uniform() * std::max(std::fabs(value), usual / 2);
      if (!std::isfinite(value) || is_short(value, tensor.element())) continue;
      out.set(i, ir::Scalar::of_real(tensor.element(), value + step));
    }
  }
  return out;
}

void Noise::include(const Comparison& run) {
  line = run.line;
  worst_ratio = std::max(worst_ratio, run.worst_ratio);
  rms = std::max(rms, run.rms_error);
  std::int64_t run_near = 0;
  elements.resize(run.ratios.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = std::max(elements[i], run.ratios[i]);
    run_near += kNoiseMargin * static_cast<double>(run.ratios[i]) > 1 ? 1 : 0;
  }
  near = std::max({near, run_near, run.wrong});
}

namespace {

/// Elements that are out of their tolerance by more than the noise of their line explains.
std::int64_t unexplained(const Comparison& comparison, const Noise& noise) {
  if (noise.elements.size() != comparison.ratios.size()) return 0;
  const auto line = static_cast<std::size_t>(std::max<std::int64_t>(1, noise.line));
  std::int64_t count = 0;
  for (std::size_t begin = 0; begin + line <= noise.elements.size(); begin += line) {
    double squares = 0;
    for (std::size_t i = begin; i < begin + line; ++i) {
      const auto ratio = static_cast<double>(noise.elements[i]);
      squares += ratio * ratio;
    }
    const double usual = std::sqrt(squares / static_cast<double>(line));
    for (std::size_t i = begin; i < begin + line; ++i) {
      const auto ratio = static_cast<double>(comparison.ratios[i]);
      const double own = std::max(static_cast<double>(noise.elements[i]), usual);
      count += ratio > 1 && ratio > kNoiseMargin * own ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

bool is_noise(const Comparison& comparison, const Noise& noise) {
  return comparison.mismatch.empty() && comparison.worst_ratio <= kNoiseMargin * noise.worst_ratio &&
         comparison.rms_error <= kNoiseMargin * noise.rms &&
         static_cast<double>(comparison.wrong) <= kNoiseMargin * static_cast<double>(noise.near) &&
         unexplained(comparison, noise) <= comparison.wrong / kOddElements;
}

}  // namespace gcompile
