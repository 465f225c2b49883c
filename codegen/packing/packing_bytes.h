#pragma once
// What every packing is written with.

#include <cstdint>

#include "ir/tensors/strided_nest.h"

namespace gcompile {

constexpr std::int64_t kPanel = 16;  // columns

using ir::read;
using ir::write;

}  // namespace gcompile
