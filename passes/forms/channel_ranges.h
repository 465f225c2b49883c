#pragma once
// What the channels of a network of integers can be, whatever the model is given: intervals from
// contractions with constant weights on, through loops. Every operator on the way that is followed is monotone in
// each of its arguments and rounds as kernels do, so that an interval of one number is that number in every run.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/forms/form.h"
#include "ir/graph/graph.h"

namespace gcompile::passes {

struct NumberRange {
  double low = 0, high = 0;
  bool is_one_number() const { return low == high; }
};

/// Intervals of the elements at each index of an axis.
struct ChannelRanges {
  int axis = 1;
  std::vector<NumberRange> channels;
};
using RangesOfValues = std::map<ir::ValueId, ChannelRanges>;

/// The axis of the result along which all operands of known ranges have their channels, each where it stays;
/// nullopt: there is none.
struct ChannelAxis {
  int loop, result;
};
std::optional<ChannelAxis> channel_axis(const ir::Node& node, const ir::LoopForm& form,
                                        const RangesOfValues& ranges);

/// A contraction of integers of at most 16 bits by constant weights: a convolution, or a product by one matrix.
class IntegerContraction {
 public:
  /// nullopt: the node is none, or a zero point is computed.
  static std::optional<IntegerContraction> of(const ir::Graph& graph, ir::NodeId id);

  std::int64_t inputs() const { return inputs_; }    // channels of x, of all groups
  std::int64_t outputs() const { return outputs_; }  // channels of the result
  std::int64_t groups() const { return groups_; }
  bool is_depthwise() const { return groups_ > 1 && groups_ == inputs_ && inputs_ == outputs_; }
  bool is_padded() const { return is_padded_; }
  double zero() const { return zero_; }  // of x
  /// The axes of channels: of x, of the result, and of both in the weights.
  int x_axis() const { return x_axis_; }
  int result_axis() const { return result_axis_; }
  int w_input_axis() const { return w_input_axis_; }
  int w_output_axis() const { return w_output_axis_; }
  /// The sum of the weights, less their zero point, between an input of a group and an output.
  std::int64_t sum_of_weights(std::int64_t input, std::int64_t output) const;
  bool reads(std::int64_t input) const;  // whether any weight of an ungrouped input is not the zero point
  /// What the results can be if x is within `x`, by channel.
  std::vector<NumberRange> ranges(const std::vector<NumberRange>& x) const;

 private:
  std::int64_t weight(std::int64_t input, std::int64_t output, std::int64_t tap) const;

  const ir::Tensor* weights_ = nullptr;
  std::vector<std::int64_t> weight_zeros_;  // one, or one per output
  double zero_ = 0;
  std::int64_t inputs_ = 0, outputs_ = 0, groups_ = 1, taps_ = 1;
  std::int64_t input_step_ = 0, output_step_ = 0;
  bool is_padded_ = false;
  int x_axis_ = 1, result_axis_ = 1, w_input_axis_ = 1, w_output_axis_ = 0;
};

/// The ranges of all values behind contractions of integers that have channels.
RangesOfValues channel_ranges(const ir::Graph& graph);

/// Every value of a type; nullopt: no interval of doubles says it.
std::optional<NumberRange> range_of_type(ir::ElementType type);

}  // namespace gcompile::passes
