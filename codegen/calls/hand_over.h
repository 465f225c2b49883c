#pragma once
// What a step in one thread waits for beside its own time, among steps that run in several.

#include <cstdint>

namespace gcompile {

/// Picoseconds until one core has the activations that a step reads and writes, of which another core wrote,
/// or will read, about half: 1.2 GB/s, that is 50 ns for a line, between two cores of Zen 5 that share no
/// cache. Where they share one it is a tenth of that, and a barrier takes less as well.
constexpr std::int64_t hand_over(std::int64_t bytes) { return bytes * 2 / 5 * 1000; }

/// The same between cores that may share a cache or not: between the two.
constexpr std::int64_t usual_hand_over(std::int64_t bytes) { return hand_over(bytes) / 6; }

}  // namespace gcompile
