#include "codegen/kernels/matrix_product.h"

namespace gcompile {

std::int64_t stride_along(std::size_t rank, const ir::Shape& shape, const std::vector<std::int64_t>& strides,
                          std::size_t axis) {
  const std::size_t lead = rank - shape.size();
  return axis < lead || shape[axis - lead] == 1 ? 0 : strides[axis - lead];
}

ProductAxes product_axes(const ir::Shape& result, const ir::Shape& a,
                         const std::vector<std::int64_t>& a_strides, const ir::Shape& b) {
  const std::size_t rank = result.size();
  ProductAxes axes;
  axes.rows = {static_cast<int>(rank) - 2};
  axes.row_count = result[rank - 2];
  axes.row_stride = a_strides[a.size() - 2];
  for (axes.batch = rank - 2; axes.batch > 0; --axes.batch) {
    const std::size_t axis = axes.batch - 1;
    const bool b_is_shared = stride_along(rank, b, ir::row_major_strides(b), axis) == 0;
    const bool continues = stride_along(rank, a, a_strides, axis) == axes.row_stride * axes.row_count;
    if (result[axis] != 1 && !(b_is_shared && continues)) break;
    axes.rows.insert(axes.rows.begin(), static_cast<int>(axis));
    axes.row_count *= result[axis];
  }
  return axes;
}

}  // namespace gcompile
