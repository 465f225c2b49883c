#include "ir/forms/rebuild.h"

#include <utility>

namespace gcompile::ir {

LoopForm rebuild(const LoopForm& form, const std::function<int(Dag&, const ScalarNode&)>& leaf, Dag start) {
  LoopForm out;  // all but the expressions
  out.dag = std::move(start);
  out.extents = form.extents;
  out.parallel = form.parallel;
  out.stages = form.stages;
  out.final_over_reduced = form.final_over_reduced;
  out.regions = form.regions;
  out.store = form.store;
  out.checks = form.checks;
  const std::vector<Index> axes = form.identity();
  const std::vector<Range> ranges = form.ranges();
  const auto move = [&](int root) {
    return out.dag.import(form.dag, root, axes, ranges,
                          [&](const ScalarNode& node) { return leaf(out.dag, node); });
  };
  for (Stage& stage : out.stages) stage.root = move(stage.root);
  for (Region& region : out.regions) region.root = move(region.root);
  for (BoundsCheck& check : out.checks) check.scalar = move(check.scalar);
  return out;
}

}  // namespace gcompile::ir
