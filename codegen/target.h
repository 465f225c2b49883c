#pragma once
// What programs are emitted for.

#include <cstdint>

namespace gcompile {

enum class Target : std::uint8_t { kCpp, kCuda };

}  // namespace gcompile
