#pragma once

#include <string>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile {

/// A memory plan as a picture, 1000 units wide: time to the right, offset upwards, one rectangle for each
/// buffer with its name, size, place and life as its title, the live bytes as a line over them, the lower
/// bound dashed, a legend of the kinds that occur. Plain SVG for embedding in HTML, of which the page's style
/// sheet chooses the colours: classes k0 to k4 by BufferKind, axis, live and bound. Buffers too small to see
/// are drawn at least half a unit high. Needs one offset for each buffer.
std::string memory_map_svg(const std::vector<Buffer>& buffers, const MemoryPlan& plan);

}  // namespace gcompile
