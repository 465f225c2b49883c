// Channels of zeros in front of convolutions (DESIGN law 6: sums are formed in another order). Kernels copy
// the window of a pixel in pieces that do not reach beyond a tap, of at most 16 bytes. An image of three
// channels gives pieces of one element each; with a fourth that holds zeros, one piece of a tap. The kernel
// that rearranges the image of the caller, or the map that makes it, writes the zeros.

#include <fmt/format.h>

#include <map>

#include "ir/interrupt.h"
#include "ir/operator.h"
#include "ir/problem.h"
#include "passes/form_edit.h"
#include "passes/passes.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::LoopForm;
using ir::NodeId;
using ir::ValueId;

constexpr std::size_t kChannelAxis = 1;  // of images, and of weights

ir::TensorType with_channels(ir::TensorType type, std::int64_t channels) {
  type.shape[kChannelAxis] = channels;
  return type;
}

/// What has some channels of operand 0, and zeros in the others.
LoopForm padding(const ir::TensorType& from, std::int64_t channels) {
  LoopForm form = LoopForm::over(with_channels(from, channels).shape);
  ir::Region held{form.ranges(), form.dag.load(0, from.element, form.identity())};
  ir::Region zeros{form.ranges(), form.dag.constant(from.element, 0)};
  held.box[kChannelAxis].high = zeros.box[kChannelAxis].low = from.shape[kChannelAxis];
  form.regions = {std::move(held), std::move(zeros)};
  return form;
}

class Padder {
 public:
  Padder(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), prices_(*context.options().prices) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph_.topological_order()) {
      ir::poll_interrupt();
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
    return changed;
  }

 private:
  const ir::Shape& shape(ValueId id) const { return graph_.value(id).type.shape; }

  /// Whether a kernel that writes the image is there anyway, or has to be: it begins as the caller's, whose
  /// channels lie apart, or as a map.
  bool is_written_for(ValueId image) const {
    const ir::Value& value = graph_.value(image);
    if (!value.producer.valid()) return !graph_.constant(image);
    const auto* map = std::get_if<LoopForm>(graph_.node(value.producer).form.get());
    return map && map->is_map() && !ir::pure_load(*map) && value.uses.size() == 1;
  }

  /// The number for which the convolution is fastest; 0: that which it has.
  std::int64_t wanted_channels(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const auto* contract = std::get_if<ir::ContractForm>(node.form.get());
    const auto* conv = contract ? std::get_if<ir::ConvWork>(&contract->work) : nullptr;
    if (!conv || conv->groups != 1 || !contract->reassociates) return 0;
    const ValueId image = node.operands[0], weights = node.operands[1];
    if (!graph_.constant(weights) || graph_.value(image).type.element != ElementType::kFloat32) return 0;
    if (!shape(image)[kChannelAxis].is_constant() || !is_written_for(image)) return 0;
    const std::int64_t given = shape(image)[kChannelAxis];
    if (given <= 1) return 0;
    const auto channels_last = [&](ValueId v) {
      return ir::strides_in_order(shape(v), ir::channels_last(shape(v).size()));
    };
    const std::optional<ir::Problem> problem = ir::problem_of(graph_, id, *node.form, channels_last, false);
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

  /// As it will be: what is written for products alone lies in the bits that they multiply
  /// (store_factors.cc).
  ir::Problem padded(ir::Problem problem, std::int64_t channels) const {
    ir::ProblemOperand& image = problem.operands[0];
    image.shape[kChannelAxis] = problem.operands[1].shape[kChannelAxis] = channels;
    image.strides = ir::strides_in_order(image.shape, ir::channels_last(image.shape.size()));
    problem.operands[1].strides = ir::row_major_strides(problem.operands[1].shape);
    if (const auto factor = prices_.factor_type()) image.element = *factor;
    return problem;
  }

  ValueId padded_image(ValueId image, std::int64_t channels) {
    const auto [at, inserted] = images_.try_emplace({image, channels});
    if (!inserted) return at->second;
    const NodeId id = graph_.add_node(ir::operator_named("Identity"), {image}, {}, 1);
    const ValueId result = graph_.node(id).results[0];
    const ir::Value& from = graph_.value(image);
    graph_.value(result).type = with_channels(from.type, channels);
    graph_.value(result).name = from.name;
    set_form(graph_, id, padding(from.type, channels));
    graph_.node(id).origins = {{"pad-channels", std::nullopt}};
    return at->second = result;
  }

  ValueId padded_weights(ValueId weights, std::int64_t channels) {
    const auto [at, inserted] = weights_.try_emplace({weights, channels});
    if (!inserted) return at->second;
    const ir::Tensor& given = *graph_.constant(weights);
    ir::Tensor zeros_added =
        ir::evaluate(padding(given.type(), channels), {&given}, with_channels(given.type(), channels));
    return at->second = graph_.add_constant(std::move(zeros_added), graph_.value(weights).name);
  }

  ir::Graph& graph_;
  PassContext& context_;
  const ir::KernelPrices& prices_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> images_, weights_;
};

}  // namespace

bool pad_channels(ir::Graph& graph, PassContext& context) {
  const ir::KernelPrices* prices = context.options().prices;
  return prices && !prices->channel_units().empty() && Padder(graph, context).run();
}

}  // namespace gcompile::passes
