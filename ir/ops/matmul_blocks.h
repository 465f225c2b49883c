#pragma once
// A product by integers with a scale for each column of each block of rows (internal): what is made of packed
// weights, so that a kernel decodes them where it multiplies.

#include "ir/ops/support.h"

namespace gcompile::ir {

/// float32 (K, N) that integers of 8 bits (K, N) stand for: (w - zero) * scale, with `scales` and `zeros`
/// (ceil(K / block), N); `zeros` are int8 or float32, or nullptr for 0.
Tensor decoded(const Tensor& weights, const Tensor& scales, const Tensor* zeros, std::int64_t block);

}  // namespace gcompile::ir
