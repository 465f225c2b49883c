#include "ir/ops/reshaped.h"

#include <algorithm>

namespace gcompile::ir {

void become_reshape(RewriteContext& context, ValueId value, const Shape& shape) {
  Attributes attributes;
  if (std::find(shape.begin(), shape.end(), Dim(0)) != shape.end()) {
    attributes.set("allowzero", std::int64_t{1});
  }
  context.replace_with("Reshape", {value, context.constant_ints(shape)}, std::move(attributes));
}

}  // namespace gcompile::ir
