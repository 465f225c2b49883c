#include "ir/ops/reduced.h"

#include <algorithm>

namespace gcompile::ir {

Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep) {
  Shape out;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      out.push_back(shape[i]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  return out;
}

ReducedAxes::ReducedAxes(const Shape& shape, const std::vector<int>& axes, bool keep) : index(shape.size()) {
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::binary_search(axes.begin(), axes.end(), i)) {
      if (keep) form.store.emplace_back(0);
      elements *= shape[at];
      continue;
    }
    index[at] = Index::axis(static_cast<int>(form.extents.size()));
    form.store.push_back(index[at]);
    form.extents.push_back(shape[at]);
  }
  form.parallel = static_cast<int>(form.extents.size());
  for (const int axis : axes) {
    index[axis] = Index::axis(static_cast<int>(form.extents.size()));
    form.extents.push_back(shape[axis]);
  }
}

void ReducedAxes::keep_shape() {
  form.final_over_reduced = true;
  form.store = index;
}

LoopForm sum_of_products(const LowerContext& context,
                         const std::function<int(Dag&, int i, std::vector<Index> index)>& load) {
  Shape loops = context.result(0).shape;
  const int rank = static_cast<int>(loops.size());
  const int rows = rank - 2, columns = rank - 1, depth = rank;
  loops.push_back(context.shape(0).back());
  LoopForm form = ReducedAxes(loops, {depth}, false).form;
  Dag& dag = form.dag;
  const auto factor = [&](int i, int before_last, int last) {
    const Shape& shape = context.shape(i);
    const std::size_t lead = static_cast<std::size_t>(rank) - shape.size();
    std::vector<Index> index;
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) {
      index.push_back(shape[axis] == 1 ? Index(0) : Index::axis(static_cast<int>(axis + lead)));
    }
    index.push_back(Index::axis(before_last));
    index.push_back(Index::axis(last));
    return load(dag, i, std::move(index));
  };
  const int left = factor(0, rows, depth);
  const int product = dag.apply(ScalarOp::kMul, {left, factor(1, depth, columns)});
  form.stages = {Stage{Combine::kSum, product}};
  form.set_root(dag.cast(dag.accumulator(0, dag.type(product)), context.result(0).element));
  return form;
}

}  // namespace gcompile::ir
