#include "codegen/kinds/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace gcompile {

namespace {

/// The stride of an operand whose axes fall to the last ones of a result of `rank` axes.
ir::Dim stride_along(std::size_t rank, const ir::Shape& shape, const ir::Shape& strides, std::size_t axis) {
  const std::size_t lead = rank - shape.size();
  return axis < lead || shape[axis - lead] == 1 ? ir::Dim() : strides[axis - lead];
}

/// The rows of one matrix that begin with those of `first`; `free`: the axes that may be rows.
ProductAxes rows_from(std::size_t first, std::vector<std::size_t> free, const ir::Shape& result,
                      const std::function<ir::Dim(std::size_t)>& along_a) {
  ProductAxes out;
  out.row_stride = along_a(first);
  out.row_count = 1;
  auto next = std::find(free.begin(), free.end(), first);
  while (next != free.end()) {
    out.rows.insert(out.rows.begin(), static_cast<int>(*next));
    out.row_count *= result[*next];
    free.erase(next);
    next = std::find_if(free.begin(), free.end(),
                        [&](std::size_t axis) { return along_a(axis) == out.row_stride * out.row_count; });
  }
  return out;
}

}  // namespace

ir::Dim left_stride(std::size_t rank, const ir::Shape& a, const ir::Shape& strides, std::size_t axis) {
  return axis + 1 == rank ? ir::Dim() : stride_along(rank, a, strides, axis);
}

ir::Dim right_stride(std::size_t rank, const ir::Shape& b, const ir::Shape& strides, std::size_t axis) {
  return axis + 2 == rank ? ir::Dim() : stride_along(rank, b, strides, axis);
}

ProductAxes product_axes(const ir::Shape& result, const ir::Shape& a, const ir::Shape& a_strides,
                         const ir::Shape& b) {
  const std::size_t matrix = result.size() - 2;
  const ir::Shape b_strides = ir::row_major_strides(b);
  const auto along_a = [&](std::size_t axis) { return left_stride(result.size(), a, a_strides, axis); };
  std::vector<std::size_t> free;  // innermost first
  for (std::size_t axis = matrix + 1; axis-- > 0;) {
    if (right_stride(result.size(), b, b_strides, axis) == 0 && result[axis] != 1) free.push_back(axis);
  }
  ProductAxes best{{static_cast<int>(matrix)}, result[matrix], a_strides[a.size() - 2], {}};
  for (const std::size_t first : free) {
    ProductAxes rows = rows_from(first, free, result, along_a);
    if (first == free[0] || ir::typical(rows.row_count) > ir::typical(best.row_count)) best = std::move(rows);
  }
  for (std::size_t axis = 0; axis <= matrix; ++axis) {
    const bool is_row =
        std::find(best.rows.begin(), best.rows.end(), static_cast<int>(axis)) != best.rows.end();
    if (!is_row && result[axis] != 1) best.batch.push_back(axis);
  }
  return best;
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
  for (const std::size_t axis : product.axes.batch) {
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
  for (const std::size_t axis : product.axes.batch) {
    const ir::Dim step = product.along_b(strides, axis);
    if (step != 0) b += fmt::format(" + {} * b{}", sizes(step), axis);
  }
  return b;
}

NeededOrder needs_dense_rows(const ir::Problem& problem, std::size_t i) {
  const ir::ProblemOperand& operand = problem.operands[i];
  if (i != 0 || operand.shape.back() == 1 || operand.strides.back() == 1) return std::nullopt;
  return std::vector<int>{};
}

bool takes_dense_formulas(const ir::Problem& problem) { return problem.operands[0].strides.back() == 1; }

Refusal refuse_packed_weights(const ir::Problem& problem) {
  return std::get<ir::ProductWork>(problem.work).block > 0 ? Refusal("weights with scales of their own")
                                                           : std::nullopt;
}

}  // namespace gcompile
