// scan.loops: the sum over what lies before every element as plain loops, of every element type and size: so
// that no scan is refused for want of a faster kernel.

#include "codegen/kinds/plain_loops.h"

namespace gcompile {

const KernelFamily& family_scan_loops() {
  static const KernelFamily family = plain_loops_family("scan.loops", ir::Kind::kScan);
  return family;
}

}  // namespace gcompile
