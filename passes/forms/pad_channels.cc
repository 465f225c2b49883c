// Channels of zeros in front of convolutions (DESIGN law 6: sums of floats are formed in another order).
// Kernels copy the window of a pixel in pieces that do not reach beyond a tap, of at most 16 bytes. An image
// of three channels gives pieces of one element each; with a fourth that holds zeros, one piece of a tap. The
// kernel that rearranges the image of the caller, or the map that makes it, writes the zeros.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/graph/problem.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::LoopForm;
using ir::NodeId;
using ir::ValueId;

constexpr std::size_t kChannelAxis = 1;  // of images, and of weights

ir::TensorType with_channels(ir::TensorType type, std::size_t axis, std::int64_t channels) {
  type.shape[axis] = channels;
  return type;
}

/// What has some channels of operand 0, and zeros in the others.
LoopForm padding(const ir::TensorType& from, std::size_t axis, std::int64_t channels) {
  LoopForm form = LoopForm::over(with_channels(from, axis, channels).shape);
  ir::Region held{form.ranges(), form.dag.load(0, from.element, form.identity())};
  ir::Region zeros{form.ranges(), form.dag.constant(from.element, 0)};
  held.box[axis].high = zeros.box[axis].low = from.shape[axis];
  form.regions = {std::move(held), std::move(zeros)};
  return form;
}

class Padder {
 public:
  Padder(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), prices_(*context.options().prices) {}

  bool run() {
    bool changed = false;
    const std::vector<NodeId> order = graph_.topological_order();
    for (const NodeId id : order) note_plain(id);
    for (const NodeId id : order) {
      poll_interrupt();
      const std::int64_t channels = wanted_channels(id);
      if (channels == 0) continue;
      const ir::Node& node = graph_.node(id);
      const std::int64_t given = shape(node.operands[0])[kChannelAxis];
      graph_.set_operand(id, 0, padded_image(node.operands[0], channels));
      graph_.set_operand(id, 1, padded_weights(graph_.node(id).operands[1], channels));
      context_.did("pad-channels", fmt::format("'{}' reads {} channels of which {} hold zeros",
                                               graph_.node(id).name, channels, channels - given));
      changed = true;
    }
    // A view that nobody reads any more would keep its map from becoming part of what pads it.
    if (changed) eliminate_dead_code(graph_, context_);
    return changed;
  }

 private:
  const ir::Shape& shape(ValueId id) const { return graph_.value(id).type.shape; }

  /// Maps of nothing but what the caller gives, that fusion makes one kernel with what pads their result. Of
  /// what another kernel leaves, they would be its epilogue otherwise.
  void note_plain(NodeId id) {
    const ir::Node& node = graph_.node(id);
    const auto* map = std::get_if<LoopForm>(node.form.get());
    if (!map || !map->is_map() || map->regions.size() != 1 || !map->checks.empty()) return;
    const auto is_plain = [&](ValueId operand) {
      if (!operand.valid()) return true;
      const NodeId producer = graph_.value(operand).producer;
      return !producer.valid() || plain_.count(producer) != 0;
    };
    if (std::all_of(node.operands.begin(), node.operands.end(), is_plain)) plain_.insert(id);
  }

  /// The plain map that makes a value for one reader; nullptr: something else does, or there are others.
  const LoopForm* map_of(ValueId value) const {
    const ir::Value& v = graph_.value(value);
    if (!v.producer.valid() || v.uses.size() != 1 || plain_.count(v.producer) == 0) return nullptr;
    return &std::get<LoopForm>(*graph_.node(v.producer).form);
  }
  ValueId operand_of(ValueId value) const { return graph_.node(graph_.value(value).producer).operands[0]; }

  /// The axis of a movement's operand that the movement shows whole, as an axis of its own.
  std::optional<std::size_t> axis_behind(const LoopForm& movement, ValueId value, std::size_t axis) const {
    const ir::ScalarNode* load = ir::pure_load(movement);
    const ir::Shape& from = shape(operand_of(value));
    std::optional<std::size_t> behind;
    for (std::size_t i = 0; load && i < load->index.size(); ++i) {
      if (!movement.dag.index_depends_on_axis(load->index[i], static_cast<int>(axis))) continue;
      if (behind || load->index[i].as_axis() != static_cast<int>(axis) || from[i] != shape(value)[axis]) {
        return std::nullopt;
      }
      behind = i;
    }
    return behind;
  }

  bool is_made_by_map(ValueId value, std::size_t axis) const {
    const LoopForm* map = map_of(value);
    if (!map || !ir::pure_load(*map)) return map != nullptr;
    const std::optional<std::size_t> behind = axis_behind(*map, value, axis);
    return behind && is_made_by_map(operand_of(value), *behind);
  }

  /// Whether a kernel that writes the image is there anyway, or has to be: it begins as the caller's, whose
  /// channels lie apart, or as a map, which may be seen in another order.
  bool is_written_for(ValueId image) const {
    if (!graph_.value(image).producer.valid()) return !graph_.constant(image);
    return is_made_by_map(image, kChannelAxis);
  }

  /// Whether products of channels of zeros change no sum: float sums may be formed in any order, and integers
  /// are weights as they are.
  static bool adds_nothing(const ir::ContractForm& contract, const ir::Problem& problem) {
    const ElementType element = problem.operands[0].element;
    if (element == ElementType::kFloat32) return contract.reassociates;
    if (!ir::is_integer(element) || ir::bits_of(element) != 8) return false;
    const bool has_zero_points = problem.operands.size() > 3 && problem.operands[3].present;
    if (!has_zero_points) return true;
    const std::optional<ir::ConstantFacts>& zero_points = problem.operands[3].constant;
    return zero_points && zero_points->low == 0 && zero_points->high == 0;
  }

  /// The number for which the convolution is fastest; 0: that which it has.
  std::int64_t wanted_channels(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const auto* contract = std::get_if<ir::ContractForm>(node.form.get());
    const auto* conv = contract ? std::get_if<ir::ConvWork>(&contract->work) : nullptr;
    if (!conv || conv->groups != 1 || !graph_.constant(node.operands[1])) return 0;
    const ValueId image = node.operands[0];
    if (!shape(image)[kChannelAxis].is_constant() || !is_written_for(image)) return 0;
    const std::int64_t given = shape(image)[kChannelAxis];
    if (given <= 1) return 0;
    const auto channels_last = [&](ValueId v) {
      return ir::strides_in_order(shape(v), ir::channels_last(shape(v).size()));
    };
    const std::optional<ir::Problem> problem = ir::problem_of(graph_, id, *node.form, channels_last, false);
    if (!adds_nothing(*contract, *problem)) return 0;
    std::optional<std::int64_t> least = prices_.price(*problem).picoseconds;
    std::int64_t wanted = 0;
    for (const std::int64_t unit : prices_.channel_units()) {
      const std::int64_t channels = (given + unit - 1) / unit * unit;
      if (!least || channels == given) break;
      const std::optional<std::int64_t> price = prices_.price(padded(*problem, channels)).picoseconds;
      if (price && *price < *least) {
        least = price;
        wanted = channels;
      }
    }
    return wanted;
  }

  /// The problem with more channels, and its operands as they will be: what is written for products alone
  /// lies in the bits that they multiply (store_factors.cc).
  ir::Problem padded(ir::Problem problem, std::int64_t channels) const {
    ir::ProblemOperand& image = problem.operands[0];
    image.shape[kChannelAxis] = problem.operands[1].shape[kChannelAxis] = channels;
    image.strides = ir::strides_in_order(image.shape, ir::channels_last(image.shape.size()));
    problem.operands[1].strides = ir::row_major_strides(problem.operands[1].shape);
    const auto factor = prices_.factor_type();
    if (factor && image.element == ElementType::kFloat32) image.element = *factor;
    return problem;
  }

  ValueId padded_image(ValueId image, std::int64_t channels, std::size_t axis = kChannelAxis) {
    const auto [at, inserted] = images_.try_emplace({image, axis, channels});
    if (!inserted) return at->second;
    const LoopForm* map = map_of(image);
    const bool is_seen = map && ir::pure_load(*map);
    ValueId from = image;
    LoopForm form = is_seen ? *map : padding(graph_.value(image).type, axis, channels);
    if (is_seen) {
      form.extents[axis] = form.regions[0].box[axis].high = channels;
      from = padded_image(operand_of(image), channels, *axis_behind(*map, image, axis));
    }
    const NodeId id = graph_.add_node(ir::operator_named("Identity"), {from}, {}, 1);
    const ValueId result = graph_.node(id).results[0];
    graph_.value(result).type = with_channels(graph_.value(image).type, axis, channels);
    graph_.value(result).name = graph_.value(image).name;
    set_form(graph_, id, std::move(form));
    graph_.node(id).origins = {{"pad-channels", std::nullopt}};
    return at->second = result;
  }

  ValueId padded_weights(ValueId weights, std::int64_t channels) {
    const auto [at, inserted] = weights_.try_emplace({weights, channels});
    if (!inserted) return at->second;
    const ir::Tensor& given = *graph_.constant(weights);
    ir::Tensor zeros_added = ir::evaluate(padding(given.type(), kChannelAxis, channels), {&given},
                                          with_channels(given.type(), kChannelAxis, channels));
    return at->second = graph_.add_constant(std::move(zeros_added), graph_.value(weights).name);
  }

  ir::Graph& graph_;
  PassContext& context_;
  const ir::KernelPrices& prices_;
  std::set<NodeId> plain_;
  std::map<std::tuple<ValueId, std::size_t, std::int64_t>, ValueId> images_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> weights_;
};

}  // namespace

bool pad_channels(ir::Graph& graph, PassContext& context) {
  const ir::KernelPrices* prices = context.options().prices;
  return prices && !prices->channel_units().empty() && Padder(graph, context).run();
}

}  // namespace gcompile::passes
