#include "passes/forms/channel_ranges.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/forms/form_reads.h"

namespace gcompile::passes {
namespace {

using ir::Dag;
using ir::ElementType;
using ir::LoopForm;
using ir::Scalar;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::Tensor;
using Known = std::optional<NumberRange>;

Scalar scalar_of(ElementType type, double value) {
  return ir::is_float(type) ? Scalar::of_real(type, value)
                            : Scalar::of_integer(type, static_cast<std::int64_t>(value));
}

NumberRange hull(const NumberRange& a, const NumberRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

/// The numbers as they are stored; nullopt: a float left its range. An integer that did may be any.
Known stored(ElementType type, double low, double high) {
  if (!ir::is_float(type)) {
    const Known all = range_of_type(type);
    return all && low >= all->low && high <= all->high ? Known({low, high}) : all;
  }
  const NumberRange out{ir::round_to(type, low), ir::round_to(type, high)};
  return std::isfinite(out.low) && std::isfinite(out.high) ? Known(out) : std::nullopt;
}

/// Nodes of a loop's expressions at one channel.
class LoopRanges {
 public:
  LoopRanges(const ir::Graph& graph, const ir::Node& node, const LoopForm& form, const RangesOfValues& ranges,
             int loop_axis)
      : graph_(graph), node_(node), form_(form), dag_(form.dag), ranges_(ranges), axis_(loop_axis) {}

  std::vector<NumberRange> run() {
    std::vector<NumberRange> out;
    const std::vector<int> order = dag_.reachable(roots_of(form_));
    for (std::int64_t c = 0; c < form_.extents[static_cast<std::size_t>(axis_)]; ++c) {
      known_.assign(dag_.nodes().size(), {});
      for (const int id : order) {
        known_[static_cast<std::size_t>(id)] = at(dag_[id], c);
        if (!known_[static_cast<std::size_t>(id)])
          known_[static_cast<std::size_t>(id)] = range_of_type(dag_.type(id));
      }
      const Known root = known_[static_cast<std::size_t>(form_.regions[0].root)];
      if (!root) return {};
      out.push_back(*root);
    }
    return out;
  }

 private:
  const Known& argument(const ScalarNode& node, std::size_t i) const {
    return known_[static_cast<std::size_t>(node.arguments[i])];
  }

  Known at(const ScalarNode& node, std::int64_t c) {
    switch (node.op) {
      case ScalarOp::kConstant:
        return stored(node.type, node.constant.as_double(), node.constant.as_double());
      case ScalarOp::kLoad:
        return loaded(node, c);
      case ScalarOp::kAccumulator:
        return accumulated(node);
      case ScalarOp::kCast:
      case ScalarOp::kRound:
        return converted(node);
      case ScalarOp::kRoundHalfEven:
      case ScalarOp::kFloor:
      case ScalarOp::kCeil:
      case ScalarOp::kTrunc:
      case ScalarOp::kNeg:
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
      case ScalarOp::kMul:
      case ScalarOp::kDiv:
      case ScalarOp::kMin:
      case ScalarOp::kMax:
        return at_corners(node);
      default:
        return std::nullopt;
    }
  }

  Known converted(const ScalarNode& node) const {
    const Known& x = argument(node, 0);
    if (!x) return std::nullopt;
    if (node.op == ScalarOp::kRound) return stored(node.type, x->low, x->high);
    if (node.type == ElementType::kBool) return std::nullopt;
    const ElementType from = dag_.type(node.arguments[0]);
    const auto cast = [&](double value) { return ir::cast(scalar_of(from, value), node.type).as_double(); };
    // Floats saturate, integers wrap: of these what leaves the range may be anything in it.
    return ir::is_float(from) ? Known({cast(x->low), cast(x->high)}) : stored(node.type, x->low, x->high);
  }

  /// An operator that is monotone in each argument has its least and greatest values at their ends.
  Known at_corners(const ScalarNode& node) const {
    std::vector<NumberRange> arguments;
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      if (!argument(node, i)) return std::nullopt;
      arguments.push_back(*argument(node, i));
    }
    const bool is_float = ir::is_float(node.type);
    if (!is_float && (ir::bits_of(node.type) > 32 || node.op == ScalarOp::kDiv)) return std::nullopt;
    if (node.op == ScalarOp::kDiv && arguments[1].low <= 0 && arguments[1].high >= 0) return std::nullopt;
    double low = 0, high = 0;
    for (unsigned corner = 0; corner < 1u << arguments.size(); ++corner) {
      std::vector<Scalar> values;
      // Integers of at most 32 bits are computed in 64, where nothing wraps.
      const ElementType type = is_float ? node.type : ElementType::kInt64;
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        values.push_back(scalar_of(type, corner >> i & 1u ? arguments[i].high : arguments[i].low));
      }
      const double value = ir::evaluate(node.op, values).as_double();
      low = corner == 0 ? value : std::min(low, value);
      high = corner == 0 ? value : std::max(high, value);
    }
    return stored(node.type, low, high);
  }

  Known accumulated(const ScalarNode& node) const {
    const ir::Stage& stage = form_.stages[static_cast<std::size_t>(node.operand)];
    const Known& x = known_[static_cast<std::size_t>(stage.root)];
    if (!x || stage.combine == ir::Combine::kMax || stage.combine == ir::Combine::kMin) return x;
    // Sums of floats are rounded in an order of the kernel's.
    if (stage.combine != ir::Combine::kSum || ir::is_float(node.type)) return std::nullopt;
    double count = 1;
    for (std::size_t i = static_cast<std::size_t>(form_.parallel); i < form_.extents.size(); ++i)
      count *= static_cast<double>(form_.extents[i]);
    return stored(node.type, count * x->low, count * x->high);
  }

  Known loaded(const ScalarNode& load, std::int64_t c) {
    const ir::ValueId id = node_.operands[static_cast<std::size_t>(load.operand)];
    const auto at_axis = [&](int axis) {
      return load.index[static_cast<std::size_t>(axis)].as_axis() == axis_;
    };
    if (const Tensor* constant = graph_.constant(id)) return constant_at(*constant, load, c);
    const auto found = ranges_.find(id);
    if (found == ranges_.end()) return std::nullopt;
    const std::vector<NumberRange>& channels = found->second.channels;
    if (at_axis(found->second.axis)) return channels[static_cast<std::size_t>(c)];
    NumberRange all = channels[0];
    for (const NumberRange& channel : channels) all = hull(all, channel);
    return all;
  }

  /// The elements of a constant that are read at channel c, or all.
  Known constant_at(const Tensor& constant, const ScalarNode& load, std::int64_t c) const {
    const ir::Shape strides = ir::row_major_strides(constant.shape());
    std::int64_t stride = 0, extent = 1;
    for (std::size_t i = 0; i < load.index.size(); ++i) {
      if (load.index[i].as_axis() != axis_) continue;
      stride = strides[i];
      extent = constant.shape()[i];
    }
    Known out;
    for (std::int64_t i = 0; i < constant.count(); ++i) {
      if (stride != 0 && i / stride % extent != c) continue;
      const double value = constant.real_at(i);
      if (!std::isfinite(value)) return std::nullopt;
      out = out ? hull(*out, {value, value}) : NumberRange{value, value};
    }
    return out;
  }

  const ir::Graph& graph_;
  const ir::Node& node_;
  const LoopForm& form_;
  const Dag& dag_;
  const RangesOfValues& ranges_;
  const int axis_;
  std::vector<Known> known_;  // by node of the dag
};

bool is_short(const ir::Graph& graph, ir::ValueId id) {
  const ElementType type = graph.value(id).type.element;
  return ir::is_integer(type) && ir::bits_of(type) <= 16;
}

/// What a result of no known range can be at each channel of x.
std::vector<NumberRange> ranges_of(const ir::Graph& graph, ir::ValueId id, const RangesOfValues& ranges,
                                   int axis) {
  const auto found = ranges.find(id);
  if (found != ranges.end() && found->second.axis == axis) return found->second.channels;
  const ir::TensorType& type = graph.value(id).type;
  const std::int64_t count = type.shape[static_cast<std::size_t>(axis)];
  return std::vector<NumberRange>(static_cast<std::size_t>(count), *range_of_type(type.element));
}

void note(const ir::Graph& graph, ir::NodeId id, RangesOfValues& ranges) {
  const ir::Node& node = graph.node(id);
  const ir::ValueId result = node.results[0];
  if (!ir::are_constant(graph.value(result).type.shape)) return;
  if (const auto contraction = IntegerContraction::of(graph, id)) {
    const auto x = ranges_of(graph, node.operands[0], ranges, contraction->x_axis());
    ranges[result] = {contraction->result_axis(), contraction->ranges(x)};
    return;
  }
  const auto is_known = [&](ir::ValueId operand) { return ranges.count(operand) > 0; };
  if (std::none_of(node.operands.begin(), node.operands.end(), is_known)) return;
  const ir::Form form = ir::form_of(graph, id);
  const auto* loops = std::get_if<LoopForm>(&form);
  if (!loops) return;
  const auto axis = channel_axis(node, *loops, ranges);
  if (!axis) return;
  std::vector<NumberRange> channels = LoopRanges(graph, node, *loops, ranges, axis->loop).run();
  if (!channels.empty()) ranges[result] = {axis->result, std::move(channels)};
}

}  // namespace

std::optional<NumberRange> range_of_type(ElementType type) {
  if (!ir::is_integer(type) || ir::bits_of(type) > 32) return std::nullopt;
  return NumberRange{static_cast<double>(ir::integer_lowest(type)),
                     static_cast<double>(ir::integer_highest(type))};
}

std::optional<ChannelAxis> channel_axis(const ir::Node& node, const LoopForm& form,
                                        const RangesOfValues& ranges) {
  if (form.regions.size() != 1 || !form.checks.empty() || form.final_over_reduced ||
      !ir::are_constant(form.extents))
    return std::nullopt;
  std::optional<int> loop;
  for (const int id : form.dag.reachable(roots_of(form))) {
    const ScalarNode& load = form.dag[id];
    if (load.op != ScalarOp::kLoad) continue;
    const auto found = ranges.find(node.operands[static_cast<std::size_t>(load.operand)]);
    if (found == ranges.end()) continue;
    const std::optional<int> axis = load.index[static_cast<std::size_t>(found->second.axis)].as_axis();
    if (!axis || (loop && *loop != *axis)) return std::nullopt;
    const auto channels = static_cast<std::int64_t>(found->second.channels.size());
    if (form.extents[static_cast<std::size_t>(*axis)] != channels || *axis >= form.parallel)
      return std::nullopt;
    loop = axis;
  }
  for (std::size_t i = 0; loop && i < form.store.size(); ++i) {
    if (form.store[i].as_axis() == *loop) return ChannelAxis{*loop, static_cast<int>(i)};
  }
  return std::nullopt;
}

std::optional<IntegerContraction> IntegerContraction::of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (node.operands.size() < 2 || node.results.size() != 1 || (!node.form && !node.op->lower))
    return std::nullopt;
  const Tensor* weights = graph.constant(node.operands[1]);
  if (!weights || !is_short(graph, node.operands[0]) || !is_short(graph, node.operands[1]))
    return std::nullopt;
  if (!ir::are_constant(graph.value(node.operands[0]).type.shape)) return std::nullopt;
  const ir::Form form = ir::form_of(graph, id);
  const auto* contract = std::get_if<ir::ContractForm>(&form);
  if (!contract || contract->accumulator != ElementType::kInt32) return std::nullopt;
  const LoopForm& last = contract->epilogue;
  if (last.regions.size() != 1 || last.dag[last.regions[0].root].op != ScalarOp::kAccumulator)
    return std::nullopt;
  const ir::Shape &x = graph.value(node.operands[0]).type.shape, &w = weights->shape();
  IntegerContraction out;
  out.weights_ = weights;
  if (const auto* conv = std::get_if<ir::ConvWork>(&contract->work)) {
    out.groups_ = conv->groups;
    out.inputs_ = x[1], out.outputs_ = w[0];
    for (std::size_t i = 2; i < w.size(); ++i) out.taps_ *= w[i];
    out.input_step_ = out.taps_, out.output_step_ = out.taps_ * w[1];
    const auto& pads = conv->window.pads;
    out.is_padded_ = std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad != 0; });
  } else if (std::holds_alternative<ir::ProductWork>(contract->work) && w.size() == 2 && x.size() >= 2) {
    out.inputs_ = w[0], out.outputs_ = w[1];
    out.input_step_ = w[1], out.output_step_ = 1;
    out.x_axis_ = out.result_axis_ = static_cast<int>(x.size()) - 1;
    out.w_input_axis_ = 0, out.w_output_axis_ = 1;
  } else {
    return std::nullopt;
  }
  for (std::size_t i = 2; i < node.operands.size(); ++i) {
    if (!node.operands[i].valid()) continue;
    const Tensor* zeros = graph.constant(node.operands[i]);
    if (!zeros || (zeros->count() != 1 && (i == 2 || zeros->shape() != ir::Shape{out.outputs_})))
      return std::nullopt;
    if (i == 2) out.zero_ = zeros->real_at(0);
    if (i == 3) out.weight_zeros_ = zeros->ints();
  }
  return out;
}

std::int64_t IntegerContraction::weight(std::int64_t input, std::int64_t output, std::int64_t tap) const {
  const std::int64_t zero =
      weight_zeros_.empty() ? 0
                            : weight_zeros_[weight_zeros_.size() == 1 ? 0 : static_cast<std::size_t>(output)];
  return weights_->int_at(output * output_step_ + input * input_step_ + tap) - zero;
}

std::int64_t IntegerContraction::sum_of_weights(std::int64_t input, std::int64_t output) const {
  std::int64_t sum = 0;
  for (std::int64_t tap = 0; tap < taps_; ++tap) sum += weight(input, output, tap);
  return sum;
}

bool IntegerContraction::reads(std::int64_t input) const {
  for (std::int64_t output = 0; output < outputs_; ++output) {
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      if (weight(input, output, tap) != 0) return true;
    }
  }
  return false;
}

std::vector<NumberRange> IntegerContraction::ranges(const std::vector<NumberRange>& x) const {
  std::vector<NumberRange> out;
  const std::int64_t depth = inputs_ / groups_, width = outputs_ / groups_;
  for (std::int64_t output = 0; output < outputs_; ++output) {
    poll_interrupt();
    NumberRange sum;
    for (std::int64_t input = 0; input < depth; ++input) {
      const NumberRange& given = x[static_cast<std::size_t>(output / width * depth + input)];
      NumberRange value{given.low - zero_, given.high - zero_};
      if (is_padded_) value = hull(value, {0, 0});
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        const auto factor = static_cast<double>(weight(input, output, tap));
        sum.low += factor * (factor > 0 ? value.low : value.high);
        sum.high += factor * (factor > 0 ? value.high : value.low);
      }
    }
    out.push_back(*stored(ElementType::kInt32, sum.low, sum.high));
  }
  return out;
}

RangesOfValues channel_ranges(const ir::Graph& graph) {
  RangesOfValues ranges;
  for (const ir::NodeId id : graph.topological_order()) {
    poll_interrupt();
    const ir::Node& node = graph.node(id);
    if (node.results.size() != 1 || !node.results[0].valid() || !node.subgraphs.empty()) continue;
    if (node.form || node.op->lower) note(graph, id, ranges);
  }
  return ranges;
}

}  // namespace gcompile::passes
