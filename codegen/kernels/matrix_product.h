#pragma once
// How the axes of a matrix product's operands and result fall to rows, columns and batch entries.

#include <vector>

#include "ir/tensor.h"

namespace gcompile {

/// Element stride of an operand of `shape` along an axis of a result of `rank` axes; 0 where it broadcasts.
std::int64_t stride_along(std::size_t rank, const ir::Shape& shape, const std::vector<std::int64_t>& strides,
                          std::size_t axis);

struct ProductAxes {
  std::vector<int> rows;  // result axes that the rows count, outermost first
  std::int64_t row_count = 0;
  std::int64_t row_stride = 0;  // elements of the left side
  std::size_t batch = 0;        // this many leading axes count batch entries
};

/// Batch axes with a shared right side and rows that continue the matrix become rows of one larger matrix.
ProductAxes product_axes(const ir::Shape& result, const ir::Shape& a,
                         const std::vector<std::int64_t>& a_strides, const ir::Shape& b);

}  // namespace gcompile
