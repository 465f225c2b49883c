// Fusion on forms, in three sweeps (legality by form, DESIGN "How a model flows"):
//   1. element-wise chains:  map(map(x)) with every element read at its own index      -> one map
//   2. epilogues:            map(contraction or reduction)                             -> the kernel's last
//   expression
//   3. inlining:             map or reduction reading a map at any computed index      -> the reader computes
//   it
// Element edges of former nodes keep their rounding (Dag::round),
// so a fused graph evaluates to the same bits.

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"
#include "passes/forms/positions.h"

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

std::vector<int> roots_of(const LoopForm& form) {
  std::vector<int> roots;
  for (const ir::Stage& stage : form.stages) roots.push_back(stage.root);
  for (const ir::Region& region : form.regions) roots.push_back(region.root);
  return roots;
}

int work_of(const LoopForm& form) {
  int work = 0;
  for (const int id : form.dag.reachable(roots_of(form))) work += row_of(form.dag[id].op).cost;
  return work;
}

bool is_identity_load(const LoopForm& form, const ScalarNode& load) {
  if (load.index.size() != form.extents.size()) return false;
  for (std::size_t i = 0; i < load.index.size(); ++i) {
    const bool single = form.extents[i] == 1 && load.index[i] == Index(0);
    if (!single && load.index[i].as_axis() != static_cast<int>(i)) return false;
  }
  return true;
}

/// Every index is a bare axis or a constant: what an epilogue can address from (m, n).
bool is_broadcast_load(const ScalarNode& load) {
  return std::all_of(load.index.begin(), load.index.end(),
                     [](const Index& i) { return i.is_constant() || i.as_axis().has_value(); });
}

bool is_pure_movement(const LoopForm& form) {
  return form.is_map() &&
         std::all_of(form.regions.begin(), form.regions.end(),
                     [&](const ir::Region& region) { return form.dag[region.root].op == ScalarOp::kLoad; });
}

/// What a kernel reads of one operand.
struct OperandReads {
  double elements = 0;       // again for each root that reaches a load: every stage walks its expression anew
  bool at_own_index = true;  // all of them
  bool indirect = false;     // any of them
};

/// By operand, of `count`. One walk per root, so that nodes of many operands are looked at once.
std::vector<OperandReads> reads_of(const LoopForm& form, std::size_t count) {
  std::vector<OperandReads> reads(count);
  const auto walk = [&](int root, double points) {
    const int one[] = {root};
    for (const int id : form.dag.reachable(one)) {
      const ScalarNode& load = form.dag[id];
      if (load.op != ScalarOp::kLoad) continue;
      OperandReads& read = reads[load.operand];
      read.elements += points;
      read.at_own_index = read.at_own_index && is_identity_load(form, load);
      for (const Index& index : load.index) read.indirect |= index.has_loaded();
    }
  };
  const auto points = static_cast<double>(ir::highest(ir::element_count(form.extents)));
  for (const ir::Stage& stage : form.stages) walk(stage.root, points);
  for (const ir::Region& region : form.regions) {
    double of_box = 1;
    for (const Range& range : region.box) of_box *= static_cast<double>(ir::highest(range.high - range.low));
    walk(region.root, of_box);
  }
  return reads;
}

class Fuser {
 public:
  Fuser(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    sweep([this](NodeId id) { return merge_chain(id); });
    sweep([this](NodeId id) { return join_producer(id); });
    is_first_ = false;
    sweep([this](NodeId id) { return inline_producers(id); });
    sweep([this](NodeId id) { return merge_chain(id); });
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
      if (repeats > 1.01 && repeats * work > kMaxRepeatedWork) {
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
    const bool is_private = graph_.use_count(node(producer).results[0]) == 1;
    std::vector<ir::Origin> origins =
        is_private ? std::move(graph_.node(producer).origins) : node(producer).origins;
    context_.did(subject(reader), fmt::format("computes {} itself", subject(producer)));
    set_loops(graph_, reader, std::move(fused), std::move(operands));
    merge_origins(reader, std::move(origins));
    if (graph_.use_count(node(producer).results[0]) == 0) graph_.erase_node(producer);
    return true;
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

  /// The reads of a map that decide whether it can be the last expression of something else.
  struct JoiningReader {
    explicit JoiningReader(const LoopForm& form) {
      for (const int id : form.dag.reachable(roots_of(form))) {
        ++size;
        const ScalarNode& node = form.dag[id];
        if (node.op == ScalarOp::kIota && first_iota < 0) first_iota = id;
        if (node.op != ScalarOp::kLoad) continue;
        if (!is_identity_load(form, node)) displaced.try_emplace(node.operand, id);
        const bool new_operand = computed.empty() || computed.back().first != node.operand;
        if (!is_broadcast_load(node) && new_operand) computed.emplace_back(node.operand, id);
      }
    }
    std::size_t size = 0;
    int first_iota = -1;
    std::map<int, int> displaced;  // by operand, the first load at another index than the element's own
    /// Operand and load at an index that is no axis or constant, in the order of loads; never the same
    /// operand twice in a row, so the first of another operand than k is among the first two.
    std::vector<std::pair<int, int>> computed;
  };

  /// Which read stands in the way of joining operand k: "" for none, "iota" for one without a remark.
  static std::string_view obstacle(const JoiningReader& reader, int k, bool contract) {
    constexpr int kNone = INT_MAX;
    const auto own = reader.displaced.find(k);
    const int first_own = own == reader.displaced.end() ? kNone : own->second;
    int first_other = kNone;
    int first_iota = kNone;
    if (contract) {
      for (std::size_t i = 0; i < reader.computed.size() && first_other == kNone; ++i) {
        if (reader.computed[i].first != k) first_other = reader.computed[i].second;
      }
      if (reader.first_iota >= 0) first_iota = reader.first_iota;
    }
    const int first = std::min({first_own, first_other, first_iota});
    if (first == kNone) return "";
    return first == first_iota ? "iota" : first == first_own ? "its producer" : "an operand";
  }

  bool can_join(NodeId reader, const JoiningReader& facts, std::size_t k, NodeId producer) {
    const LoopForm* target = loops_of(node(producer));
    if (!target) return false;
    const bool contract = std::holds_alternative<ir::ContractForm>(*node(producer).form);
    if (!contract && target->is_map()) return false;
    const ir::Value& before = graph_.value(node(producer).results[0]);
    const ir::Value& after = graph_.value(node(reader).results[0]);
    if (before.type.shape != after.type.shape) return false;
    if (const std::string_view what = obstacle(facts, static_cast<int>(k), contract); !what.empty()) {
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
    return within_bounds(size_of(*target) + facts.size,
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
