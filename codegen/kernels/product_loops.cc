// product.loops: the sum over its terms as plain loops, of every element type, with weights of the run: so
// that no product is refused for want of a faster kernel.

#include "codegen/kernels/plain_loops.h"

namespace gcompile {

const KernelFamily& family_product_loops() {
  static const KernelFamily family = plain_loops_family("product.loops", ir::Kind::kProduct);
  return family;
}

}  // namespace gcompile
