#include "ir/tensors/constant_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gcompile::ir {
namespace {

bool all_finite(double a, double b) { return std::isfinite(a) && std::isfinite(b); }

}  // namespace

double least_normal(ElementType type) {
  if (type == ElementType::kFloat64) return std::numeric_limits<double>::min();
  return type == ElementType::kFloat16 ? 0x1p-14 : 0x1p-126;  // float32, bfloat16
}

bool keeps_sum(double sum, double a, double b) { return std::isfinite(sum) || !all_finite(a, b); }

ProductRange::ProductRange(ElementType type, std::size_t sums)
    : least_normal_(ir::least_normal(type)), largest_(sums), loses_(sums) {}

void ProductRange::add(double product, double a, double b, std::size_t sum) {
  if (!all_finite(a, b)) return;
  if (!std::isfinite(product)) is_lost_ = true;
  const double magnitude = std::abs(product);
  const bool is_small = magnitude < least_normal_;
  if (largest_.empty()) {
    is_lost_ |= is_small && a != 0 && b != 0;
    return;
  }
  largest_[sum] = std::max(largest_[sum], magnitude);
  if (is_small && std::abs(a) >= least_normal_ && std::abs(b) >= least_normal_) loses_[sum] = true;
}

bool ProductRange::is_kept() const {
  for (std::size_t i = 0; i < largest_.size(); ++i) {
    if (loses_[i] && largest_[i] < least_normal_) return false;
  }
  return !is_lost_;
}

}  // namespace gcompile::ir
