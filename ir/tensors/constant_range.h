#pragma once
// Constants that are made of others when a model is compiled, as a * b of (x * a) * b, and when they may
// stand for them. In range both are the same real number but for rounding; where a * b overflows, 0 times it
// is NaN, and where it underflows, a large x times it has lost its digits.

#include <cstddef>
#include <vector>

#include "ir/tensors/element_type.h"

namespace gcompile::ir {

/// The least magnitude that a type of floats holds with all its digits. Denormal numbers lie below; most
/// kernels take them for zero.
double least_normal(ElementType type);

/// Whether a sum or a difference of the two can stand for them: it is finite, or one of them is not.
bool keeps_sum(double sum, double a, double b);

/// Whether constants can stand for the factors that they are products of. A product is finite unless a factor
/// is not, and a normal number unless a factor is zero. Of weights denormal numbers are zeros (DESIGN law 5),
/// factors as well as products, as long as a larger one goes into the same sum.
class ProductRange {
 public:
  /// Products are of `type`, and go into one of `sums` sums if they are weights; 0: they are none.
  explicit ProductRange(ElementType type, std::size_t sums = 0);
  /// The product of the constant `a` and the number `b`.
  void add(double product, double a, double b, std::size_t sum = 0);
  bool is_kept() const;

 private:
  double least_normal_;
  bool is_lost_ = false;
  std::vector<double> largest_;  // of every sum
  std::vector<bool> loses_;      // some product of the sum is no normal number
};

}  // namespace gcompile::ir
