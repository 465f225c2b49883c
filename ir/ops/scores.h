#pragma once
// What classifiers and regressors of ai.onnx.ml do with their sums, as ONNX Runtime does it where the specification leaves
// it open: one number per class, or one for two classes.

#include <string>
#include <vector>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {

enum class PostTransform : std::uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

/// The text attribute "post_transform".
PostTransform post_transform_of(const Attributes& attributes);

/// (rows, columns) of several columns; one column is only transformed by kProbit.
ValueId emit_post_transform(RewriteContext& context, ValueId scores, PostTransform transform);

/// Scores of two classes from one number s, (rows, 1): (1 - s, s) or (-s, s), but both logistic functions for kLogistic. kProbit
/// is refused by require_pair.
enum class Pair : std::uint8_t { kComplement, kNegative };
ValueId emit_pair(RewriteContext& context, ValueId score, PostTransform transform, Pair pair);
void require_pair(PostTransform transform);

/// Class labels. Strings are what a run has no type for: their positions stand for them.
struct ClassLabels {
  std::vector<std::int64_t> numbers;
  bool are_strings = false;
  std::int64_t count() const { return static_cast<std::int64_t>(numbers.size()); }
};
ClassLabels class_labels(const Attributes& attributes, std::string_view of_numbers);

/// (rows, classes) -> (rows): the label of the first largest score.
ValueId emit_best_label(RewriteContext& context, ValueId scores, const ClassLabels& labels);
/// (rows, 1) -> (rows): `above` where the score is above the threshold, else `below`.
ValueId emit_label_above(RewriteContext& context, ValueId score, double threshold, std::int64_t above,
                         std::int64_t below);

/// Numbers in rows, and one row where there is one axis, as (rows, features) in float32; with `keeps_double`, float64
/// stays as it is.
ValueId emit_rows(RewriteContext& context, int operand, bool keeps_double = false);
/// The shape of that; refuses what is no row of numbers.
Shape rows_of(const NodeView& node, int operand);

/// In the type of x: x (rows, features) times `targets` rows of weights, plus a number for each where there are any.
ValueId emit_affine(RewriteContext& context, ValueId x, const std::vector<float>& weights,
                    const std::vector<float>& shifts, std::int64_t targets);

}  // namespace gcompile::ir
