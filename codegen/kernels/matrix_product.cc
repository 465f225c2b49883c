#include "codegen/kernels/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>

namespace gcompile {

ir::Dim stride_along(std::size_t rank, const ir::Shape& shape, const ir::Shape& strides, std::size_t axis) {
  const std::size_t lead = rank - shape.size();
  return axis < lead || shape[axis - lead] == 1 ? ir::Dim() : strides[axis - lead];
}

ProductAxes product_axes(const ir::Shape& result, const ir::Shape& a, const ir::Shape& a_strides,
                         const ir::Shape& b) {
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

Product::Product(const ir::Problem& problem)
    : a(problem.shape(0)),
      b(problem.shape(1)),
      out(problem.results[0].shape),
      a_strides(problem.operands[0].strides),
      depth(a.back()),
      columns(out.back()),
      axes(product_axes(out, a, a_strides, b)) {}

ir::Shape Product::packed_strides(ir::Dim matrix) const {
  ir::Shape strides = ir::row_major_strides(b);
  for (std::size_t i = 0; i + 2 < b.size(); ++i) strides[i] = strides[i] / (depth * columns) * matrix;
  return strides;
}

std::int64_t Product::matrices() const {
  return ir::element_count(b) / std::max<std::int64_t>(1, depth * columns);
}

BatchLoops open_batch_loops(const Product& product, CodeText& code, SizeParameters& sizes) {
  BatchLoops out{0, "a"};
  for (std::size_t axis = 0; axis < product.axes.batch; ++axis) {
    if (product.out[axis] == 1) continue;
    ++out.loops;
    code.open(
        fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, sizes(product.out[axis])));
    const ir::Dim step = product.along_a(axis);
    if (step != 0) out.a += fmt::format(" + {} * b{}", sizes(step), axis);
  }
  return out;
}

std::string batch_entry_of_b(const Product& product, const ir::Shape& strides, SizeParameters& sizes) {
  std::string b = "b";
  for (std::size_t axis = 0; axis < product.axes.batch; ++axis) {
    const ir::Dim step = product.along_b(strides, axis);
    if (product.out[axis] != 1 && step != 0) b += fmt::format(" + {} * b{}", sizes(step), axis);
  }
  return b;
}

NeededOrder needs_dense_rows(const ir::Problem& problem, std::size_t i) {
  const ir::ProblemOperand& operand = problem.operands[i];
  if (i != 0 || operand.shape.back() == 1 || operand.strides.back() == 1) return std::nullopt;
  return std::vector<int>{};
}

bool takes_dense_formulas(const ir::Problem& problem) { return problem.operands[0].strides.back() == 1; }

Refusal refuse_block_weights(const ir::Problem& problem) {
  return std::get<ir::ProductWork>(problem.work).block > 0 ? Refusal("weights with scales of their own")
                                                           : std::nullopt;
}

}  // namespace gcompile
