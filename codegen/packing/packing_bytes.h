#pragma once
// What every packing is written with.

#include <cstdint>

#include "ir/tensors/strided_nest.h"

namespace gcompile {

using ir::read;
using ir::write;

}  // namespace gcompile
