// conv.winograd4: 3x3 windows in tiles of 4x4 outputs, 36 products instead of 144, weights four times as
// large. Source: Winograd (1980); Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).

#include "codegen/kinds/winograd_conv.h"

namespace gcompile {

const KernelFamily& family_conv_winograd4() {
  static const KernelFamily family = winograd_family<4, float>("conv.winograd4");
  return family;
}

}  // namespace gcompile
