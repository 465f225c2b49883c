#include "driver/rounding_noise.h"

#include <algorithm>
#include <cmath>

#include "driver/random_inputs.h"

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

double roundings(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  double result = 0;
  for (const ir::ValueId value : node.results) {
    if (value.valid()) result = std::max(result, static_cast<double>(graph.value(value).type.count()));
  }
  const auto elements = [&](std::size_t i) {
    return i < node.operands.size() && node.operands[i].valid()
               ? static_cast<double>(graph.value(node.operands[i]).type.count())
               : 1.0;
  };
  if (result == 0) return 1;
  const double terms = std::max({1.0, elements(0) / result, std::sqrt(elements(0) * elements(1) / result)});
  return 1 + std::sqrt(terms / 2);
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

void Noise::include(const Comparison& run) {
  worst_ratio = std::max(worst_ratio, run.worst_ratio);
  rms = std::max(rms, run.rms_error);
  wrong = std::max(wrong, run.wrong);
}

bool is_noise(const Comparison& comparison, const Noise& noise) {
  return comparison.mismatch.empty() && comparison.worst_ratio <= kNoiseMargin * noise.worst_ratio &&
         comparison.rms_error <= kNoiseMargin * noise.rms &&
         static_cast<double>(comparison.wrong) <= kNoiseMargin * static_cast<double>(noise.wrong);
}

}  // namespace gcompile
