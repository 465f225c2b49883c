#pragma once
// How a program multiplies floats: the choices of --precision. Sums are float32 in every mode; on CUDA packed
// weights, and what products read (passes/forms/store_factors.cc), lie in memory as they are multiplied.

#include <array>
#include <optional>
#include <string_view>

#include "gcrt/precision.h"
#include "ir/tensors/element_type.h"

namespace gcompile {

using Precision = gcrt::Precision;

struct PrecisionFacts {
  Precision precision;
  const char* name;        // on the command line
  const char* enumerator;  // of gcrt::Precision
  int significant_bits;    // of an operand as it is multiplied
  ir::ElementType weight;  // of packed weights, on CUDA
  bool is_of_cuda;
  /// Products of bfloat16 for each of float32, which the CPU forms where it has a tile unit
  /// (gcrt/cpu/product/dot_bfloat16.h); 0: it multiplies floats; -1: it is not asked to.
  int bfloat16_products;
};

constexpr std::array<PrecisionFacts, 6> kPrecisions = {{
    {Precision::kFp32, "fp32", "kFp32", 24, ir::ElementType::kFloat32, true, 0},
    {Precision::kTf32, "tf32", "kTf32", 11, ir::ElementType::kFloat32, true, -1},
    {Precision::kFp16, "fp16", "kFp16", 11, ir::ElementType::kFloat16, true, -1},
    {Precision::kBf16, "bf16", "kBf16", 8, ir::ElementType::kBFloat16, true, 1},
    {Precision::kBf16x3, "bf16x3", "kBf16x3", 16, ir::ElementType::kFloat32, false, 3},
    {Precision::kBf16x6, "bf16x6", "kBf16x6", 24, ir::ElementType::kFloat32, false, 6},
}};

const PrecisionFacts& facts_of(Precision precision);
std::optional<Precision> precision_from_name(std::string_view name);

/// Whether factors keep fewer bits than float32 has.
bool is_reduced(Precision precision);
/// What the rounding of factors may add to the root mean square of an output's error, in units of the
/// output's own, or of 1/16 if that is more: 16 roundings; 0 unless is_reduced (docs/cuda.md, "Precision").
double product_tolerance(Precision precision);
constexpr double kSmallestScale = 1.0 / 16;

}  // namespace gcompile
