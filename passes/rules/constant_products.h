#pragma once
// Products and sums of weights, computed in double and rounded once.

#include <optional>
#include <vector>

#include "passes/engine/rule.h"

namespace gcompile::passes {

/// Whether the compiler has the time for a product of (rows, depth) and (depth, columns).
bool is_affordable(std::int64_t rows, std::int64_t depth, std::int64_t columns);
/// The product of two matrices.
ir::Tensor product_of(const ir::Tensor& a, const ir::Tensor& b);
/// Whether the product can stand for its factors: it is finite, and the largest weight of each column is a
/// normal number (DESIGN law 5), unless b has zeros alone there.
bool keeps_columns(const ir::Tensor& product, const ir::Tensor& a, const ir::Tensor& b);
/// The sum of two tensors of one type.
ir::Tensor sum_of(const ir::Tensor& a, const ir::Tensor& b);

/// The constant bound to `name` as one value for each element of the last axis of the value bound to `of`.
std::optional<std::vector<double>> column_bias(const Match& match, std::string_view name,
                                               std::string_view of);
/// A row times a matrix.
ir::Tensor row_times(const std::vector<double>& row, const ir::Tensor& matrix);

}  // namespace gcompile::passes
