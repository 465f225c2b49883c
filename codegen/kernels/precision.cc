#include "codegen/kernels/precision.h"

#include <algorithm>
#include <cmath>

#include "ir/diagnostics.h"

namespace gcompile {

const PrecisionFacts& facts_of(Precision precision) {
  for (const PrecisionFacts& facts : kPrecisions) {
    if (facts.precision == precision) return facts;
  }
  GC_CHECK(false);
}

std::optional<Precision> precision_from_name(std::string_view name) {
  for (const PrecisionFacts& facts : kPrecisions) {
    if (name == facts.name) return facts.precision;
  }
  return {};
}

double product_tolerance(Precision precision) {
  return precision == Precision::kFp32 ? 0 : std::ldexp(16.0, -facts_of(precision).significant_bits);
}

bool fits_float16(const ir::Tensor& weights) {
  double largest = 0;
  for (std::int64_t i = 0; i < weights.count(); ++i) {
    const double magnitude = std::fabs(weights.real_at(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest == 0 ||
         (largest >= std::ldexp(1.0, -14) && std::isfinite(ir::round_to(ir::ElementType::kFloat16, largest)));
}

}  // namespace gcompile
