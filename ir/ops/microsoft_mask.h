#pragma once
// What the attention operators of com.microsoft add to their scores.

#include "ir/ops/rewrite.h"

namespace gcompile::ir {

/// Scores are (batch, heads, rows, columns), the last `rows` of the columns in the order of the rows.
struct ScoreSizes {
  Dim batch;
  std::int64_t heads;
  Dim rows, columns;
};

/// Operand `mask` names the columns that take part: 1-D by their number for each sample of the batch, or as
/// ends and then starts; else nonzero where they do. Operand `bias` is added. Throws OperatorError when one
/// does not fit.
void require_score_bias(const NodeView& node, int mask, int bias, const ScoreSizes& sizes);

/// What is added to the scores; hidden columns get the attribute mask_filter_value, which is finite. Invalid
/// without operands.
ValueId emit_score_bias(RewriteContext& context, int mask, int bias, const ScoreSizes& sizes);

}  // namespace gcompile::ir
