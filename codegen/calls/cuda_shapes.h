#pragma once
// Shapes as the kernels of gcrt for CUDA have them: numbers of 32 bits.

#include "codegen/calls/image_shape.h"
#include "gcrt/cuda/image/conv_plan.h"

namespace gcompile {

/// Throws OperatorError when it does not fit.
int narrow(std::int64_t value);
gcrt::ConvShape conv_shape(const ImageShape& shape);

/// "k3", of gcrt's DepthwiseWindow.
const char* window_name(const gcrt::ConvShape& shape);

}  // namespace gcompile
