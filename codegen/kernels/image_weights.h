#pragma once
// What families of sliding windows share: geometry of the weights, and refusals.

#include "codegen/kernels/call_writer.h"
#include "codegen/kernels/image_shape.h"

namespace gcompile {

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
/// The same as an offer: operand 0 and the result channels-last.
ir::LayoutOffer offers_channels_last(const ir::Problem& problem);

/// "  parallel_for(threads, COUNT, ...{ CALL(shape, ARGUMENTS, begin, end); });"
std::string parallel_lines(const std::string& work_items, const std::string& call);

}  // namespace gcompile
