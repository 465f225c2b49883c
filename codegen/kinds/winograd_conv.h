#pragma once
// What the families of Winograd's convolutions share: they differ in the size of their tiles and in the
// elements that they multiply, so in their weights.

#include <cstdint>

#include "codegen/choice/family.h"

namespace gcompile {

/// The record of Winograd's F(T x T, 3 x 3), T = 2 or 4, for the CPU: gcrt/cpu/image/winograd.h on V = float,
/// or gcrt/cpu/image/winograd_int8.h, which multiplies V = std::int16_t.
template <int T, class V>
KernelFamily winograd_family(std::string_view name);

}  // namespace gcompile
