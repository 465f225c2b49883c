#include "codegen/choice/precision.h"

#include <cmath>

#include "base/diagnostics.h"

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

bool is_reduced(Precision precision) { return facts_of(precision).significant_bits < 24; }

double product_tolerance(Precision precision) {
  return is_reduced(precision) ? std::ldexp(16.0, -facts_of(precision).significant_bits) : 0;
}

}  // namespace gcompile
