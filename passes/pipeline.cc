#include "passes/passes.h"

namespace gcompile::passes {

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes = {
      {"fold", "evaluates nodes whose operands are known", 0, true, fold_constants},
      {"decompose", "expresses operators in simpler ones", 0, true, decompose},
      {"fold-again", "evaluates what decomposition left constant", 0, true, fold_constants},
      {"dce", "removes what no output needs", 0, true, eliminate_dead_code},
      {"forms", "lowers every node to its form", 0, true, attach_forms},
      {"layout", "chooses channels-last or row-major for every value", 0, true, assign_layout},
      {"fuse", "merges element-wise chains into loops and epilogues", 1, false, fuse},
      {"dce-final", "removes what fusion left behind", 0, true, eliminate_dead_code},
  };
  return passes;
}

}  // namespace gcompile::passes
