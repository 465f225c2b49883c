#pragma once
// Numbers as people read them.

#include <cstdint>
#include <string>
#include <string_view>

namespace gcompile {

/// 1204567 -> "1,204,567".
std::string grouped(std::int64_t number);

/// "1 node", "1,204 nodes"; `many` where that is not `one` and an s.
std::string counted(std::int64_t number, std::string_view one, std::string_view many = "");

/// "1.50 MiB", "640 B": three digits in the largest unit that leaves at least one before the point.
std::string human_bytes(std::int64_t bytes);

}  // namespace gcompile
