#pragma once
// What stands between a product and its softmax,
// brought into the one scale and the one mask of FusedAttention.

#include <limits>
#include <string>
#include <vector>

#include "ir/graph/operator.h"

namespace gcompile::passes {

struct AttentionStep {
  enum class Kind { kScale, kAdd, kKeep };
  Kind kind = Kind::kScale;
  double number = 1;  // kScale: factor; kKeep: the score of what is left out
  ir::ValueId mask;
  bool inverted = false;  // kKeep: true leaves out
};

/// softmax(scale * product + added), with `fill` in place of the scaled scores that are not `kept`.
struct AttentionMask {
  double scale = 1;
  ir::ValueId added, kept;  // both only where kernels take both
  double fill = -std::numeric_limits<double>::infinity();
  bool causal = false;  // row i sees columns up to i + past
  std::int64_t past = 0;
};

/// A score of this much or less has weight zero beside any that is not hidden, and what is added to it is
/// lost in rounding.
constexpr double kHiddenScore = -1e30;

/// Joins the steps, given from the softmax back to the product, with what `mask` says already of the product.
/// Returns why that cannot be, or an empty string. Without a context no nodes are added, and the operands of
/// `mask` mean nothing. Without `finite_fill` a number that is not -infinity becomes part of an added mask;
/// without `both` a number that does not hide may not stand before an added mask.
std::string combine_masks(const ir::Graph& graph, ir::RewriteContext* context,
                          const std::vector<AttentionStep>& steps, ir::Dim rows, ir::Dim columns,
                          bool finite_fill, bool both, AttentionMask& mask);

}  // namespace gcompile::passes
