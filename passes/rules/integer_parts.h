#pragma once
// Sums of products of 16-bit integers: where a proof says that they fit into int32, and where those of parts
// of the input channels do.

#include <span>

#include "ir/tensors/tensor.h"

namespace gcompile::passes {

/// The weight of column n, input channel c and tap t lies at n * column_step + c * channel_step + t.
struct WeightAxes {
  std::int64_t columns = 0, column_step = 1;
  std::int64_t channels = 0, channel_step = 1;
  std::int64_t taps = 1;
};

/// What the other factor can be, less its zero point.
struct FactorRange {
  std::int64_t low, high;
};

/// Sums of 16-bit integers stay below it, and so does a bias that is added to them with kMostOfShortBias: the
/// first is nearly all of int32, because a part more costs a tensor of floats, and biases are far below.
constexpr std::int64_t kMostOfShortBias = std::int64_t{1} << 28;
constexpr std::int64_t kMostOfShortSum = (std::int64_t{1} << 31) - kMostOfShortBias;

/// The number of input channels, a part, so that for all factors in the range the sums over every part, the
/// first from channel 0 on, stay below kMostOfShortSum: as few parts of about equal size as do. 0: no such
/// parts. `zeros`: of the weights, one or one for each column.
std::int64_t channels_of_exact_sums(const ir::Tensor& weights, std::span<const std::int64_t> zeros,
                                    const WeightAxes& axes, const FactorRange& range);

/// Entries [begin, end) along `axis`.
ir::Tensor part_along(const ir::Tensor& tensor, int axis, std::int64_t begin, std::int64_t end);

}  // namespace gcompile::passes
