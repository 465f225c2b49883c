// Layout assignment (DESIGN law 4): the physical axis order of every value. Contractions over images walk
// channels-last, so inside convolution regions values lie channels-last; graph inputs and outputs are
// row-major. A conversion is a kernel of its own only where a contraction meets a graph input or output;
// everywhere else the data movement or element-wise kernel that is there anyway writes the order that its
// reader wants.

#include <algorithm>
#include <numeric>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/graph/problem.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"
#include "passes/forms/positions.h"
#include "passes/forms/view_reach.h"

namespace gcompile::passes {
namespace {

using ir::LoopForm;
using ir::NodeId;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::Shape;
using ir::ValueId;
using Order = std::vector<int>;

/// How far apart two neighbours along an axis can lie in memory, whichever comes first: an axis that is read in
/// reverse has a negative stride.
std::int64_t farthest(const ir::Dim& stride) { return std::max(ir::highest(stride), -ir::lowest(stride)); }

/// Axes by descending distance of neighbours: the physical order of a strided tensor. Empty when it is row-major. An
/// axis along which a tensor of open sizes is repeated keeps its place: behind the others it would have all that
/// follows the tensor lie along sizes that only a run knows.
Order order_of(const Shape& shape, const Shape& strides) {
  const bool is_open = !ir::are_constant(shape) || !ir::are_constant(strides);
  const auto moves = [&](std::size_t axis) { return !is_open || (shape[axis] != 1 && strides[axis] != 0); };
  Order moving;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (moves(axis)) moving.push_back(static_cast<int>(axis));
  }
  std::stable_sort(moving.begin(), moving.end(), [&](int a, int b) {
    const auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
    if (shape[x] == 1 || shape[y] == 1) return false;  // extent one: any place will do
    return farthest(strides[x]) > farthest(strides[y]);
  });
  Order order;
  for (std::size_t axis = 0, next = 0; axis < shape.size(); ++axis)
    order.push_back(moves(axis) ? moving[next++] : static_cast<int>(axis));
  return std::is_sorted(order.begin(), order.end()) ? Order{} : order;
}

/// Whether the load walks result axis i along operand axis i only (element-wise, Pad, Slice, Concat, Resize).
bool keeps_axes(const LoopForm& form, const ScalarNode& load) {
  if (load.index.size() != form.store.size()) return false;
  for (std::size_t i = 0; i < load.index.size(); ++i) {
    for (std::size_t j = 0; j < form.extents.size(); ++j) {
      if (form.dag.index_depends_on_axis(load.index[i], static_cast<int>(j)) !=
              form.store[i].mentions(static_cast<int>(j)) &&
          form.dag.index_depends_on_axis(load.index[i], static_cast<int>(j))) {
        return false;
      }
    }
  }
  return true;
}

/// `axis` last, the others as they are.
Order with_last(std::size_t axes, int axis) {
  Order order;
  for (int i = 0; i < static_cast<int>(axes); ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  return order;
}

class Assigner {
 public:
  Assigner(ir::Graph& graph, const ir::KernelPrices* prices) : graph_(graph), prices_(prices) {}

  bool run() {
    const std::vector<NodeId> order = graph_.topological_order();
    for (const NodeId id : order) {
      if (auto offer = offer_of(id)) offers_.emplace(id, *std::move(offer));
    }
    // What is behind a node was not weighed yet when it was, the first time.
    for (int round = 0; round < 2; ++round) {
      for (const auto& [id, offers] : alternatives_) weigh(id, offers);
    }
    for (const ValueId input : graph_.inputs())
      strides_[input] = ir::row_major_strides(graph_.value(input).type.shape);
    for (const NodeId id : order) forward(id);
    for (auto at = order.rbegin(); at != order.rend(); ++at) backward(*at);
    // Choices made backwards change what views look like:
    // settle strides once more, then convert at the edges.
    settled_ = true;
    for (const NodeId id : order) forward(id);
    for (const NodeId id : order) convert_operand(id);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) convert_output(i);
    return true;
  }

 private:
  const Shape& shape(ValueId id) const { return graph_.value(id).type.shape; }

  /// Where data decides which elements of an image are read (RoiAlign, GridSample, deformed taps), those that are read
  /// together lie side by side, and so do the results: one position for a vector.
  std::optional<ir::LayoutOffer> offer_of_positions(const ir::Node& node, const LoopForm& form) const {
    for (const ScalarNode& load : form.dag.nodes()) {
      const auto axes = vector_beside_position(form, load);
      if (!axes || graph_.constant(node.operands[load.operand])) continue;
      const auto stored = std::find_if(form.store.begin(), form.store.end(),
                                       [&](const ir::Index& index) { return index.as_axis() == axes->axis; });
      if (stored == form.store.end()) continue;
      ir::LayoutOffer offer;
      offer.operands.resize(node.operands.size());
      offer.operands[static_cast<std::size_t>(load.operand)] = with_last(load.index.size(), axes->of_operand);
      offer.result = with_last(form.store.size(), static_cast<int>(stored - form.store.begin()));
      return offer;
    }
    return std::nullopt;
  }

  /// Whether tensors of both orders lie alike.
  static bool is_same(const Shape& shape, const Order& a, const Order& b) {
    return ir::same_layout(shape, ir::strides_in_order(shape, a), ir::strides_in_order(shape, b));
  }

  /// The fastest kernel of each layout.
  static std::vector<ir::LayoutOffer> by_layout(const std::vector<ir::LayoutOffer>& offers) {
    std::vector<ir::LayoutOffer> out;
    for (const ir::LayoutOffer& offer : offers) {
      const auto lies_alike = [&](const ir::LayoutOffer& other) {
        return other.result == offer.result && other.operands == offer.operands;
      };
      if (offer.result && std::none_of(out.begin(), out.end(), lies_alike)) out.push_back(offer);
    }
    return out;
  }

  /// The operand of a loop whose order its result takes over: the largest whose axes the result keeps.
  std::optional<ValueId> leader_of(const ir::Node& node, const LoopForm& loops) const {
    std::optional<ValueId> leader;
    std::int64_t largest = 0;
    for (const ScalarNode& load : loops.dag.nodes()) {
      if (load.op != ScalarOp::kLoad || !keeps_axes(loops, load)) continue;
      const ValueId operand = node.operands[load.operand];
      const std::int64_t elements = ir::highest(ir::element_count(shape(operand)));
      const bool lies_somewhere = graph_.value(operand).producer.valid() || graph_.is_input(operand);
      if (elements <= largest || graph_.constant(operand) || !lies_somewhere) continue;
      largest = elements;
      leader = operand;
    }
    return leader;
  }

  /// Nodes around a contraction that are looked at for the order of its operand, and of its result.
  static constexpr int kMostLookedAt = 16;

  /// The order in which a value comes, as far as its makers have chosen; nullopt: that is not known.
  std::optional<Order> comes_in(ValueId value, int nodes = kMostLookedAt) const {
    const NodeId producer = graph_.value(value).producer;
    if (!producer.valid()) return Order{};
    if (const ir::LayoutOffer* chosen = offer(producer)) return chosen->result;
    const auto* loops = std::get_if<LoopForm>(graph_.node(producer).form.get());
    if (!loops || nodes == 0) return std::nullopt;
    const std::optional<ValueId> leader = leader_of(graph_.node(producer), *loops);
    return leader && shape(*leader).size() == shape(value).size() ? comes_in(*leader, nodes - 1)
                                                                  : std::nullopt;
  }

  /// The order that the first reader wants, directly or behind loops.
  std::optional<Order> goes_in(ValueId value) const {
    int nodes = kMostLookedAt;
    return goes_in(value, nodes);
  }
  std::optional<Order> goes_in(ValueId value, int& nodes) const {
    for (const ir::Use& use : graph_.value(value).uses) {
      if (!use.node.valid()) return Order{};
      if (const Order* wanted = wish(use)) return *wanted;
      const ir::Node& reader = graph_.node(use.node);
      const auto* loops = std::get_if<LoopForm>(reader.form.get());
      if (!loops || shape(reader.results[0]).size() != shape(value).size()) continue;
      if (nodes == 0) return std::nullopt;
      --nodes;
      if (leader_of(reader, *loops) != value) continue;
      if (const std::optional<Order> wanted = goes_in(reader.results[0], nodes)) return wanted;
    }
    return std::nullopt;
  }

  /// Takes the layout that is cheapest with what has to be turned before the node and behind it.
  void weigh(NodeId id, const std::vector<ir::LayoutOffer>& offers) {
    poll_interrupt();
    const ir::Node& node = graph_.node(id);
    const std::optional<Order> before = comes_in(node.operands[0]), behind = goes_in(node.results[0]);
    const auto turned = [&](ValueId value, const std::optional<Order>& lies,
                            const std::optional<Order>& wanted) {
      if (!lies || !wanted || is_same(shape(value), *lies, *wanted)) return std::int64_t{0};
      return prices_->moved(2 * ir::highest(graph_.value(value).type.bytes()));
    };
    std::optional<std::int64_t> least;
    for (const ir::LayoutOffer& offer : offers) {
      const std::int64_t price = offer.picoseconds + turned(node.operands[0], before, offer.operands[0]) +
                                 turned(node.results[0], offer.result, behind);
      if (least && price >= *least) continue;
      least = price;
      offers_.insert_or_assign(id, offer);
    }
  }

  /// The layout of the fastest kernel; nullopt: it has no wish.
  std::optional<ir::LayoutOffer> offer_of(NodeId id) {
    if (const auto* loops = std::get_if<LoopForm>(graph_.node(id).form.get()))
      return offer_of_positions(graph_.node(id), *loops);
    const auto dense = [&](ValueId value) { return ir::row_major_strides(shape(value)); };
    const std::optional<ir::Problem> problem =
        std::holds_alternative<ir::ContractForm>(*graph_.node(id).form)
            ? ir::problem_of(graph_, id, *graph_.node(id).form, dense, false)
            : std::nullopt;
    if (!problem) return std::nullopt;
    if (prices_) {
      const std::vector<ir::LayoutOffer> offers = prices_->offers(*problem);
      std::vector<ir::LayoutOffer> layouts = by_layout(offers);
      if (layouts.size() > 1) alternatives_.emplace_back(id, std::move(layouts));
      return offers.empty() || !offers[0].result ? std::nullopt : std::optional(offers[0]);
    }
    const ir::Kind kind = problem->kind();
    if (kind != ir::Kind::kConv && kind != ir::Kind::kConvTranspose && kind != ir::Kind::kPool)
      return std::nullopt;
    const Order order = ir::channels_last(problem->results[0].shape.size());
    return ir::LayoutOffer{{order}, order, 0};
  }
  const ir::LayoutOffer* offer(NodeId id) const {
    const auto at = offers_.find(id);
    return at == offers_.end() ? nullptr : &at->second;
  }
  /// Order in which the reader wants operand `slot`.
  const Order* wish(const ir::Use& use) const {
    const ir::LayoutOffer* wanted = offer(use.node);
    const auto slot = static_cast<std::size_t>(use.slot);
    return wanted && slot < wanted->operands.size() && wanted->operands[slot] ? &*wanted->operands[slot]
                                                                              : nullptr;
  }

  void decide(ValueId id, Order order) {
    strides_[id] = ir::strides_in_order(shape(id), order);
    graph_.value(id).order = std::move(order);
  }

  void forward(NodeId id) {
    poll_interrupt();
    const ir::Node& node = graph_.node(id);
    for (const ValueId result : node.results) {
      if (!result.valid()) continue;
      if (const ir::LayoutOffer* settled = offer(id)) {
        decide(result, *settled->result);
      } else if (const auto* loops = std::get_if<LoopForm>(node.form.get())) {
        forward_loops(node, *loops, result);
      } else if (settled_) {
        decide(result, graph_.value(result).order);
      } else {
        Order order = merged_heads_order(node, result);
        decide(result, order.empty() ? order_of_rows(node, result) : std::move(order));
      }
    }
  }

  void forward_loops(const ir::Node& node, const LoopForm& loops, ValueId result) {
    if (const ScalarNode* load = ir::pure_load(loops)) {
      const ValueId operand = node.operands[load->operand];
      if (const auto known = strides_.find(operand); known != strides_.end()) {
        if (const auto view = ir::view_strides(loops, known->second); view && !wanted_.count(result)) {
          graph_.value(result).order = order_of(shape(result), view->strides);
          strides_[result] = view->strides;
          return;
        }
      }
    }
    if (wanted_.count(result)) {
      decide(result, wanted_.at(result));
      return;
    }
    const std::optional<ValueId> leader = leader_of(node, loops);
    decide(result, leader ? order_of(shape(*leader), strides_.at(*leader)) : Order{});
  }

  /// A product whose only reader permutes its axes is written in the permuted order at once, when the last
  /// axis (along which the kernel stores) stays last: the heads of attention are merged for free.
  Order merged_heads_order(const ir::Node& node, ValueId result) const {
    if (!std::holds_alternative<ir::ContractForm>(*node.form)) return {};
    const auto& uses = graph_.value(result).uses;
    if (uses.size() != 1 || !uses[0].node.valid()) return {};
    const ir::Node& reader = graph_.node(uses[0].node);
    const auto* loops = std::get_if<LoopForm>(reader.form.get());
    const ScalarNode* load = loops ? ir::pure_load(*loops) : nullptr;
    if (!load || load->operand != uses[0].slot || load->index.size() != loops->extents.size()) return {};
    Order order(load->index.size(), -1);
    for (std::size_t axis = 0; axis < load->index.size(); ++axis) {
      const auto to = load->index[axis].as_axis();
      if (!to || order[static_cast<std::size_t>(*to)] != -1) return {};
      order[static_cast<std::size_t>(*to)] = static_cast<int>(axis);
    }
    const bool dense =
        loops->extents.size() == shape(result).size() && order.back() == static_cast<int>(order.size()) - 1;
    return dense && !std::is_sorted(order.begin(), order.end()) ? order : Order{};
  }

  /// A product by a matrix that all share writes its rows in the order in which the left side's lie: they are
  /// those of one matrix on both sides. Only where every reader can take them so.
  Order order_of_rows(const ir::Node& node, ValueId result) const {
    const auto* contract = std::get_if<ir::ContractForm>(node.form.get());
    if (!contract || !std::holds_alternative<ir::ProductWork>(contract->work)) return {};
    const Shape& left = shape(node.operands[0]);
    const auto known = strides_.find(node.operands[0]);
    if (known == strides_.end() || left.size() != shape(result).size()) return {};
    const Shape& right = shape(node.operands[1]);
    if (right.size() < 2) return {};
    if (std::any_of(right.begin(), right.end() - 2, [](ir::Dim extent) { return extent != 1; })) return {};
    Order order = order_of(left, known->second);
    if (order.empty() || order.back() != static_cast<int>(order.size()) - 1) return {};
    return may_lie(result, ir::strides_in_order(shape(result), order)) ? order : Order{};
  }

  /// Whether every reader can take the value so; a map that becomes the epilogue of what it reads writes the
  /// same order.
  bool may_lie(ValueId value, const Shape& strides) const {
    if (graph_.is_output(value) || !unless_views_reach(graph_, value, strides).empty()) return false;
    const std::vector<ir::Use>& uses = graph_.value(value).uses;
    if (uses.size() != 1) return true;
    const ir::Node& reader = graph_.node(uses[0].node);
    const auto* map = std::get_if<LoopForm>(reader.form.get());
    const bool follows =
        map && map->is_map() && !ir::pure_load(*map) && shape(reader.results[0]) == shape(value);
    return !follows || may_lie(reader.results[0], strides);
  }

  /// Values that a map writes anyway take the order that their reader wants.
  void backward(NodeId id) {
    const ir::Node& node = graph_.node(id);
    const auto* loops = std::get_if<LoopForm>(node.form.get());
    if (!loops) return;
    const ValueId result = node.results[0];
    if (graph_.is_output(result)) {
      if (!ir::pure_load(*loops)) wanted_[result] = {};
      return;
    }
    if (shape(result).size() < 3) return;
    std::optional<Order> wanted;
    for (const ir::Use& use : graph_.value(result).uses) {
      const ir::Node& reader = graph_.node(use.node);
      if (const Order* order = wish(use)) wanted = *order;
      const auto* map = std::get_if<LoopForm>(reader.form.get());
      if (!map || shape(reader.results[0]).size() != shape(result).size()) continue;
      const auto of_reader = wanted_.find(reader.results[0]);
      if (of_reader == wanted_.end() || of_reader->second.empty()) continue;
      for (const ScalarNode& load : map->dag.nodes()) {
        if (load.op == ScalarOp::kLoad && load.operand == use.slot && keeps_axes(*map, load)) {
          wanted = of_reader->second;
        }
      }
    }
    if (!wanted || wanted->empty() || lies_along(result, wanted->back())) return;
    wanted_[result] = *std::move(wanted);
  }

  /// Whether a kernel that wants the axis innermost can read the value as it lies: a view stays a view.
  bool lies_along(ValueId value, int inner) const {
    const auto at = static_cast<std::size_t>(inner);
    return shape(value)[at] == 1 || strides_.at(value)[at] == 1;
  }

  ValueId converted(ValueId from, const Order& order) {
    Order key = order;
    const auto [at, inserted] = conversions_.try_emplace({from, key});
    if (!inserted) return at->second;
    const NodeId copy = graph_.add_node(ir::operator_named("Identity"), {from}, {}, 1);
    ir::infer_node(graph_, copy);
    LoopForm form = LoopForm::over(shape(from));
    form.set_root(form.dag.load(0, graph_.value(from).type.element, form.identity()));
    set_form(graph_, copy, std::move(form));
    const ValueId result = graph_.node(copy).results[0];
    graph_.value(result).name = graph_.value(from).name;
    graph_.node(copy).origins = {{"layout", std::nullopt}};
    decide(result, order);
    return at->second = result;
  }

  /// Where no kernel takes a contraction of operands as they lie, because one of them has its last axis at steps
  /// that only a run knows, these are copied.
  void convert_open_rows(NodeId id) {
    if (!prices_ || !std::holds_alternative<ir::ContractForm>(*graph_.node(id).form)) return;
    const auto lies = [&](ValueId value) {
      const auto known = strides_.find(value);
      return known == strides_.end() ? ir::row_major_strides(shape(value)) : known->second;
    };
    const auto is_open = [&](ValueId value) {
      return value.valid() && !shape(value).empty() && !lies(value).back().is_constant();
    };
    const std::vector<ValueId> operands = graph_.node(id).operands;
    if (std::none_of(operands.begin(), operands.end(), is_open)) return;
    const std::optional<ir::Problem> problem = ir::problem_of(graph_, id, *graph_.node(id).form, lies, false);
    if (!problem || !prices_->offers(*problem).empty()) return;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!is_open(operands[i])) continue;
      Order rows(shape(operands[i]).size());  // in so many words: no view of something else
      std::iota(rows.begin(), rows.end(), 0);
      graph_.set_operand(id, static_cast<int>(i), converted(operands[i], rows));
    }
  }

  void convert_operand(NodeId id) {
    convert_open_rows(id);
    const ir::LayoutOffer* settled = offer(id);
    for (std::size_t i = 0; settled && i < settled->operands.size(); ++i) {
      const ValueId operand = graph_.node(id).operands[i];
      const std::optional<Order>& order = settled->operands[i];
      if (!order || order->empty() || !strides_.count(operand) || lies_along(operand, order->back()))
        continue;
      graph_.set_operand(id, static_cast<int>(i), converted(operand, *order));
    }
  }

  void convert_output(std::size_t position) {
    const ValueId id = graph_.outputs()[position];
    const auto known = strides_.find(id);
    if (known == strides_.end() || !graph_.value(id).producer.valid()) return;
    if (ir::same_layout(shape(id), known->second, ir::row_major_strides(shape(id)))) return;
    graph_.set_output(position, converted(id, {}));
  }

  ir::Graph& graph_;
  const ir::KernelPrices* prices_;
  std::map<NodeId, ir::LayoutOffer> offers_;
  std::vector<std::pair<NodeId, std::vector<ir::LayoutOffer>>> alternatives_;  // in the order of the graph
  bool settled_ = false;
  std::map<ValueId, Shape> strides_;  // predicted; absent for constants
  std::map<ValueId, Order> wanted_;
  std::map<std::pair<ValueId, Order>, ValueId> conversions_;
};

}  // namespace

bool assign_layout(ir::Graph& graph, PassContext& context) {
  return Assigner(graph, context.options().prices).run();
}

}  // namespace gcompile::passes
