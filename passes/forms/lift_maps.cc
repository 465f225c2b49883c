#include "passes/forms/lift_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/interrupt.h"
#include "ir/forms/rebuild.h"
#include "ir/graph/operator.h"
#include "passes/engine/form_edit.h"
#include "passes/forms/form_reads.h"

namespace gcompile::passes {
namespace {

using ir::Index;
using ir::LoopForm;
using ir::NodeId;
using ir::Range;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::Shape;
using ir::ValueId;

/// The axes as indices; those of one element are 0.
std::vector<Index> own_axes(const Shape& shape) {
  std::vector<Index> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(shape[i] == 1 ? Index(0) : Index::axis(static_cast<int>(i)));
  }
  return axes;
}

/// Axes of a view's result as indices over the axes of what it reads, whose shape is `source`; nullopt when an
/// element is read twice, or not at all, or its place is not found by a formula.
std::optional<std::vector<Index>> inverse_of(const LoopForm& view, const Shape& source) {
  const ScalarNode* load = ir::pure_load(view);
  if (!load || load->index.size() != source.size()) return std::nullopt;
  const std::vector<Index> axes = own_axes(view.extents);
  std::vector<Index> index;
  for (const Index& i : load->index) {
    index.push_back(ir::substitute(i, axes, view.ranges(), [](int id) { return id; }));
  }
  // Axes that change places, some of one element.
  std::vector<Index> places(view.extents.size(), Index(0));
  std::size_t placed = 0;
  bool permutes = true;
  for (std::size_t i = 0; i < source.size() && permutes; ++i) {
    if (source[i] == 1) continue;
    const std::optional<int> axis = index[i].as_axis();
    permutes = axis && view.extents[*axis] == source[i] && places[*axis].is_constant();
    if (permutes) places[*axis] = Index::axis(static_cast<int>(i));
    ++placed;
  }
  const auto single = std::count(view.extents.begin(), view.extents.end(), ir::Dim(1));
  if (permutes && placed + static_cast<std::size_t>(single) == view.extents.size()) return places;
  // The same elements in the same order.
  const Index read = ir::recombine(ir::linearise(index, source), view.ranges());
  if (read.compare(ir::linearise(axes, view.extents)) != 0) return std::nullopt;
  if (ir::element_count(view.extents) != ir::element_count(source)) return std::nullopt;
  return ir::delinearise(ir::linearise(own_axes(source), source), view.extents, ir::full_ranges(source));
}

/// Whether the index is a sum of axes once those that it divides are split, as kernels do it.
bool splits_evenly(const Index& index, const Shape& extents) {
  return std::all_of(index.terms().begin(), index.terms().end(), [&](const Index::Term& term) {
    if (term.atom.kind == ir::IndexAtom::Kind::kAxis) return true;
    const std::optional<int> axis = term.atom.inner ? term.atom.inner->as_axis() : std::nullopt;
    return axis && exact_quotient(extents[*axis], term.atom.divisor);
  });
}

class MapLifter {
 public:
  MapLifter(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    for (const NodeId id : graph_.topological_order()) {
      poll_interrupt();
      std::optional<NodeId> next = id;
      while (next && graph_.alive(*next)) next = visit(*next);
    }
    return changed_;
  }

 private:
  const ir::Node& node(NodeId id) const { return graph_.node(id); }
  const ir::Value& value(ValueId id) const { return graph_.value(id); }

  /// The node that computes a value for one reader alone.
  std::optional<NodeId> only_source(ValueId id) const {
    if (!id.valid() || value(id).constant || !value(id).producer.valid()) return std::nullopt;
    const NodeId producer = value(id).producer;
    if (graph_.use_count(id) != 1 || node(producer).results.size() != 1 || !node(producer).form)
      return std::nullopt;
    return producer;
  }

  Shape strides_of(ValueId id) const { return ir::strides_in_order(value(id).type.shape, value(id).order); }

  /// A view of `source` whose elements lie where those of `result` would.
  bool is_in_place(const LoopForm& view, ValueId source, ValueId result) const {
    const auto strides = ir::view_strides(view, strides_of(source));
    return strides && strides->offset == 0 &&
           ir::same_layout(value(result).type.shape, strides->strides, strides_of(result));
  }

  struct Lift {
    std::size_t operand = 0;
    NodeId view;
    LoopForm map;
    std::set<ValueId> turned;  // other operands that are read through the inverse of the view
  };

  /// What became of the map, which may go on.
  std::optional<NodeId> visit(NodeId id) {
    const auto* form = node(id).form ? std::get_if<LoopForm>(node(id).form.get()) : nullptr;
    if (!form || !form->is_map() || form->regions.size() != 1 || !form->has_identity_store() ||
        !form->checks.empty() || ir::pure_load(*form) || node(id).results.size() != 1) {
      return std::nullopt;
    }
    for (std::size_t k = 0; k < node(id).operands.size(); ++k) {
      const auto view = only_source(node(id).operands[k]);
      if (!view) continue;
      if (std::optional<Lift> lift = lift_over(id, *form, k, *view)) return apply(id, *std::move(lift));
      if (const std::optional<Parts> parts = parts_of(id, *form, k, *view)) {
        lift_over_parts(id, k, *parts);
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// A concatenation along an axis, and which axis of each operand of a map goes along it.
  struct Parts {
    NodeId concat;
    std::size_t axis = 0;
    std::vector<ir::Dim> starts;  // by operand of the concatenation
    std::vector<int> along;       // by operand of the map
  };
  static constexpr int kUnread = -2, kNone = -1;

  /// Where the map, of which operand k is concatenated of what kernels compute for it alone, can be each of
  /// their last expressions.
  std::optional<Parts> parts_of(NodeId id, const LoopForm& form, std::size_t k, NodeId concat) const {
    const auto* joined = std::get_if<LoopForm>(node(concat).form.get());
    const ValueId whole = node(concat).results[0], result = node(id).results[0];
    if (!joined || !joined->is_map() || joined->regions.size() != node(concat).operands.size() ||
        joined->regions.size() < 2 || !joined->has_identity_store() ||
        value(whole).type.shape != value(result).type.shape ||
        !ir::same_layout(joined->extents, strides_of(whole), strides_of(result))) {
      return std::nullopt;
    }
    Parts parts{concat, joined->extents.size(), {}, std::vector<int>(node(id).operands.size(), kUnread)};
    for (std::size_t i = 0; i < joined->regions.size(); ++i) {
      const ValueId operand = node(concat).operands[i];
      const auto source = only_source(operand);
      if (!source || !takes_maps(*source) || !is_part(*joined, i, value(operand), parts) ||
          value(operand).order != value(whole).order) {
        return std::nullopt;
      }
    }
    return parts.axis < joined->extents.size() && finds_slices(id, form, k, parts) ? std::optional(parts)
                                                                                   : std::nullopt;
  }

  /// Whether region i is all of operand i, behind those before it along one axis.
  static bool is_part(const LoopForm& joined, std::size_t i, const ir::Value& operand, Parts& parts) {
    const ir::Region& region = joined.regions[i];
    const ScalarNode& load = joined.dag[region.root];
    if (load.op != ScalarOp::kLoad || load.operand != static_cast<int>(i)) return false;
    parts.starts.emplace_back(0);
    for (std::size_t a = 0; a < joined.extents.size(); ++a) {
      const Range& range = region.box[a];
      if (load.index[a] != Index::axis(static_cast<int>(a)) - Index(range.low)) return false;
      if (range.high - range.low != operand.type.shape[a]) return false;
      if (range == Range{0, joined.extents[a]}) continue;
      if (parts.axis < joined.extents.size() && parts.axis != a) return false;
      parts.axis = a;
      parts.starts.back() = range.low;
    }
    return true;
  }

  /// Whether a part of every other operand is what a part of the map reads.
  bool finds_slices(NodeId id, const LoopForm& form, std::size_t k, Parts& parts) const {
    const Index along = Index::axis(static_cast<int>(parts.axis));
    for (const int scalar : form.dag.reachable(roots_of(form))) {
      const ScalarNode& load = form.dag[scalar];
      if (load.op == ScalarOp::kIota) return false;
      if (load.op != ScalarOp::kLoad) continue;
      const bool own = load.operand == static_cast<int>(k);
      if (own ? !is_identity_load(form, load) : !is_broadcast_load(load)) return false;
      const auto goes = std::count(load.index.begin(), load.index.end(), along);
      if (goes > 1) return false;
      const auto first = std::find(load.index.begin(), load.index.end(), along);
      const int at = goes == 0 ? kNone : static_cast<int>(first - load.index.begin());
      int& known = parts.along[load.operand];
      if (known != kUnread && known != at) return false;
      known = at;
      const ValueId operand = node(id).operands[load.operand];
      if (at >= 0 && value(operand).type.shape[at] != form.extents[parts.axis]) return false;
    }
    return true;
  }

  /// Elements [start, start + length) along an axis.
  ValueId slice_of(ValueId operand, int axis, ir::Dim start, ir::Dim length, NodeId like) {
    Shape shape = value(operand).type.shape;
    shape[axis] = length;
    LoopForm form = LoopForm::over(shape);
    std::vector<Index> index = form.identity();
    index[axis] = index[axis] + Index(start);
    if (const ir::Tensor* whole = graph_.constant(operand)) {
      form.set_root(form.dag.load(0, whole->element(), index));
      const ValueId part =
          graph_.add_constant(ir::evaluate(form, {whole}, {whole->element(), shape}), value(operand).name);
      graph_.value(part).order = value(operand).order;
      return part;
    }
    return add_view(operand, std::move(index), shape, value(operand).order, like);
  }

  void lift_over_parts(NodeId id, std::size_t k, const Parts& parts) {
    changed_ = true;
    context_.did(fmt::format("{} '{}'", node(id).op->name, printable(node(id).name)),
                 fmt::format("goes before the {} parts that {} '{}' joins", parts.starts.size(),
                             node(parts.concat).op->name, printable(node(parts.concat).name)));
    const LoopForm form = std::get<LoopForm>(*node(id).form);
    const ValueId result = node(id).results[0];
    for (std::size_t i = 0; i < parts.starts.size(); ++i) {
      const ValueId part = node(parts.concat).operands[i];
      const Shape shape = value(part).type.shape;
      std::vector<ValueId> operands = node(id).operands;
      for (std::size_t j = 0; j < operands.size(); ++j) {
        if (j == k) {
          operands[j] = part;
        } else if (parts.along[j] >= 0) {
          operands[j] = slice_of(operands[j], parts.along[j], parts.starts[i], shape[parts.axis], id);
        }
      }
      const NodeId map = graph_.add_node(*node(id).op, operands, node(id).attributes, 1, node(id).name);
      graph_.node(map).origins = node(id).origins;
      const ValueId made = node(map).results[0];
      graph_.value(made).type = {value(result).type.element, shape};
      graph_.value(made).order = value(part).order;
      graph_.value(made).name = value(part).name;
      LoopForm over = LoopForm::over(shape);
      over.set_root(over.dag.import(
          form.dag, form.regions[0].root, over.identity(), over.ranges(),
          [&](const ScalarNode& load) { return over.dag.load(load.operand, load.type, load.index); }));
      set_form(graph_, map, over);
      set_loops(graph_, map, std::move(over), operands);
      graph_.set_operand(parts.concat, static_cast<int>(i), made);
    }
    // The concatenation takes the map's place, with its elements.
    const ir::ElementType element = value(result).type.element;
    LoopForm joined = rebuild(
        std::get<LoopForm>(*node(parts.concat).form),
        [&](ir::Dag& dag, const ScalarNode& leaf) { return dag.load(leaf.operand, element, leaf.index); });
    set_form(graph_, parts.concat, std::move(joined));
    const ValueId whole = node(parts.concat).results[0];
    graph_.value(whole).type.element = element;
    graph_.value(whole).order = value(result).order;
    graph_.set_operands(id, {});
    graph_.value(whole).name = value(result).name;
    graph_.replace_uses(result, whole);
    graph_.erase_node(id);
  }

  bool contracts(NodeId producer) const {
    return std::holds_alternative<ir::ContractForm>(*node(producer).form);
  }

  /// Whether a map can be the last expression of the kernel.
  bool takes_maps(NodeId producer) const {
    const auto* loops = std::get_if<LoopForm>(node(producer).form.get());
    return contracts(producer) || (loops && loops->regions.size() == 1 && !ir::pure_load(*loops));
  }

  std::optional<Lift> lift_over(NodeId id, const LoopForm& form, std::size_t k, NodeId view) {
    const auto* moves = std::get_if<LoopForm>(node(view).form.get());
    if (!moves || !ir::pure_load(*moves) || node(view).operands.size() != 1 || moves->extents != form.extents)
      return std::nullopt;
    const ValueId source = node(view).operands[0];
    const auto producer = only_source(source);
    if (!producer || !takes_maps(*producer)) return std::nullopt;
    const ValueId result = node(id).results[0];
    if (!is_in_place(*moves, source, node(view).results[0]) || !is_in_place(*moves, source, result))
      return std::nullopt;
    const auto places = inverse_of(*moves, value(source).type.shape);
    if (!places) return std::nullopt;
    Lift lift{k, view, LoopForm::over(value(source).type.shape), {}};
    bool is_simple = true;
    // An epilogue reads at axes and constants alone.
    const bool is_epilogue = contracts(*producer);
    const std::vector<Range> ranges = lift.map.ranges();
    const int root =
        lift.map.dag.import(form.dag, form.regions[0].root, *places, ranges, [&](const ScalarNode& load) {
          const bool own = load.operand == static_cast<int>(k);
          std::vector<Index> index = load.index;
          const bool is_whole = index == *places;
          if (own) is_simple = is_simple && is_whole;
          const Shape& extents = lift.map.extents;
          const bool reads_simply =
              is_epilogue ? is_broadcast_load(load)
                          : std::all_of(index.begin(), index.end(),
                                        [&](const Index& i) { return splits_evenly(i, extents); });
          if (own || (!reads_simply && is_whole)) {
            if (!own) lift.turned.insert(node(id).operands[load.operand]);
            index = lift.map.identity();
          } else {
            is_simple = is_simple && reads_simply;
          }
          return lift.map.dag.load(load.operand, load.type, std::move(index));
        });
    lift.map.set_root(root);
    for (const ValueId operand : lift.turned) {
      is_simple = is_simple && !value(operand).constant && is_in_place(*moves, source, operand);
    }
    // Positions of the map are not those of what it reads.
    for (const ScalarNode& scalar : lift.map.dag.nodes()) {
      is_simple = is_simple && scalar.op != ScalarOp::kIota;
    }
    return is_simple ? std::optional(std::move(lift)) : std::nullopt;
  }

  /// What lies in memory as `operand` does, with other axes; `like`: the view that has something to do with it.
  ValueId add_view(ValueId operand, std::vector<Index> index, const Shape& shape,
                   const std::vector<int>& order, NodeId like) {
    const ir::ElementType element = value(operand).type.element;
    LoopForm form = LoopForm::over(shape);
    form.set_root(form.dag.load(0, element, std::move(index)));
    const NodeId added =
        graph_.add_node(ir::operator_named("Identity"), {operand}, {}, 1, std::string(node(like).name));
    graph_.node(added).origins = node(like).origins;
    const ValueId result = node(added).results[0];
    graph_.value(result).type = {element, shape};
    graph_.value(result).order = order;
    graph_.value(result).name = value(operand).name;
    set_form(graph_, added, std::move(form));
    return result;
  }

  NodeId apply(NodeId id, Lift lift) {
    changed_ = true;
    const auto& moves = std::get<LoopForm>(*node(lift.view).form);
    const ValueId source = node(lift.view).operands[0];
    context_.did(fmt::format("{} '{}'", node(id).op->name, printable(node(id).name)),
                 fmt::format("goes before the view {} '{}'", node(lift.view).op->name,
                             printable(node(lift.view).name)));
    std::vector<ValueId> operands = node(id).operands;
    operands[lift.operand] = source;
    const std::vector<Index> back = *inverse_of(moves, value(source).type.shape);
    for (const ValueId operand : lift.turned) {
      const ValueId turned =
          add_view(operand, back, value(source).type.shape, value(source).order, lift.view);
      std::replace(operands.begin(), operands.end(), operand, turned);
    }
    const NodeId map = graph_.add_node(*node(id).op, operands, node(id).attributes, 1, node(id).name);
    graph_.node(map).origins = node(id).origins;
    const ValueId old = node(id).results[0], made = node(map).results[0];
    graph_.value(made).type = {value(old).type.element, value(source).type.shape};
    graph_.value(made).order = value(source).order;
    graph_.value(made).name = value(old).name;
    set_form(graph_, map, lift.map);
    set_loops(graph_, map, std::move(lift.map), operands);
    const ScalarNode& load = *ir::pure_load(moves);
    const ValueId seen = add_view(made, load.index, value(old).type.shape, value(old).order, lift.view);
    graph_.replace_uses(old, seen);
    graph_.erase_node(id);
    graph_.erase_node(lift.view);
    return map;
  }

  ir::Graph& graph_;
  PassContext& context_;
  bool changed_ = false;
};

}  // namespace

bool lift_maps(ir::Graph& graph, PassContext& context) { return MapLifter(graph, context).run(); }

}  // namespace gcompile::passes
