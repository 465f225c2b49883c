#pragma once
// What families of sliding windows share: geometry, layouts, and the end of every call.

#include <array>

#include "codegen/calls/call_writer.h"
#include "codegen/calls/image_shape.h"
#include "codegen/choice/refusals.h"

namespace gcompile {

/// Geometry of a problem over (N, C, spatial...) operand 0.
ImageShape image_of(const ir::Problem& problem, const ir::Window& window, std::int64_t groups);

/// One input channel in each of several groups.
bool is_depthwise(const ir::Problem& problem);

/// What the tuned kernels of images do not take: three and more spatial axes, computed weights.
Refusal refuse_image(const ir::Problem& problem, bool has_weights);

/// Images of any batch, height and width; their channels are numbers.
bool takes_open_images(const ir::Problem& problem);

/// On CUDA offsets within the image of a contraction are of 32 bits.
Refusal refuse_image_beyond_32_bits(const ir::Problem& problem, const Machine& machine);
bool takes_open_images_of_32_bits(const ir::Problem& problem);

/// Operand 0 of images and the result channels-last.
ir::LayoutOffer offers_channels_last(const ir::Problem& problem);

/// The recipes of a family for images: operand 0 channels-last on both targets, and CUDA within 32 bits.
std::array<Recipe, 2> for_channels_last(Recipe cpp, Recipe cuda);

/// The last step of every call over images: adds the parameters of the epilogue, sets the definition of
/// "shape" and returns that of "epilogue".
Text shape_and_epilogue(const ir::Problem& problem, const ImageShape& image, CallWriter& writer);
/// The same for a kernel of the CPU, with its call: FUNCTION(threads, shape, ARGUMENTS, EPILOGUE).
void write_parallel(const ir::Problem& problem, const ImageShape& image, CallWriter& writer,
                    const std::string& function, const std::string& arguments);

}  // namespace gcompile
