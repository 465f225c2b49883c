#pragma once
// What conv.winograd2 and conv.winograd4 share: they differ in the size of their tiles, and in their weights.

#include "codegen/kernels/family.h"

namespace gcompile {

/// The record of Winograd's F(T x T, 3 x 3), T = 2 or 4, for the CPU: gcrt/cpu/winograd.h.
template <int T>
KernelFamily winograd_family(std::string_view name);

}  // namespace gcompile
