// Channels of integer networks that nobody needs go: those that are one number in every run wherever
// they leave a chain of loops and depthwise convolutions for a contraction, whose sums then have that number's
// share as a constant, and those that such a contraction multiplies by zero alone.
//   conv(x, w)[m] = conv(x without c, w without c)[m] + (x[c] - zero) * sum(w[m, c])
// At the border of a padded convolution fewer taps count, so that there the number has to be the zero point.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/ops/support.h"
#include "passes/engine/passes.h"
#include "passes/forms/channel_ranges.h"
#include "passes/forms/form_reads.h"

namespace gcompile::passes {
namespace {

using ir::LoopForm;
using ir::NodeId;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::Tensor;
using ir::ValueId;
using Channels = std::vector<std::int64_t>;

/// The elements of some indices of an axis.
Tensor taken(const Tensor& tensor, int axis, const Channels& kept) {
  ir::TensorType type = tensor.type();
  std::int64_t lines = 1, bytes = ir::bits_of(type.element) / 8;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    if (static_cast<int>(i) < axis) lines *= type.shape[i];
    if (static_cast<int>(i) > axis) bytes *= type.shape[i];
  }
  const std::int64_t count = type.shape[static_cast<std::size_t>(axis)];
  type.shape[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(kept.size());
  Tensor out(std::move(type));
  std::byte* to = out.mutable_bytes().data();
  for (std::int64_t line = 0; line < lines; ++line) {
    for (const std::int64_t c : kept) {
      std::memcpy(to, tensor.bytes().data() + (line * count + c) * bytes, static_cast<std::size_t>(bytes));
      to += bytes;
    }
  }
  return out;
}

/// What a loop does to channels.
struct Tie {
  ChannelAxis axis;
  bool is_view = false;  // elements in their order, of whose new shape an operand says more than the loop
  std::map<int, int> constants;  // by slot, the axis at which a constant has the channels
};

/// Values whose channels are the same ones, and what becomes of these.
struct Component {
  std::vector<ValueId> values;
  std::vector<bool> is_needed;
  Channels kept;
};

class ChannelFolder {
 public:
  ChannelFolder(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), ranges_(channel_ranges(graph)) {}

  bool run() {
    if (ranges_.empty()) return false;
    const std::vector<NodeId> order = graph_.topological_order();
    for (const auto& [value, ranges] : ranges_) parent_[value] = value;
    for (const NodeId id : order) join(id);
    for (const auto& [value, ranges] : ranges_) {
      Component& component = components_[root_of(value)];
      component.values.push_back(value);
      component.is_needed.resize(ranges.channels.size(), false);
    }
    bool changed = false;
    for (auto& [root, component] : components_) {
      for (const ValueId value : component.values) judge(value, component);
      changed |= keep_some(component);
    }
    if (!changed) return false;
    for (const NodeId id : order) {
      poll_interrupt();
      shrink(id);
    }
    graph_.erase_unused_constants();
    return true;
  }

 private:
  // Which channels are the same ----------------------------------------------------------------------------

  ValueId root_of(ValueId value) {
    while (parent_.at(value) != value) value = parent_.at(value) = parent_.at(parent_.at(value));
    return value;
  }
  bool has_channels(ValueId value) const { return ranges_.count(value) > 0; }
  ValueId result_of(NodeId id) const { return graph_.node(id).results[0]; }

  /// Whether it is a depthwise convolution whose channels are those of what it reads.
  bool passes_on(NodeId id) const {
    const auto found = contractions_.find(id);
    if (found == contractions_.end() || !found->second.is_depthwise()) return false;
    const auto x = ranges_.find(operand_of(id));
    return x != ranges_.end() && x->second.axis == found->second.x_axis();
  }

  void join(NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (node.results.size() != 1 || !has_channels(node.results[0])) return;
    if (const auto contraction = IntegerContraction::of(graph_, id)) {
      contractions_.emplace(id, *contraction);
      if (passes_on(id)) parent_[root_of(node.operands[0])] = root_of(node.results[0]);
      return;
    }
    const auto tie = tie_of(node, ir::form_of(graph_, id));
    if (!tie) return;
    ties_.emplace(id, *tie);
    for (const ValueId operand : node.operands) {
      if (has_channels(operand)) parent_[root_of(operand)] = root_of(node.results[0]);
    }
  }

  /// nullopt: a channel of the result is not that of each operand.
  std::optional<Tie> tie_of(const ir::Node& node, const ir::Form& form) const {
    const auto* loops = std::get_if<LoopForm>(&form);
    const auto axis = loops ? channel_axis(node, *loops, ranges_) : std::nullopt;
    if (!axis) return std::nullopt;
    const auto mentions = [&](const ir::Index& index) {
      return loops->dag.index_depends_on_axis(index, axis->loop);
    };
    std::vector<bool> is_loaded;  // or says nothing of sizes
    for (const ValueId operand : node.operands)
      is_loaded.push_back(!operand.valid() || ir::is_float(graph_.value(operand).type.element));
    Tie tie{*axis, false, {}};
    for (const int id : loops->dag.reachable(roots_of(*loops))) {
      const ScalarNode& load = loops->dag[id];
      if (load.op != ScalarOp::kLoad && load.op != ScalarOp::kIota) continue;
      const auto count = std::count_if(load.index.begin(), load.index.end(), mentions);
      if (load.op == ScalarOp::kIota && count > 0) return std::nullopt;
      if (load.op == ScalarOp::kIota) continue;
      const ValueId operand = node.operands[static_cast<std::size_t>(load.operand)];
      is_loaded[static_cast<std::size_t>(load.operand)] = true;
      if (count == 0) continue;
      const auto channel = channel_of(load, *axis);
      if (count > 1 || !channel) return std::nullopt;
      if (has_channels(operand)) continue;
      if (!graph_.constant(operand) || !tie.constants.emplace(load.operand, *channel).second)
        return std::nullopt;
    }
    if (std::count_if(loops->store.begin(), loops->store.end(), mentions) != 1) return std::nullopt;
    // An operand that is not loaded may say sizes, but of a reduction it says axes.
    const bool all_loaded = std::all_of(is_loaded.begin(), is_loaded.end(), [](bool is) { return is; });
    const bool is_view = ir::pure_load(*loops) != nullptr && node.op->traits.keeps_elements;
    if (!all_loaded && !is_view && loops->stages.empty()) return std::nullopt;
    tie.is_view = is_view && !all_loaded;
    return tie;
  }

  /// The axis of the operand at which it has the channels.
  static std::optional<int> channel_of(const ScalarNode& load, const ChannelAxis& axis) {
    for (std::size_t i = 0; i < load.index.size(); ++i) {
      if (load.index[i].as_axis() == axis.loop) return static_cast<int>(i);
    }
    return std::nullopt;
  }

  // Which of them are needed -------------------------------------------------------------------------------

  void judge(ValueId value, Component& component) const {
    const NodeId producer = graph_.value(value).producer;
    const auto made = contractions_.find(producer);
    const bool is_source = made != contractions_.end() && made->second.groups() == 1;
    if (!is_source && !passes_on(producer) && ties_.count(producer) == 0) return need_all(component);
    for (const ir::Use& use : graph_.value(value).uses) {
      if (!use.node.valid()) return need_all(component);
      const auto reader = contractions_.find(use.node);
      if (reader == contractions_.end()) {
        if (ties_.count(use.node) == 0) return need_all(component);
      } else if (use.slot != 0 || reader->second.x_axis() != ranges_.at(value).axis) {
        return need_all(component);
      } else if (reader->second.groups() == 1) {
        need_for(reader->second, ranges_.at(value).channels, component);
      } else if (!passes_on(use.node)) {
        return need_all(component);
      }
    }
  }
  ValueId operand_of(NodeId id) const { return graph_.node(id).operands[0]; }

  static void need_all(Component& component) {
    std::fill(component.is_needed.begin(), component.is_needed.end(), true);
  }
  static void need_for(const IntegerContraction& reader, const std::vector<NumberRange>& channels,
                       Component& component) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (component.is_needed[c]) continue;
      const bool is_known =
          channels[c].is_one_number() && (!reader.is_padded() || channels[c].low == reader.zero());
      component.is_needed[c] = !is_known && reader.reads(static_cast<std::int64_t>(c));
    }
  }

  /// Channels that nobody needs stay as far as kernels compute them beside the others anyway.
  bool keep_some(Component& component) {
    const auto count = static_cast<std::int64_t>(component.is_needed.size());
    const std::int64_t needed = std::count(component.is_needed.begin(), component.is_needed.end(), true);
    const ir::KernelPrices* prices = context_.options().prices;
    const std::int64_t unit = prices == nullptr ? 1 : prices->channels_together();
    const std::int64_t wanted = std::max<std::int64_t>((needed + unit - 1) / unit * unit, 1);
    if (wanted >= count) return false;
    std::int64_t spare = wanted - needed;
    for (std::int64_t c = 0; c < count; ++c) {
      const bool is_needed = component.is_needed[static_cast<std::size_t>(c)];
      if (is_needed || spare-- > 0) component.kept.push_back(c);
    }
    context_.did(graph_.node(graph_.value(component.values[0]).producer).name,
                 fmt::format("{} of {} channels are constant or read by nobody", count - wanted, count));
    context_.count("constant-channels");
    return true;
  }

  // What the graph is without the others -------------------------------------------------------------------

  /// Nothing where the value keeps all of its channels.
  const Channels* kept_of(ValueId value) {
    if (!has_channels(value)) return nullptr;
    const Component& component = components_.at(root_of(value));
    return component.kept.empty() ? nullptr : &component.kept;
  }

  void set_taken(NodeId id, int slot, int axis, const Channels& kept) {
    const ValueId operand = graph_.node(id).operands[static_cast<std::size_t>(slot)];
    Tensor part = taken(*graph_.constant(operand), axis, kept);
    graph_.set_operand(id, slot, graph_.add_constant(std::move(part), graph_.value(operand).name));
  }

  void shrink(NodeId id) {
    const auto contraction = contractions_.find(id);
    if (contraction != contractions_.end()) return shrink_contraction(id, contraction->second);
    const auto tie = ties_.find(id);
    const Channels* kept = tie == ties_.end() ? nullptr : kept_of(result_of(id));
    if (!kept) return;
    if (tie->second.is_view) return shrink_view(id, tie->second, *kept);
    for (const auto& [slot, axis] : tie->second.constants) set_taken(id, slot, axis, *kept);
    ir::infer_node(graph_, id);
  }

  void shrink_view(NodeId id, const Tie& tie, const Channels& kept) {
    ir::RewriteContext context(graph_, id, 0);
    ir::Shape shape = context.result(0).shape;
    shape[static_cast<std::size_t>(tie.axis.result)] = static_cast<std::int64_t>(kept.size());
    replace(id, ir::emit_reshape(context, context.operand_id(0), shape));
  }

  /// The value takes over, also as what has the channels.
  void replace(NodeId id, ValueId value) {
    const ValueId result = result_of(id);
    parent_[value] = root_of(result);
    ranges_[value] = ranges_.at(result);
    graph_.replace_uses(result, value);
    graph_.erase_node(id);
  }

  void shrink_contraction(NodeId id, const IntegerContraction& contraction) {
    const Channels* inputs = contraction.groups() == 1 ? kept_of(operand_of(id)) : nullptr;
    const Channels* outputs = kept_of(result_of(id));
    if (!inputs && !outputs) return;
    Tensor share = inputs ? share_of_others(operand_of(id), contraction, *inputs) : Tensor();
    if (inputs) set_taken(id, 1, contraction.w_input_axis(), *inputs);
    if (outputs) {
      set_taken(id, 1, contraction.w_output_axis(), *outputs);
      const auto& operands = graph_.node(id).operands;
      if (operands.size() > 3 && operands[3].valid() && graph_.constant(operands[3])->count() > 1)
        set_taken(id, 3, 0, *outputs);
      if (inputs) share = taken(share, 0, *outputs);
    }
    if (contraction.is_depthwise())
      graph_.node(id).attributes.set("group", static_cast<std::int64_t>(outputs->size()));
    ir::infer_node(graph_, id);
    if (inputs) add(id, share, contraction.result_axis());
  }

  /// What the inputs that go add to each output: nothing where they are not read.
  Tensor share_of_others(ValueId x, const IntegerContraction& contraction, const Channels& kept) const {
    const std::vector<NumberRange>& channels = ranges_.at(x).channels;
    Tensor share(ir::TensorType{ir::ElementType::kInt32, {contraction.outputs()}});
    for (std::int64_t output = 0; output < contraction.outputs(); ++output) {
      std::int64_t sum = 0;
      for (std::int64_t input = 0; input < contraction.inputs(); ++input) {
        const NumberRange& number = channels[static_cast<std::size_t>(input)];
        if (!number.is_one_number() || number.low == contraction.zero()) continue;
        if (std::binary_search(kept.begin(), kept.end(), input)) continue;
        const auto difference = static_cast<std::int64_t>(number.low - contraction.zero());
        sum += difference * contraction.sum_of_weights(input, output);
      }
      share.set(output,
                ir::Scalar::of_integer(ir::ElementType::kInt32, sum));  // modulo 2^32, as the sums are
    }
    return share;
  }

  void add(NodeId id, const Tensor& share, int axis) {
    bool is_zero = true;
    for (std::int64_t i = 0; i < share.count(); ++i) is_zero &= share.int_at(i) == 0;
    if (is_zero) return;
    ir::RewriteContext context(graph_, id, 0);
    const ValueId result = result_of(id);
    const std::vector<ir::Use> uses = graph_.value(result).uses;
    ir::Shape shape(static_cast<std::size_t>(context.result(0).rank() - axis), 1);
    shape[0] = share.count();
    const ValueId sum = context.emit("Add", {result, graph_.add_constant(share.reshaped(shape))});
    parent_[sum] = root_of(result);
    ranges_[sum] = ranges_.at(result);
    for (const ir::Use& use : uses) {
      if (use.node.valid())
        graph_.set_operand(use.node, use.slot, sum);
      else
        graph_.set_output(static_cast<std::size_t>(use.slot), sum);
    }
  }

  ir::Graph& graph_;
  PassContext& context_;
  RangesOfValues ranges_;
  std::map<ValueId, ValueId> parent_;
  std::map<ValueId, Component> components_;  // by the root of their values
  std::map<NodeId, IntegerContraction> contractions_;
  std::map<NodeId, Tie> ties_;
};

}  // namespace

bool fold_constant_channels(ir::Graph& graph, PassContext& context) {
  return ChannelFolder(graph, context).run();
}

}  // namespace gcompile::passes
