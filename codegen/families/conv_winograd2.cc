// conv.winograd2: 3x3 windows in tiles of 2x2 outputs, 16 products instead of 36, weights 16/9 as large.
// Source: Winograd (1980); Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).

#include "codegen/kinds/winograd_conv.h"

namespace gcompile {

const KernelFamily& family_conv_winograd2() {
  static const KernelFamily family = winograd_family<2, float>("conv.winograd2");
  return family;
}

}  // namespace gcompile
