#include "ir/ops/rounded_arithmetic.h"

namespace gcompile::ir {

std::vector<int> RoundedArithmetic::cubic_weights(double a, int ratio) const {
  const auto polynomial = [&](int d, double c3, double c2, double c1, double c0) {
    const int quadratic = number(c2);
    int sum = add(mul(number(c3), d), quadratic);
    for (const double c : {c1, c0}) {
      const int coefficient = number(c);
      sum = add(mul(sum, d), coefficient);
    }
    return sum;
  };
  // `near` is the polynomial of distances up to 1, `far` that of those beyond.
  const auto near = [&](int d) { return polynomial(d, a + 2, -(a + 3), 0, 1); };
  const auto far = [&](int d) { return polynomial(d, a, -5 * a, 8 * a, -4 * a); };
  const int one = number(1), rest = sub(one, ratio);
  return {far(add(ratio, one)), near(ratio), near(rest), far(add(rest, one))};
}

}  // namespace gcompile::ir
