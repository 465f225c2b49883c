#pragma once
// Weights of few bits as the kernels of gcrt/cpu/product/decode.h read them.

#include "codegen/packing/packing.h"

namespace gcompile {

/// Integers of int8 (K, N) in `bits` bits each, 4 or 8, less the lowest of these, in words of 32 bits with
/// consecutive k from the lowest bits on: [ceil(N / 32)][ceil(K / integers of a word)][32], zero padded.
Packing pack_words(const ir::Tensor& weights, int bits);
/// int8 or float32 (K, N), denormals flushed to zero: [ceil(N / 32)][K][32], zero padded.
Packing pack_wide_panels(const ir::Tensor& weights);

}  // namespace gcompile
