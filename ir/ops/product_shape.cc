#include "ir/ops/product_shape.h"

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {

Shape product_shape(const Shape& a, const Shape& b) {
  if (a.size() < 2 || b.size() < 2) {
    operator_error(fmt::format("both factors must have rank 2 or more: {} x {}", to_string(a), to_string(b)));
  }
  if (!assume_equal(a[a.size() - 1], b[b.size() - 2])) {
    operator_error(fmt::format("inner dimensions differ: {} x {}", to_string(a), to_string(b)));
  }
  Shape out = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  out.push_back(a[a.size() - 2]);
  out.push_back(b[b.size() - 1]);
  return out;
}

}  // namespace gcompile::ir
