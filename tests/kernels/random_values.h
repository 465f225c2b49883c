// Operands of the kernel tests: the same numbers on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace kernel_test {

// A small reproducible generator; the values are the same on every machine.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed * 2654435761u + 1u) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  // In [-1, 1).
  float unit() { return static_cast<float>(static_cast<std::int32_t>(next())) * (1.0f / 2147483648.0f); }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint32_t>(bound)); }

 private:
  std::uint32_t state_;
};

template <class T>
std::vector<T> random_values(std::size_t count, std::uint32_t seed) {
  Random random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point<T>::value) {
      value = static_cast<T>(random.unit());
    } else {
      value = static_cast<T>(random.next());
    }
  }
  return values;
}

}  // namespace kernel_test
