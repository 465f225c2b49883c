#pragma once
// The core that all attention operators share.

#include <array>
#include <optional>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {

/// softmax(scale * Q K' + mask) V, Q of (batch, query heads, rows, size), K and V of (batch, heads, columns,
/// size) with the past in front. Query heads are a multiple of the heads.
struct AttentionCore {
  ValueId q, k, v;
  double scale = 1;
  double softcap = 0;   // > 0: scores are cap * tanh(scores / cap)
  ValueId mask;         // bool (true: takes part) or added; broadcasts to the scores
  bool empties = true;  // a mask can leave a row without columns: such rows give zeros
  ValueId lengths;      // int64 (batch): columns from there on are masked
  // Row i is at the position i + past, or with lengths at i + length - rows. It sees columns
  bool causal = false;                 // up to its position
  std::int64_t left = -1, right = -1;  // from so many before it, up to so many behind it; -1: all
  Dim past = 0;
  ValueId sinks;                         // (query heads): the softmax of each has one more score, of no value
  std::optional<ElementType> precision;  // of the softmax
};
struct AttentionValues {
  ValueId result;  // (batch, query heads, rows, value size), type of V
  /// Scores: scaled products, after softcap, after masks, after the softmax (type of the softmax).
  std::array<ValueId, 4> scores;
};
AttentionValues emit_attention(RewriteContext& context, const AttentionCore& core);
/// scale * Q K' alone, in the type of both.
ValueId emit_attention_scores(RewriteContext& context, const AttentionCore& core);

/// (batch, rows, heads * size) -> (batch, heads, rows, size), and back.
ValueId emit_split_heads(RewriteContext& context, ValueId value, std::int64_t heads);
ValueId emit_join_heads(RewriteContext& context, ValueId value);

}  // namespace gcompile::ir
