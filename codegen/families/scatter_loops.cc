// scatter.loops: for every element the updates that go to it as plain loops, of every element type and size:
// so that no scatter is refused for want of a faster kernel.

#include "codegen/kinds/plain_loops.h"

namespace gcompile {

const KernelFamily& family_scatter_loops() {
  static const KernelFamily family = plain_loops_family("scatter.loops", ir::Kind::kScatter);
  return family;
}

}  // namespace gcompile
