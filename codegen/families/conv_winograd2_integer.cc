// conv.winograd2_integer: 3x3 windows in tiles of 2x2 outputs, 16 products of int16 instead of 36 of bytes,
// weights 3.6 times as large, exact in int32. Source: as of conv.winograd2.

#include "codegen/kinds/winograd_conv.h"

namespace gcompile {

const KernelFamily& family_conv_winograd2_integer() {
  static const KernelFamily family = winograd_family<2, std::int16_t>("conv.winograd2_integer");
  return family;
}

}  // namespace gcompile
