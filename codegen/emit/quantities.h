#pragma once
// Numbers as people read them.

#include <cstdint>
#include <string>

namespace gcompile {

/// 1204567 -> "1,204,567".
std::string grouped(std::int64_t number);

/// "1.50 MiB", "640 B": three digits in the largest unit that leaves at least one before the point.
std::string human_bytes(std::int64_t bytes);

}  // namespace gcompile
