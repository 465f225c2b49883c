// conv_transpose.loops: the sum over its terms as plain loops, of every element type, with weights of the
// run: so that no conv transpose is refused for want of a faster kernel.

#include "codegen/kinds/plain_loops.h"

namespace gcompile {

const KernelFamily& family_conv_transpose_loops() {
  static const KernelFamily family = plain_loops_family("conv_transpose.loops", ir::Kind::kConvTranspose);
  return family;
}

}  // namespace gcompile
