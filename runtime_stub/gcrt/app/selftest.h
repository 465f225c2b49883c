// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// NAME_selftest: runs a model on stored inputs and compares with stored outputs. Host code.
//
// The file: "GCGOLDEN", then little-endian words of 8 bytes: version 1, number of runs; then for each run the
// bytes of all inputs and of all expected outputs, in order. State carries over from run to run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "gcrt/app/tensor.h"

namespace GCRT_NAMESPACE {

// How far outputs may be off beside the rounding of their type.
struct Tolerance {
  bool is_quantised;      // one integer in a thousand may be off by one
  double of_products;     // what factors of fewer bits than float32 add, in units of the scale; 0: nothing
  double smallest_scale;  // the scale is the root mean square, or this where that is less
};

inline float half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

// One element of a floating type.
inline double float_at(const std::string& element, const unsigned char* at) {
  if (element == "float64") {
    double value = 0;
    std::memcpy(&value, at, 8);
    return value;
  }
  if (element == "float16") {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, 2);
    return static_cast<double>(half_to_float(bits));
  }
  unsigned char word[4] = {0, 0, at[0], at[1]};  // bfloat16: the upper half of a float
  if (element == "float32") std::memcpy(word, at, 4);
  float value = 0;
  std::memcpy(&value, word, 4);
  return static_cast<double>(value);
}

inline bool is_close(double expected, double actual, double relative, double absolute) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (expected == actual) return true;
  if (std::isinf(expected) || std::isinf(actual)) return false;
  return std::fabs(expected - actual) <= relative * std::fabs(expected) + absolute;
}

// float32 and float64: |error| <= 1e-4 |expected| + 1e-5 max(1, rms); 16-bit floats coarser. Products of
// fewer bits add `of_products` scales to the root mean square of the errors; to one of them four times as
// much, and as much again of the element.
inline std::size_t wrong_floats(const Tensor& tensor, const unsigned char* expected,
                                const Tolerance& tolerance) {
  const std::size_t step = tensor.element_bytes;
  double squares = 0, count = 0;
  for (std::size_t i = 0; i < tensor.elements(); ++i) {
    const double value = float_at(tensor.element, expected + i * step);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    count += 1;
  }
  const double rms = count > 0 ? std::sqrt(squares / count) : 0.0;
  const double scale = std::max(tolerance.smallest_scale, rms);
  const double of_type = tensor.element == "float16" ? 1e-2 : tensor.element == "bfloat16" ? 8e-2 : 1e-4;
  const double of_products = tolerance.of_products;
  const double relative = of_type + 4 * of_products;
  const double absolute = of_type / 10 * std::max(1.0, rms) + 4 * of_products * scale;
  const double typical = of_type * (rms + std::max(1.0, rms) / 10) + of_products * scale;
  double errors = 0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < tensor.elements(); ++i) {
    const double a = float_at(tensor.element, expected + i * step);
    const double b = float_at(tensor.element, tensor.bytes.data() + i * step);
    wrong += is_close(a, b, relative, absolute) ? 0 : 1;
    if (std::isfinite(a) && std::isfinite(b)) errors += (a - b) * (a - b);
  }
  const bool is_typical = of_products <= 0 || count <= 0 || std::sqrt(errors / count) <= typical;
  return is_typical ? wrong : tensor.elements();
}

// All other types: bit for bit.
inline std::size_t wrong_integers(const Tensor& tensor, const unsigned char* expected,
                                  const Tolerance& tolerance) {
  const std::size_t step = tensor.element_bytes;
  std::size_t different = 0, far = 0;
  for (std::size_t i = 0; i < tensor.elements(); ++i) {
    std::uint64_t a = 0, b = 0;
    std::memcpy(&a, expected + i * step, step);
    std::memcpy(&b, tensor.bytes.data() + i * step, step);
    different += a != b ? 1 : 0;
    far += a - b + 1 > 2 ? 1 : 0;
  }
  const bool may_differ = tolerance.is_quantised && different * 1000 <= tensor.elements();
  return may_differ ? far : different;
}

inline std::vector<unsigned char> read_all(const char* path) {
  std::FILE* const file = std::fopen(path, "rb");
  if (file == nullptr) fail(std::string("cannot open '") + path + "'");
  std::vector<unsigned char> bytes;
  unsigned char block[65536];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof(block), file)) > 0;) {
    bytes.insert(bytes.end(), block, block + count);
  }
  std::fclose(file);
  return bytes;
}

// A golden file from its front to its end.
class GoldenFile {
 public:
  explicit GoldenFile(const char* path) : bytes_(read_all(path)) {
    if (std::memcmp(take(8), "GCGOLDEN", 8) != 0 || word() != 1) fail("the golden file is damaged");
  }
  const unsigned char* take(std::size_t bytes) {
    if (bytes_.size() - at_ < bytes) fail("the golden file is too short");
    at_ += bytes;
    return bytes_.data() + (at_ - bytes);
  }
  std::uint64_t word() {
    const unsigned char* const from = take(8);
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= std::uint64_t{from[i]} << (8 * i);
    return value;
  }
  bool is_at_end() const { return at_ == bytes_.size(); }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t at_ = 0;
};

template <class Model>
int self_test(const char* path, const Tolerance& tolerance) {
  using T = typename Model::Traits;
  GoldenFile golden(path);
  Tensors tensors(*T::describe());
  const Model model(T::kWeightsPath, 1);
  const std::uint64_t runs = golden.word();
  std::size_t failures = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    for (Tensor& tensor : tensors.inputs)
      std::memcpy(tensor.bytes.data(), golden.take(tensor.size), tensor.size);
    model.run(&tensors);
    for (const Tensor& tensor : tensors.outputs) {
      const unsigned char* const expected = golden.take(tensor.size);
      const std::size_t wrong = tensor.is_float() ? wrong_floats(tensor, expected, tolerance)
                                                  : wrong_integers(tensor, expected, tolerance);
      std::printf("%s run %d: %s, %zu of %zu elements are wrong\n", wrong == 0 ? "ok  " : "FAIL",
                  static_cast<int>(run), tensor.c_name.c_str(), wrong, tensor.elements());
      failures += wrong == 0 ? 0 : 1;
    }
  }
  if (!golden.is_at_end() || runs == 0) fail("the golden file does not have the expected size");
  return failures == 0 ? 0 : 1;
}

}  // namespace GCRT_NAMESPACE
