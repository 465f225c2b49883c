#pragma once
// What families of sliding windows share: geometry of the weights, and refusals.

#include "codegen/kernels/call_writer.h"
#include "codegen/kernels/image_shape.h"

namespace gcompile {

/// Constant weights of a convolution, (M, C / groups, kernel...).
struct ConvWeights {
  const ir::Tensor& tensor;
  std::int64_t outputs, group_inputs, taps, groups;
  std::int64_t group_outputs() const { return outputs / groups; }
  float real(std::int64_t oc, std::int64_t ic, std::int64_t tap) const {
    return static_cast<float>(tensor.real_at((oc * group_inputs + ic) * taps + tap));
  }
  std::int64_t integer(std::int64_t oc, std::int64_t ic, std::int64_t tap) const {
    return tensor.int_at((oc * group_inputs + ic) * taps + tap);
  }
};
ConvWeights conv_weights(const ir::Problem& problem, const CallWriter& writer);

/// Geometry of a problem over (N, C, spatial...) operand 0.
ImageShape image_of(const ir::Problem& problem, const ir::Window& window, std::int64_t groups);

/// One input channel in each of several groups.
bool is_depthwise(const ir::Problem& problem);

/// What the tuned kernels of images do not take: three and more spatial axes, computed weights.
Refusal refuse_image(const ir::Problem& problem, bool has_weights);
Refusal refuse_unless_float32(const ir::Problem& problem);
/// 8-bit integers with constant weights and zero points, that of x being one.
Refusal refuse_unless_integer(const ir::Problem& problem);

/// Channels last, for operand 0 of images.
NeededOrder needs_channels_last(const ir::Problem& problem, std::size_t i);

/// "  parallel_for(threads, COUNT, ...{ CALL(shape, ARGUMENTS, begin, end); });"
std::string parallel_lines(const std::string& work_items, const std::string& call);

}  // namespace gcompile
