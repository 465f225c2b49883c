#pragma once
// The weight blob: constants as kernels read them, packed once at compile time in a form that every
// instruction set level reads (DESIGN law 5), merged by content, 64-byte aligned.

#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace gcompile {

class WeightBlob {
 public:
  static constexpr std::int64_t kAlignment = 64;

  struct Entry {
    std::string name;  // of the constant in the model
    std::string what;  // "float32[64, 3, 3, 3], packed for convolution"
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };

  /// Index of the entry; equal bytes share one.
  int add(std::vector<std::uint8_t> bytes, std::string name, std::string what);
  /// The tensor's elements in row-major order, denormal float32 flushed to zero.
  int add_tensor(const ir::Tensor& tensor, std::string name);
  int add_floats(const std::vector<float>& values, std::string name, std::string what);
  /// The same rounded to a floating type of 16 bits, to nearest even.
  int add_halves(const std::vector<float>& values, ir::ElementType type, std::string name, std::string what);
  /// An entry of at least `bytes` zero bytes (the zero row of border taps); grows to the largest request.
  int zeros(std::int64_t bytes);

  const std::vector<Entry>& entries() const { return entries_; }
  /// Lays out the entries and returns the payload; offsets are final afterwards.
  std::vector<std::uint8_t> finish();

 private:
  std::vector<Entry> entries_;
  std::vector<std::vector<std::uint8_t>> contents_;
  std::map<std::string, int> by_content_;  // sha256 -> entry
  int zero_entry_ = -1;
};

/// Panels of 16 columns: [ceil(N/16)][K][16] from a (K, N) matrix read through `at(k, n)`; zero padded.
template <class F>
std::vector<float> pack_panels(std::int64_t depth, std::int64_t columns, const F& at) {
  const std::int64_t panels = (columns + 15) / 16;
  std::vector<float> packed(static_cast<std::size_t>(panels * depth * 16), 0.0f);
  for (std::int64_t n = 0; n < columns; ++n) {
    for (std::int64_t k = 0; k < depth; ++k) {
      packed[static_cast<std::size_t>((n / 16 * depth + k) * 16 + n % 16)] = at(k, n);
    }
  }
  return packed;
}

}  // namespace gcompile
