#include "driver/random_inputs.h"

namespace gcompile {

std::uint64_t RandomInputs::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

ir::Tensor RandomInputs::tensor(const ir::TensorType& type) {
  ir::Tensor out(type);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const std::uint64_t word = next();
    if (is_float(type.element)) {
      // 23 bits, so that every value is exact in float32.
      const double value = static_cast<double>(word >> 40) * 0x1p-23 - 1.0;
      out.set(i, ir::Scalar::of_real(type.element, value));
    } else {
      out.set(i, ir::Scalar::of_integer(type.element, static_cast<std::int64_t>(word & 1)));
    }
  }
  return out;
}

}  // namespace gcompile
