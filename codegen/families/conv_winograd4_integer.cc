// conv.winograd4_integer: 3x3 windows in tiles of 4x4 outputs, 36 products of int16 instead of 144 of bytes,
// weights eight times as large, exact in int32. Source: as of conv.winograd4.

#include "codegen/kinds/winograd_conv.h"

namespace gcompile {

const KernelFamily& family_conv_winograd4_integer() {
  static const KernelFamily family = winograd_family<4, std::int16_t>("conv.winograd4_integer");
  return family;
}

}  // namespace gcompile
