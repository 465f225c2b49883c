#pragma once
// softmax(scale * Q K' + mask) V as one operator (internal): what the pass "attention" makes of the products
// and the softmax between them.

#include "ir/ops/support.h"

namespace gcompile::ir {

/// Operands: Q (heads..., rows, size), K (key heads..., columns, size), V (key heads..., columns, value
/// size), and a mask that broadcasts to (heads..., rows, columns). A last heads axis that is g times as long
/// as that of K and V has g query heads in turn for every key head.
struct FusedAttention {
  static constexpr int kMask = 3;
  /// Sizes of heads and values that the kernels of every target take (gcrt/attention_limit.h).
  static constexpr std::int64_t kLargestHead = 256;
  Shape heads, key_heads;
  std::int64_t rows = 0, columns = 0, size = 0, value_size = 0;
  std::int64_t group = 1;  // query heads per key head
  bool has_mask = false;   // bool: false takes the score `fill`; float32: added to the score
  float scale = 1;         // of the products, before the mask
  float fill = 0;          // of what a bool mask leaves out
  bool causal = false;     // row i sees columns up to i + past, whatever the mask says
  std::int64_t past = 0;
  bool zero_if_empty = false;  // a row all of whose scores are -infinity is zero, not NaN

  /// (heads..., rows, columns).
  Shape scores() const;
};

/// Throws OperatorError where the operands do not fit.
FusedAttention fused_attention_of(const NodeView& node);

}  // namespace gcompile::ir
