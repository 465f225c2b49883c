// Movements behind each other that are one view together: splitting heads as PyTorch writes it, Reshape
// (s, b, h * d) -> (s, b * h, d), Transpose, Reshape -> (b, h, s, d), copies in its first step where the
// features are a part of larger rows; in one step no element moves, however the axes of what it reads lie. And a
// movement by remainders of what is put together, as the shuffle of channels behind a Concat: it reads the parts where
// they lie.

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::Index;
using ir::LoopForm;
using ir::NodeId;
using ir::ScalarNode;
using ir::ValueId;

class ViewJoiner {
 public:
  ViewJoiner(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph_.topological_order()) {
      poll_interrupt();
      changed |= visit(id);
      changed |= read_parts(id);
    }
    return changed;
  }

 private:
  /// The form of a movement by no index that is loaded, and what it moves.
  struct Movement {
    const LoopForm* form = nullptr;
    ValueId operand;
  };

  std::optional<Movement> movement(NodeId id) const {
    if (!id.valid()) return std::nullopt;
    const ir::Node& node = graph_.node(id);
    const auto* form = node.form ? std::get_if<LoopForm>(node.form.get()) : nullptr;
    const ScalarNode* load = form ? ir::pure_load(*form) : nullptr;
    if (!load || std::any_of(load->index.begin(), load->index.end(),
                             [](const Index& index) { return index.has_loaded(); })) {
      return std::nullopt;
    }
    return Movement{form, node.operands[load->operand]};
  }

  /// Whatever strides the operand has, the result is a view of it.
  static bool is_view(const LoopForm& form) {
    const ScalarNode* load = ir::pure_load(form);
    return std::all_of(load->index.begin(), load->index.end(),
                       [](const Index& index) { return index.is_affine(); });
  }

  static LoopForm composed(const LoopForm& reader, const LoopForm& producer) {
    const std::vector<ir::Range> ranges = reader.ranges();
    return rebuild(reader, [&](ir::Dag& dag, const ScalarNode& leaf) {
      return dag.import(
          producer.dag, producer.regions[0].root, leaf.index, ranges,
          [&](const ScalarNode& load) { return dag.load(load.operand, load.type, load.index); });
    });
  }

  /// Goes back as far as all from there on is one view. What is no view on the way there ends the search:
  /// indices of movements that do not undo each other grow with every step.
  bool visit(NodeId id) {
    std::optional<Movement> next = movement(id);
    if (!next) return false;
    LoopForm form = *next->form;
    bool copies = !is_view(form);
    std::vector<NodeId> passed;
    std::size_t count = 0;  // of those that are joined
    LoopForm joined;
    while (!graph_.value(next->operand).constant) {
      const NodeId producer = graph_.value(next->operand).producer;
      next = movement(producer);
      if (!next) break;
      copies = copies || !is_view(*next->form);
      form = composed(form, *next->form);
      if (!is_view(form)) break;
      passed.push_back(producer);
      if (!copies) continue;
      joined = form;
      count = passed.size();
    }
    if (count == 0) return false;
    passed.resize(count);
    join(id, std::move(joined), passed);
    return true;
  }

  void join(NodeId id, LoopForm form, const std::vector<NodeId>& passed) {
    const std::string subject =
        fmt::format("{} '{}'", graph_.node(id).op->name, printable(graph_.node(id).name));
    context_.did(subject, fmt::format("is one view with the {} movements before it", passed.size()));
    std::vector<ir::Origin> origins;
    const auto add = [&](NodeId from) {
      for (const ir::Origin& origin : graph_.node(from).origins) {
        if (std::find(origins.begin(), origins.end(), origin) == origins.end()) origins.push_back(origin);
      }
    };
    std::for_each(passed.rbegin(), passed.rend(), add);
    add(id);
    set_loops(graph_, id, std::move(form), graph_.node(passed.back()).operands);
    graph_.node(id).origins = std::move(origins);
    for (const NodeId movement : passed) {
      if (graph_.use_count(graph_.node(movement).results[0]) > 0) break;
      graph_.erase_node(movement);
    }
  }

  static std::vector<Index> substituted(const std::vector<Index>& indices, int axis, const Index& by,
                                        const LoopForm& form, const std::vector<ir::Range>& ranges) {
    std::vector<Index> axes = form.identity(), out;
    axes[axis] = by;
    for (const Index& index : indices) {
      out.push_back(ir::substitute(index, axes, ranges, [](int scalar) { return scalar; }));
    }
    return out;
  }

  /// An axis whose remainders by a small number, which divides its extent, decide what is read.
  struct Turns {
    int axis = 0;
    std::int64_t count = 0;
  };
  static std::optional<Turns> turns_of(const LoopForm& form, const Index& index) {
    constexpr std::int64_t kMostTurns = 4;
    for (const Index::Term& term : index.terms()) {
      const std::optional<int> axis = term.atom.inner ? term.atom.inner->as_axis() : std::nullopt;
      if (!axis || !term.atom.divisor.is_constant() || term.atom.divisor.constant() > kMostTurns) continue;
      if (exact_quotient(form.extents[*axis], term.atom.divisor))
        return Turns{*axis, term.atom.divisor.constant()};
    }
    return std::nullopt;
  }

  /// The region of a concatenation in which all these places lie.
  static const ir::Region* region_of(const LoopForm& parts, const std::vector<Index>& places,
                                     const std::vector<ir::Range>& ranges) {
    for (const ir::Region& region : parts.regions) {
      bool contains = parts.dag[region.root].op == ir::ScalarOp::kLoad;
      for (std::size_t i = 0; i < places.size() && contains; ++i) {
        const ir::Range range = ir::range_of(places[i], ranges);
        contains = ir::always_less_equal(region.box[i].low, range.low) &&
                   ir::always_less_equal(range.high, region.box[i].high);
      }
      if (contains) return &region;
    }
    return nullptr;
  }

  /// What the movement reads of the parts, by turns along an axis; nullopt when a turn reads more than one.
  static std::optional<LoopForm> by_turns(const LoopForm& form, const LoopForm& parts, const Turns& turns) {
    const ScalarNode& load = *ir::pure_load(form);
    LoopForm out = LoopForm::over(form.extents);
    const std::vector<ir::Range> ranges = form.ranges();
    std::vector<ir::Range> outer = ranges;
    outer[turns.axis].high = form.extents[turns.axis] / ir::Dim(turns.count);
    const Index own = Index::axis(turns.axis);
    const int turn = out.dag.iota(ir::modulo(own, turns.count, ranges));
    int value = -1;
    for (std::int64_t k = turns.count - 1; k >= 0; --k) {
      const std::vector<Index> places =
          substituted(load.index, turns.axis, own * turns.count + Index(k), form, outer);
      const ir::Region* region = region_of(parts, places, outer);
      if (!region) return std::nullopt;
      const int read = out.dag.import(
          parts.dag, region->root,
          substituted(places, turns.axis, ir::floor_div(own, turns.count, ranges), form, ranges), ranges,
          [&](const ScalarNode& part) { return out.dag.load(part.operand, part.type, part.index); });
      const int here = out.dag.constant(ir::ElementType::kInt64, static_cast<double>(k));
      value = value < 0 ? read
                        : out.dag.apply(ir::ScalarOp::kSelect,
                                        {out.dag.apply(ir::ScalarOp::kEqual, {turn, here}), read, value});
    }
    out.set_root(value);
    return out;
  }

  /// The form of what puts parts together for one reader alone.
  const LoopForm* parts_of(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    const ir::Node* node = producer.valid() ? &graph_.node(producer) : nullptr;
    const auto* parts = node && node->form ? std::get_if<LoopForm>(node->form.get()) : nullptr;
    const bool is_read = parts && parts->is_map() && parts->regions.size() > 1 &&
                         parts->has_identity_store() && parts->checks.empty();
    return is_read ? parts : nullptr;
  }

  bool read_parts(NodeId id) {
    if (!graph_.alive(id)) return false;
    std::optional<Movement> next = movement(id);
    if (!next) return false;
    LoopForm form = *next->form;
    std::vector<NodeId> passed;
    while (graph_.use_count(next->operand) == 1) {
      const NodeId producer = graph_.value(next->operand).producer;
      const ir::ElementType element = graph_.value(next->operand).type.element;
      if (const LoopForm* parts = parts_of(next->operand)) {
        if (is_view(form) || ir::compute_type(element) != element) return false;
        for (const Index& index : ir::pure_load(form)->index) {
          const auto turns = turns_of(form, index);
          std::optional<LoopForm> read = turns ? by_turns(form, *parts, *turns) : std::nullopt;
          if (!read) continue;
          passed.push_back(producer);
          join(id, *std::move(read), passed);
          return true;
        }
        return false;
      }
      const ValueId before = next->operand;
      next = movement(graph_.value(before).producer);
      if (!next) return false;
      passed.push_back(graph_.value(before).producer);
      form = composed(form, *next->form);
    }
    return false;
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

bool join_views(ir::Graph& graph, PassContext& context) { return ViewJoiner(graph, context).run(); }

}  // namespace gcompile::passes
