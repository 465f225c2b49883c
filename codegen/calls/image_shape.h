#pragma once
// Geometry of sliding-window kernels over channels-last images, as gcrt's ConvShape takes it; 1-D is
// height 1.

#include <string>
#include <vector>

#include "codegen/loops/size_parameters.h"
#include "ir/ops/window.h"

namespace gcompile {

struct ImageShape {
  ir::Dim batch, in_h, in_w, in_c, out_h, out_w, out_c;
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w, groups;
  std::int64_t pad_bottom, pad_right;  // as the model has them; no part of a ConvShape
  ir::Dim pixel, row, image;

  /// Definition of a ConvShape, constexpr where the sizes are numbers.
  std::string text(const std::string& name, SizeParameters& sizes) const;
};

/// x: (N, C, spatial...) with element strides; y: shape of the result.
ImageShape image_shape(const ir::Shape& x, const ir::Shape& strides, const ir::Shape& y,
                       const ir::Window& window, std::int64_t groups);

/// Result axes that count pixels, for an (N, C, spatial...) result.
std::vector<int> pixel_axes(std::size_t rank);

}  // namespace gcompile
