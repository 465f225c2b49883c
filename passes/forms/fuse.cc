// Fusion on forms, in three sweeps (legality by form, DESIGN "How a model flows"):
//   1. element-wise chains:  map(map(x)) with every element read at its own index      -> one map
//   2. epilogues:            map(contraction or reduction)                             -> the kernel's last
//   expression
//   3. inlining:             map or reduction reading a map at any computed index      -> the reader computes
//   it
//   4. stitching:            map or reduction reading a reduction over its own rows    -> the reader's first stages
// Element edges of former nodes keep their rounding (Dag::round),
// so a fused graph evaluates to the same bits.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/interrupt.h"
#include "ir/forms/expression_words.h"
#include "ir/graph/operator.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"
#include "passes/forms/form_reads.h"
#include "passes/forms/lift_maps.h"
#include "passes/forms/positions.h"
#include "passes/forms/stitch.h"

namespace gcompile::passes {
namespace {

using ir::Dag;
using ir::Index;
using ir::LoopForm;
using ir::NodeId;
using ir::Range;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::ValueId;

constexpr std::size_t kMaxExpression = 96;  // scalar nodes of one kernel
constexpr std::size_t kMaxOperands = 12;
/// Work in additions that a reader may repeat per element to save writing and reading it.
constexpr int kMaxRepeatedWork = 12;
/// The same of one that reads a row for each of its stages: what it does not repeat is a kernel of its own.
constexpr int kMaxRepeatedByStages = 40;
constexpr std::size_t kMaxStages = 6;

class Fuser {
 public:
  Fuser(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    sweep([this](NodeId id) { return merge_chain(id); });
    changed_ = lift_maps(graph_, context_) || changed_;
    sweep([this](NodeId id) { return join_producer(id); });
    is_first_ = false;
    sweep([this](NodeId id) { return inline_producers(id); });
    changed_ = lift_maps(graph_, context_) || changed_;
    sweep([this](NodeId id) { return merge_chain(id); });
    sweep([this](NodeId id) { return join_producer(id); });
    sweep([this](NodeId id) { return stitch(id) || (has_stages(id) && inline_producers(id)); });
    sweep([this](NodeId id) { return join_producer(id); });
    return changed_;
  }

 private:
  template <class F>
  void sweep(const F& visit) {
    const std::vector<NodeId> order = graph_.topological_order();
    for (std::size_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
    for (const NodeId id : order) {
      poll_interrupt();
      while (graph_.alive(id) && visit(id)) changed_ = true;
    }
  }

  const ir::Node& node(NodeId id) const { return graph_.node(id); }
  const LoopForm* map_form(NodeId id) const {
    const auto* loops = std::get_if<LoopForm>(node(id).form.get());
    return loops && loops->is_map() ? loops : nullptr;
  }

  /// A map of nothing that is in memory, as positions are: whoever reads it computes it as fast.
  bool is_generator(NodeId id) const {
    const LoopForm* form = map_form(id);
    if (!form || form->regions.size() != 1 || !form->checks.empty() || !form->has_identity_store())
      return false;
    const std::vector<int> reached = form->dag.reachable(roots_of(*form));
    const bool reads = std::any_of(reached.begin(), reached.end(),
                                   [&](int scalar) { return form->dag[scalar].op == ScalarOp::kLoad; });
    return !reads && work_of(*form) <= kMaxRepeatedWork;
  }

  /// The node that computes operand k when nobody else needs it: not an output, one reading node; or when it
  /// costs nothing to compute again.
  std::optional<NodeId> private_producer(NodeId reader, std::size_t k) const {
    const ValueId value = node(reader).operands[k];
    if (!value.valid()) return std::nullopt;
    const ir::Value& v = graph_.value(value);
    if (!v.producer.valid() || v.constant || node(v.producer).results.size() != 1) return std::nullopt;
    if (is_generator(v.producer)) return v.producer;
    for (const ir::Use& use : v.uses) {
      if (use.node != reader) return std::nullopt;
    }
    return v.producer;
  }

  std::string subject(NodeId id) const {
    return fmt::format("{} '{}'", node(id).op->name, printable(node(id).name));
  }

  static std::size_t size_of(const LoopForm& form) { return form.dag.reachable(roots_of(form)).size(); }

  bool within_bounds(std::size_t size, std::size_t operands, NodeId reader) {
    if (size <= kMaxExpression && operands <= kMaxOperands) return true;
    context_.refused(
        subject(reader),
        fmt::format("the fused kernel would have {} scalar operations and {} operands", size, operands));
    return false;
  }

  void merge_origins(NodeId into, std::vector<ir::Origin> earlier) {
    std::vector<ir::Origin> later = std::exchange(graph_.node(into).origins, std::move(earlier));
    std::vector<ir::Origin>& merged = graph_.node(into).origins;
    if (later.size() == 1) {  // a link of a chain; a set of what came before costs the whole chain
      if (std::find(merged.begin(), merged.end(), later[0]) == merged.end()) merged.push_back(later[0]);
      return;
    }
    std::set<ir::Origin> seen(merged.begin(), merged.end());
    for (ir::Origin& origin : later) {
      if (seen.insert(origin).second) merged.push_back(std::move(origin));
    }
  }

  /// Sweep 1. The reader is a map of one region that reads the producer at its own index.
  bool merge_chain(NodeId reader) {
    const LoopForm* form = map_form(reader);
    if (!form || form->regions.size() != 1 || ir::pure_load(*form)) return false;
    const std::size_t count = node(reader).operands.size();
    const std::vector<OperandReads> reads = reads_of(*form, count);
    const std::size_t size = size_of(*form);
    for (std::size_t k = 0; k < count; ++k) {
      const auto producer = private_producer(reader, k);
      if (!producer) continue;
      const LoopForm* inner = map_form(*producer);
      if (!inner || inner->regions.size() != 1 || !may_check_for(reader, *inner) ||
          !inner->has_identity_store())
        continue;
      if (ir::pure_load(*inner)) continue;  // views cost nothing where they are
      if (is_first_ && narrows_contraction(*producer)) continue;
      if (reads[k].at_own_index && substitute(reader, k, *producer, *inner, size)) return true;
    }
    return false;
  }

  /// Whether the reader can check what a producer checks: a map whose threads check their own indices.
  bool may_check_for(NodeId reader, const LoopForm& producer) const {
    if (producer.checks.empty()) return true;
    const ir::KernelPrices* prices = context_.options().prices;
    const LoopForm* form = map_form(reader);
    return prices && prices->checks_where_used() && form && form->regions.size() == 1;
  }

  int bits(ValueId id) const { return ir::bits_of(graph_.value(id).type.element); }

  /// A map that makes smaller elements of what a contraction leaves belongs to that contraction first: its
  /// reader may become the epilogue of another one, and what waits for it in memory is better small.
  bool narrows_contraction(NodeId map) const {
    for (std::size_t k = 0; k < node(map).operands.size(); ++k) {
      const auto producer = private_producer(map, k);
      if (producer && std::holds_alternative<ir::ContractForm>(*node(*producer).form) &&
          bits(node(map).results[0]) < bits(node(map).operands[k])) {
        return true;
      }
    }
    return false;
  }

  /// A map that makes larger elements of operand k, for one reader that can compute it itself.
  bool widens_for_reader(NodeId map, std::size_t k) const {
    const ValueId result = node(map).results[0];
    const std::vector<ir::Use>& uses = graph_.value(result).uses;
    return bits(result) > bits(node(map).operands[k]) && uses.size() == 1 && uses[0].node.valid() &&
           std::holds_alternative<LoopForm>(*node(uses[0].node).form);
  }

  /// Sweep 3. The reader may be a reduction, and may read at any index.
  bool inline_producers(NodeId reader) {
    const auto* form = std::get_if<LoopForm>(node(reader).form.get());
    if (!form) return false;
    // A movement is an alias, or waits to be read itself.
    const bool moves = is_pure_movement(*form) && (form->regions.size() > 1 || ir::pure_load(*form));
    const std::size_t count = node(reader).operands.size();
    const std::vector<OperandReads> all_reads = reads_of(*form, count);
    const std::size_t size = size_of(*form);
    for (std::size_t k = 0; k < count; ++k) {
      const auto producer = private_producer(reader, k);
      if (!producer) continue;
      const LoopForm* inner = map_form(*producer);
      if (!inner || !may_check_for(reader, *inner) || !inner->has_identity_store() ||
          inner->regions.size() != 1)
        continue;
      if (moves && !is_generator(*producer)) continue;
      if (is_free_view(*producer, *inner) ||
          (ir::pure_load(*inner) && takes_vectors_beside_positions(*form, static_cast<int>(k))))
        continue;
      const OperandReads& reads = all_reads[k];
      const std::int64_t elements = std::max<std::int64_t>(1, ir::highest(ir::element_count(inner->extents)));
      const double repeats = reads.elements / static_cast<double>(elements);
      const int work = work_of(*inner);
      // What takes turns is computed in its own turn alone, by packs; to find that out takes as long as the form.
      const auto most_work = [&] {
        return form->is_map() && !ir::interleaves(*form) ? kMaxRepeatedWork : kMaxRepeatedByStages;
      };
      if (repeats > 1.01 && repeats * work > most_work()) {
        context_.refused(subject(reader), fmt::format("would compute {} {:.1f} times per element",
                                                      subject(*producer), repeats));
        continue;
      }
      if (reads.indirect && work > kMaxRepeatedWork) continue;
      if (substitute(reader, k, *producer, *inner, size)) return true;
    }
    return false;
  }

  /// A pure load that storage assignment turns into an alias: affine per axis, or a reshape.
  bool is_free_view(NodeId id, const LoopForm& form) const {
    const ScalarNode* load = ir::pure_load(form);
    if (!load) return false;
    const ValueId operand = node(id).operands[load->operand];
    const ir::Value& value = graph_.value(operand);
    const ir::Value& result = graph_.value(node(id).results[0]);
    const auto view = ir::view_strides(form, ir::strides_in_order(value.type.shape, value.order));
    if (!view) return false;
    if (result.order.empty()) return true;
    const auto inner = static_cast<std::size_t>(result.order.back());
    return result.type.shape[inner] == 1 || view->strides[inner] == 1;
  }

  /// Whether the reader's expression begins where the producer's ends: it reads operand k first, in one
  /// place, at the producer's own index. Then the producer's dag is the beginning of the fused one as it
  /// stands, and a long chain is not copied once for every link.
  static bool is_chain_start(const LoopForm& form, int k, const LoopForm& inner) {
    if (!is_rebuilt(form) || !is_rebuilt(inner)) return false;
    const std::vector<ScalarNode>& nodes = form.dag.nodes();
    const auto reads = [k](const ScalarNode& n) { return n.op == ScalarOp::kLoad && n.operand == k; };
    if (!reads(nodes[0]) || std::any_of(nodes.begin() + 1, nodes.end(), reads)) return false;
    for (const ScalarNode& scalar : inner.dag.nodes()) {
      for (const Index& index : scalar.index) {
        const std::optional<int> axis = index.as_axis();
        if (axis && nodes[0].index[*axis].as_axis() != axis) return false;
      }
    }
    return true;
  }

  /// reader := reader with loads of operand k replaced by the producer's expression at the load's index.
  /// `size`: of the reader's expressions.
  bool substitute(NodeId reader, std::size_t k, NodeId producer, const LoopForm& inner, std::size_t size) {
    const std::size_t shift = node(reader).operands.size();
    const std::vector<ValueId>& added = node(producer).operands;
    if (!within_bounds(size + size_of(inner), shift + added.size() - 1, reader)) return false;
    const auto& form = std::get<LoopForm>(*node(reader).form);
    std::vector<ValueId> operands = node(reader).operands;
    operands.insert(operands.end(), added.begin(), added.end());
    const std::vector<Range> ranges = form.ranges();
    Dag start;
    const bool starts = is_chain_start(form, static_cast<int>(k), inner);
    if (starts) {
      start = inner.dag;
      std::vector<int> numbers(added.size());
      std::iota(numbers.begin(), numbers.end(), static_cast<int>(shift));
      GC_CHECK(start.renumber_operands(numbers));
    }
    LoopForm fused = rebuild(
        form,
        [&](Dag& dag, const ScalarNode& leaf) {
          if (leaf.op == ScalarOp::kAccumulator) return dag.accumulator(leaf.operand, leaf.type);
          if (leaf.operand != static_cast<int>(k)) return dag.load(leaf.operand, leaf.type, leaf.index);
          if (starts) return dag.round(inner.regions[0].root);
          const int value =
              dag.import(inner.dag, inner.regions[0].root, leaf.index, ranges, [&](const ScalarNode& load) {
                return dag.load(load.operand + static_cast<int>(shift), load.type, load.index);
              });
          return dag.round(value);
        },
        std::move(start));
    take_checks(form, static_cast<int>(k), inner, static_cast<int>(shift), fused);
    take_over(reader, producer, std::move(fused), std::move(operands));
    return true;
  }

  /// The reader computes the producer itself.
  void take_over(NodeId reader, NodeId producer, LoopForm fused, std::vector<ValueId> operands) {
    const bool is_private = graph_.use_count(node(producer).results[0]) == 1;
    std::vector<ir::Origin> origins =
        is_private ? std::move(graph_.node(producer).origins) : node(producer).origins;
    context_.did(subject(reader), fmt::format("computes {} itself", subject(producer)));
    set_loops(graph_, reader, std::move(fused), std::move(operands));
    merge_origins(reader, std::move(origins));
    if (graph_.use_count(node(producer).results[0]) == 0) graph_.erase_node(producer);
  }

  bool has_stages(NodeId id) const {
    const auto* form = std::get_if<LoopForm>(node(id).form.get());
    return form && !form->is_map();
  }

  /// Sweep 4. The reader walks the rows that a producer has reduced, and reduces them itself.
  bool stitch(NodeId reader) {
    const auto* form = std::get_if<LoopForm>(node(reader).form.get());
    if (!form || ir::pure_load(*form)) return false;
    // A reduction reads something: of a reader of more operands there is no use in looking at each.
    const std::size_t count = node(reader).operands.size();
    if (count > kMaxOperands) return false;
    for (std::size_t k = 0; k < count; ++k) {
      const auto producer = private_producer(reader, k);
      if (!producer) continue;
      std::vector<ValueId> operands = node(reader).operands;
      if (has_stages(*producer)) {
        if (stitch(reader, *form, std::move(operands), k, *producer)) return true;
        continue;
      }
      const LoopForm* view = map_form(*producer);
      if (!view || !ir::pure_load(*view) || node(*producer).operands.size() != 1) continue;
      const auto behind = private_producer(*producer, 0);
      if (!behind || !has_stages(*behind)) continue;
      operands[k] = node(*producer).operands[0];
      if (stitch(reader, through_view(*form, static_cast<int>(k), *view), std::move(operands), k, *behind))
        return true;
    }
    return false;
  }

  /// The form with operand k read where a view of it reads.
  static LoopForm through_view(const LoopForm& form, int k, const LoopForm& view) {
    const std::vector<Range> ranges = form.ranges();
    return rebuild(form, [&](Dag& dag, const ScalarNode& leaf) {
      if (leaf.op == ScalarOp::kAccumulator) return dag.accumulator(leaf.operand, leaf.type);
      if (leaf.operand != k) return dag.load(leaf.operand, leaf.type, leaf.index);
      return dag.import(view.dag, view.regions[0].root, leaf.index, ranges,
                        [&](const ScalarNode& load) { return dag.load(k, load.type, load.index); });
    });
  }

  bool stitch(NodeId reader, const LoopForm& form, std::vector<ValueId> operands, std::size_t k,
              NodeId producer) {
    const auto& inner = std::get<LoopForm>(*node(producer).form);
    std::optional<LoopForm> fused =
        stitched(form, static_cast<int>(k), inner, static_cast<int>(operands.size()));
    if (!fused) return false;
    operands.insert(operands.end(), node(producer).operands.begin(), node(producer).operands.end());
    if (!within_bounds(size_of(*fused), operands.size() - 1, reader) || !is_near(reader, *fused, operands))
      return false;
    const NodeId read = graph_.value(node(reader).operands[k]).producer;
    take_over(reader, producer, std::move(*fused), std::move(operands));
    if (read != producer) {
      graph_.erase_node(read);
      graph_.erase_node(producer);
    }
    return true;
  }

  bool is_near(NodeId reader, const LoopForm& fused, const std::vector<ValueId>& operands) {
    std::vector<ir::Shape> strides;
    for (const ValueId id : operands) {
      const ir::Value* value = id.valid() ? &graph_.value(id) : nullptr;
      strides.push_back(value ? ir::strides_in_order(value->type.shape, value->order) : ir::Shape{});
    }
    std::string_view reason = unless_rows_are_near(fused, strides);
    if (fused.stages.size() > kMaxStages) reason = "would be walked once for each of too many stages";
    if (!reason.empty()) context_.refused(subject(reader), std::string(reason));
    return reason.empty();
  }

  /// The producer's checks, wherever the reader loads operand k.
  static void take_checks(const LoopForm& form, int k, const LoopForm& inner, int shift, LoopForm& fused) {
    const std::vector<Range> ranges = form.ranges();
    for (const ir::BoundsCheck& check : inner.checks) {
      for (const int id : form.dag.reachable(roots_of(form))) {
        const ScalarNode& leaf = form.dag[id];
        if (leaf.op != ScalarOp::kLoad || leaf.operand != k) continue;
        const int scalar =
            fused.dag.import(inner.dag, check.scalar, leaf.index, ranges, [&](const ScalarNode& load) {
              return fused.dag.load(load.operand + shift, load.type, load.index);
            });
        const ir::BoundsCheck taken{scalar, check.range};
        if (std::find(fused.checks.begin(), fused.checks.end(), taken) == fused.checks.end())
          fused.checks.push_back(taken);
      }
    }
  }

  /// Sweep 2. The map becomes the last expression of the contraction or reduction it reads.
  bool join_producer(NodeId reader) {
    const LoopForm* form = map_form(reader);
    if (!form || form->regions.size() != 1 || !form->checks.empty() || !form->has_identity_store())
      return false;
    if (ir::pure_load(*form)) return false;
    const JoiningReader facts(*form);
    // The candidate that is computed last is joined: the others exist by then.
    std::optional<std::size_t> best;
    for (std::size_t k = 0; k < node(reader).operands.size(); ++k) {
      const auto producer = private_producer(reader, k);
      if (!producer || (is_first_ && widens_for_reader(reader, k))) continue;
      if (!can_join(reader, facts, k, *producer)) continue;
      if (!best || later(*producer, graph_.value(node(reader).operands[*best]).producer)) best = k;
    }
    if (!best) return false;
    join(reader, *form, *best, graph_.value(node(reader).operands[*best]).producer);
    return true;
  }

  /// In the order at the start of the sweep, which makes no new nodes.
  bool later(NodeId a, NodeId b) const { return rank_.at(a) > rank_.at(b); }

  bool can_join(NodeId reader, const JoiningReader& facts, std::size_t k, NodeId producer) {
    const LoopForm* target = loops_of(node(producer));
    if (!target) return false;
    const bool contract = std::holds_alternative<ir::ContractForm>(*node(producer).form);
    if (!contract && target->is_map()) return false;
    const ir::Value& before = graph_.value(node(producer).results[0]);
    const ir::Value& after = graph_.value(node(reader).results[0]);
    if (before.type.shape != after.type.shape) return false;
    if (const std::string_view what = facts.obstacle(static_cast<int>(k), contract); !what.empty()) {
      if (what != "iota") {
        context_.refused(subject(reader),
                         fmt::format("reads {} at other places than {} writes", what, subject(producer)));
      }
      return false;
    }
    if (!ir::same_layout(before.type.shape, ir::strides_in_order(before.type.shape, before.order),
                         ir::strides_in_order(after.type.shape, after.order))) {
      context_.refused(subject(reader), fmt::format("its layout differs from that of {}", subject(producer)));
      return false;
    }
    return within_bounds(size_of(*target) + facts.size(),
                         node(reader).operands.size() + node(producer).operands.size() - 1, reader);
  }

  void join(NodeId reader, const LoopForm& form, std::size_t k, NodeId producer) {
    const LoopForm target = *loops_of(node(producer));
    std::vector<ValueId> operands = node(producer).operands;
    const int shift = static_cast<int>(operands.size());
    for (const ValueId operand : node(reader).operands) operands.push_back(operand);
    LoopForm fused = target;
    const std::vector<Range> ranges = fused.ranges();
    // Axes of the reader are result axes of the producer; a kept reduced axis of extent one has index 0.
    for (ir::Region& region : fused.regions) {
      const int value = fused.dag.round(region.root);
      region.root =
          fused.dag.import(form.dag, form.regions[0].root, fused.store, ranges, [&](const ScalarNode& load) {
            return load.operand == static_cast<int>(k)
                       ? value
                       : fused.dag.load(load.operand + shift, load.type, load.index);
          });
    }
    context_.did(subject(reader), fmt::format("joins {}", subject(producer)));
    const ValueId old_result = node(producer).results[0];
    const ValueId new_result = node(reader).results[0];
    // The reader's slot keeps its result; the producer's kernel moves there, so that operands of both exist
    // by then.
    ir::Node& moved = graph_.node(reader);
    const ir::Node& from = node(producer);
    std::vector<ir::Origin> origins = from.origins;
    moved.op = from.op;
    moved.name = from.name;
    moved.attributes = from.attributes;
    moved.form = from.form;
    set_loops(graph_, reader, std::move(fused), std::move(operands));
    merge_origins(reader, std::move(origins));
    GC_CHECK(graph_.use_count(old_result) == 0 && new_result.valid());
    graph_.erase_node(producer);
  }

  ir::Graph& graph_;
  PassContext& context_;
  bool changed_ = false;
  bool is_first_ = true;                // the sweeps 1 and 2, before what they leave is tried again
  std::map<NodeId, std::size_t> rank_;  // position in the order of the sweep
};

}  // namespace

bool fuse(ir::Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace gcompile::passes
