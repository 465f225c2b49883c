#include "passes/rules/constant_products.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "ir/tensors/constant_range.h"
#include "passes/rules/support.h"

namespace gcompile::passes {

using ir::Tensor;

namespace {

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> out(static_cast<std::size_t>(tensor.count()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = tensor.real_at(static_cast<std::int64_t>(i));
  return out;
}

/// The largest magnitude in each column.
std::vector<double> column_maxima(const Tensor& matrix) {
  std::vector<double> out(static_cast<std::size_t>(matrix.shape()[1]), 0.0);
  for (std::int64_t i = 0; i < matrix.count(); ++i) {
    double& largest = out[static_cast<std::size_t>(i) % out.size()];
    largest = std::max(largest, std::abs(matrix.real_at(i)));
  }
  return out;
}

}  // namespace

bool is_affordable(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  constexpr double kMost = 1 << 29;
  return static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(columns) <= kMost;
}

Tensor product_of(const Tensor& a, const Tensor& b) {
  const std::int64_t rows = a.shape()[0], depth = a.shape()[1], columns = b.shape()[1];
  const std::vector<double> left = numbers_of(a), right = numbers_of(b);
  std::vector<double> sums(static_cast<std::size_t>(rows * columns), 0.0);
  for (std::int64_t m = 0; m < rows; ++m) {
    poll_interrupt();
    double* const to = sums.data() + m * columns;
    for (std::int64_t k = 0; k < depth; ++k) {
      const double factor = left[static_cast<std::size_t>(m * depth + k)];
      const double* const from = right.data() + k * columns;
      for (std::int64_t n = 0; n < columns; ++n) to[n] += factor * from[n];
    }
  }
  return computed({a.element(), {rows, columns}},
                  [&](std::int64_t i) { return sums[static_cast<std::size_t>(i)]; });
}

bool keeps_columns(const Tensor& product, const Tensor& a, const Tensor& b) {
  if (!all_finite(product) || !all_finite(a) || !all_finite(b)) return false;
  const std::vector<double> largest = column_maxima(product), factors = column_maxima(b);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    if (largest[i] < ir::least_normal(product.element()) && factors[i] != 0) return false;
  }
  return true;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return computed(a.type(), [&](std::int64_t i) { return a.real_at(i) + b.real_at(i); });
}

std::optional<std::vector<double>> column_bias(const Match& match, std::string_view name,
                                               std::string_view of) {
  const ir::Shape& shape = match.shape(of);
  return along_axis(match.constant(name), shape, static_cast<int>(shape.size()) - 1);
}

Tensor row_times(const std::vector<double>& row, const Tensor& matrix) {
  const std::int64_t columns = matrix.shape()[1];
  std::vector<double> sums(static_cast<std::size_t>(columns), 0.0);
  for (std::int64_t i = 0; i < matrix.count(); ++i)
    sums[static_cast<std::size_t>(i % columns)] +=
        row[static_cast<std::size_t>(i / columns)] * matrix.real_at(i);
  return computed({matrix.element(), {columns}},
                  [&](std::int64_t i) { return sums[static_cast<std::size_t>(i)]; });
}

}  // namespace gcompile::passes
