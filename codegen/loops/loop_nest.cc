#include "codegen/loops/loop_nest.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/diagnostics.h"
#include "ir/tensors/magnitude.h"

namespace gcompile {

using ir::Index;
using ir::IndexAtom;
using ir::Range;
using ir::ScalarOp;

std::int64_t magnitude(ir::Dim step) {
  return step.is_constant() ? ir::magnitude(step.constant()) : std::max<std::int64_t>(ir::highest(step), 2);
}

std::vector<ir::NumberFacts> number_facts(const ir::Dag& dag, const std::vector<KernelTensor>& operands) {
  return ir::number_facts(dag, [&](const ir::ScalarNode& load) -> std::optional<double> {
    const auto at = static_cast<std::size_t>(load.operand);
    return at < operands.size() ? operands[at].bound : std::nullopt;
  });
}

namespace {

/// Visits every division and remainder inside an index, innermost first.
template <class F>
void for_each_division(const Index& index, const F& visit) {
  for (const Index::Term& t : index.terms()) {
    if (!t.atom.inner) continue;
    for_each_division(*t.atom.inner, visit);
    visit(t.atom);
  }
}

bool occurs_in_division(const Index& index, int axis) {
  bool found = false;
  for_each_division(index, [&](const IndexAtom& atom) { found |= atom.inner->mentions(axis); });
  return found;
}

template <class F>
void for_each_index(LoopNest& nest, const F& visit) {
  for (const int id : nest.nodes) visit(nest.address[id]);
  visit(nest.store);
}

template <class F>
bool all_indices(const LoopNest& nest, const F& holds) {
  return std::all_of(nest.nodes.begin(), nest.nodes.end(), [&](int id) { return holds(nest.address[id]); }) &&
         holds(nest.store);
}

void substitute_axis(LoopNest& nest, int axis, const Index& by) {
  std::vector<Index> axes;
  for (std::size_t i = 0; i < nest.axes.size(); ++i) axes.push_back(Index::axis(static_cast<int>(i)));
  axes[axis] = by;
  const std::vector<Range> ranges = nest.ranges();
  for_each_index(
      nest, [&](Index& index) { index = ir::substitute(index, axes, ranges, [](int id) { return id; }); });
}

/// Axis i = divisor * outer + inner, when the box is aligned: then floor(i / divisor) = outer, i mod divisor
/// = inner.
bool split_one(LoopNest& nest) {
  int axis = -1;
  ir::Dim divisor = 0;
  for_each_index(nest, [&](const Index& index) {
    for_each_division(index, [&](const IndexAtom& atom) {
      const auto only = atom.inner->as_axis();
      if (axis >= 0 || !only) return;
      const Range range = nest.axes[static_cast<std::size_t>(*only)].range;
      if (!exact_quotient(range.low, atom.divisor) || !exact_quotient(range.high, atom.divisor)) return;
      axis = *only;
      divisor = atom.divisor;
    });
  });
  if (axis < 0) return false;
  NestAxis inner = nest.axes[axis];
  inner.range = {0, divisor};
  const int added = static_cast<int>(nest.axes.size());
  nest.axes.push_back(inner);
  NestAxis& outer = nest.axes[axis];
  outer.range = {outer.range.low / divisor, outer.range.high / divisor};
  substitute_axis(nest, axis, Index::axis(axis) * divisor + Index::axis(added));
  return true;
}

void drop_single_axes(LoopNest& nest) {
  for (std::size_t i = 0; i < nest.axes.size(); ++i) {
    if (nest.axes[i].dead || nest.axes[i].extent() != 1) continue;
    substitute_axis(nest, static_cast<int>(i), Index(nest.axes[i].range.low));
    nest.axes[i].dead = true;
  }
}

/// Walks outer and inner as one axis when every index has coefficient(outer) ==
/// coefficient(inner) * extent(inner).
bool merge(LoopNest& nest, int outer, int inner) {
  const NestAxis& a = nest.axes[outer];
  NestAxis& b = nest.axes[inner];
  if (a.dead || b.dead || a.reduced != b.reduced || b.range.low != 0) return false;
  if (outer == nest.rows || inner == nest.rows) return false;
  const ir::Dim extent = b.extent();
  const bool walks_as_one = all_indices(nest, [&](const Index& index) {
    return index.coefficient_of(outer) == index.coefficient_of(inner) * extent &&
           !occurs_in_division(index, outer) && !occurs_in_division(index, inner);
  });
  if (!walks_as_one) return false;
  const Range merged = {a.range.low * extent, a.range.high * extent};
  substitute_axis(nest, outer, Index(0));
  nest.axes[outer].dead = true;
  b.range = merged;
  return true;
}

/// How well the kernel streams along an axis:
/// unit strides and broadcasts are free, everything else costs a gather.
int stream_score(const LoopNest& nest, int axis) {
  int score = 0;
  const auto rate = [&](const Index& index, int weight) {
    if (occurs_in_division(index, axis)) {
      score -= 3 * weight;
      return;
    }
    const std::int64_t stride = magnitude(index.coefficient_of(axis));
    score += stride == 1 ? 2 * weight : stride == 0 ? weight : -2 * weight;
  };
  const std::vector<std::uint64_t> dependence = nest.dependence();
  for (const int id : nest.nodes) {
    const ir::ScalarNode& node = nest.form->dag[id];
    if (node.op != ScalarOp::kLoad) continue;
    const bool indirect = (dependence[id] >> axis & 1) != 0 && !nest.address[id].mentions(axis);
    if (indirect) {
      score -= 3;
    } else {
      rate(nest.address[id], 1);
    }
  }
  if (!nest.axes[axis].reduced || nest.form->final_over_reduced) rate(nest.store, 2);
  return score;
}

/// An arg-reduction reports a position that counts the reduced axes in their own order.
bool positional(const LoopNest& nest) {
  return std::any_of(nest.form->stages.begin(), nest.form->stages.end(), [](const ir::Stage& s) {
    return s.combine == ir::Combine::kArgMax || s.combine == ir::Combine::kArgMin;
  });
}

void choose_vector_axis(LoopNest& nest) {
  if (positional(nest)) return;
  int best_score = 0;
  for (std::size_t i = 0; i < nest.axes.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (nest.axes[i].dead || axis == nest.rows) continue;
    // A vector axis shorter than a vector runs element by element: anything longer is better.
    const std::int64_t extent = ir::typical(nest.axes[i].extent());
    const int length = extent >= 16 ? 8 : extent >= 8 ? 4 : extent >= 4 ? -4 : -64;
    const int score = 4 * stream_score(nest, axis) + length;
    if (nest.vector_axis < 0 || score > best_score) {
      nest.vector_axis = axis;
      best_score = score;
    }
  }
}

/// Outermost first: by store stride, then by the largest load stride; the vector axis goes last in its class.
void order_axes(LoopNest& nest) {
  const auto weight = [&](int axis) {
    std::int64_t largest = 0;
    for (const int id : nest.nodes) {
      largest = std::max(largest, magnitude(nest.address[id].coefficient_of(axis)));
    }
    return std::tuple(axis == nest.rows, magnitude(nest.store.coefficient_of(axis)), largest);
  };
  nest.parallel.clear();
  nest.reduced.clear();
  for (std::size_t i = 0; i < nest.axes.size(); ++i) {
    if (nest.axes[i].dead) continue;
    (nest.axes[i].reduced ? nest.reduced : nest.parallel).push_back(static_cast<int>(i));
  }
  for (std::vector<int>* axes : {&nest.parallel, &nest.reduced}) {
    if (positional(nest) && axes == &nest.reduced) continue;
    std::stable_sort(axes->begin(), axes->end(), [&](int a, int b) { return weight(a) > weight(b); });
  }
}

/// Every live axis starts at zero afterwards.
void shift_to_zero(LoopNest& nest) {
  for (std::size_t i = 0; i < nest.axes.size(); ++i) {
    NestAxis& axis = nest.axes[i];
    if (axis.dead || axis.range.low == 0) continue;
    const ir::Dim low = axis.range.low;
    axis.range = {0, axis.range.high - low};
    substitute_axis(nest, static_cast<int>(i), Index::axis(static_cast<int>(i)) + Index(low));
  }
}

}  // namespace

std::vector<Range> LoopNest::ranges() const {
  std::vector<Range> out;
  for (const NestAxis& axis : axes) out.push_back(axis.range);
  return out;
}

std::vector<std::uint64_t> LoopNest::dependence() const {
  std::vector<std::uint64_t> out(form->dag.nodes().size(), 0);
  const std::function<std::uint64_t(const Index&)> of_index = [&](const Index& index) {
    std::uint64_t mask = 0;
    for (const Index::Term& t : index.terms()) {
      if (t.atom.kind == IndexAtom::Kind::kAxis) mask |= std::uint64_t{1} << t.atom.axis;
      if (t.atom.kind == IndexAtom::Kind::kLoaded) mask |= out[t.atom.axis];
      if (t.atom.inner) mask |= of_index(*t.atom.inner);
    }
    return mask;
  };
  for (const int id : nodes) {
    const ir::ScalarNode& node = form->dag[id];
    std::uint64_t mask = of_index(address[id]);
    for (const int argument : node.arguments) mask |= out[argument];
    if (node.op == ScalarOp::kAccumulator) mask |= std::uint64_t{1} << (32 + node.operand);
    out[id] = mask;
  }
  return out;
}

LoopNest build_nest(const ir::LoopForm& form, const ir::Region& region,
                    const std::vector<KernelTensor>& operands, const KernelTensor& result, int rows) {
  LoopNest nest;
  nest.form = &form;
  nest.rows = rows;
  for (std::size_t i = 0; i < form.extents.size(); ++i) {
    NestAxis axis;
    axis.range = i < region.box.size() ? region.box[i] : Range{0, form.extents[i]};
    axis.reduced = static_cast<int>(i) >= form.parallel;
    nest.axes.push_back(axis);
  }
  std::vector<int> roots = {region.root};
  for (const ir::Stage& stage : form.stages) roots.push_back(stage.root);
  nest.nodes = form.dag.reachable(roots);
  nest.address.resize(form.dag.nodes().size());
  for (const int id : nest.nodes) {
    const ir::ScalarNode& node = form.dag[id];
    if (node.op == ScalarOp::kLoad) {
      nest.address[id] =
          ir::recombine(ir::address_of(node.index, operands[node.operand].strides), nest.ranges());
    } else if (node.op == ScalarOp::kIota) {
      nest.address[id] = node.index[0];
    }
  }
  nest.store = address_of(form.store, result.strides);
  drop_single_axes(nest);
  // Splitting a reduced axis of an arg-reduction would scatter its positions over two loops.
  while (!positional(nest) && nest.axes.size() < 24 && split_one(nest)) drop_single_axes(nest);
  order_axes(nest);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::vector<int>* axes : {&nest.parallel, &nest.reduced}) {
      for (std::size_t i = 0; i + 1 < axes->size() && !changed; ++i) {
        changed = merge(nest, (*axes)[i], (*axes)[i + 1]);
        if (changed) axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  shift_to_zero(nest);
  choose_vector_axis(nest);
  set_vector_axis(nest, nest.vector_axis);
  return nest;
}

void set_vector_axis(LoopNest& nest, int axis) {
  nest.vector_axis = axis;
  order_axes(nest);
  for (std::vector<int>* axes : {&nest.parallel, &nest.reduced}) {
    const auto at = std::find(axes->begin(), axes->end(), axis);
    if (at != axes->end()) std::rotate(at, at + 1, axes->end());
  }
}

}  // namespace gcompile
