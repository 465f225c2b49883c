#pragma once
// Rotary position embedding, shared by the operators that have it.

#include "ir/ops/rewrite.h"

namespace gcompile::ir {

/// The first `size` elements of the last axis of x are pairs (a, b), which become (a cos - b sin, a sin + b
/// cos); the rest stays. `cos` and `sin` have one element per pair on their last axis and broadcast to x. The
/// pairs are neighbours when interleaved, else the two halves.
struct Rotation {
  ValueId cos, sin;
  std::int64_t size = 0;
  bool interleaved = false;
};
ValueId emit_rotation(RewriteContext& context, ValueId x, const Rotation& rotation);

}  // namespace gcompile::ir
