#pragma once

#include "ir/ops/rewrite.h"

namespace gcompile::ir {

/// Adds gcompile.Lookup: for each element of x the value whose key it equals, NaN among them, else `other`. Keys may come
/// in any order, once each; they have the type of x.
ValueId emit_lookup(RewriteContext& context, ValueId x, const Tensor& keys, const Tensor& values,
                    const Scalar& other);
/// No key is there twice.
void require_distinct(const Tensor& keys, std::string_view what);

}  // namespace gcompile::ir
