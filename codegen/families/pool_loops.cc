// pool.loops: the sum over its terms as plain loops, of every element type, with weights of the run: so that
// no pool is refused for want of a faster kernel.

#include "codegen/kinds/plain_loops.h"

namespace gcompile {

const KernelFamily& family_pool_loops() {
  static const KernelFamily family = plain_loops_family("pool.loops", ir::Kind::kPool);
  return family;
}

}  // namespace gcompile
