#include "codegen/kernels/precision.h"

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

}  // namespace gcompile
