#pragma once
// How a CUDA program multiplies floats: the choices of --precision. Sums, and values in memory other than
// packed weights, are float32 in every mode.

#include <array>
#include <optional>
#include <string_view>

#include "gcrt/cuda/tile_model.h"
#include "ir/element_type.h"
#include "ir/tensor.h"

namespace gcompile {

using Precision = gcrt::Precision;

struct PrecisionFacts {
  Precision precision;
  const char* name;        // on the command line
  const char* enumerator;  // of gcrt::Precision
  int significant_bits;    // of an operand as it is multiplied
  ir::ElementType weight;  // of packed weights
};

constexpr std::array<PrecisionFacts, 4> kPrecisions = {{
    {Precision::kFp32, "fp32", "kFp32", 24, ir::ElementType::kFloat32},
    {Precision::kTf32, "tf32", "kTf32", 11, ir::ElementType::kFloat32},
    {Precision::kFp16, "fp16", "kFp16", 11, ir::ElementType::kFloat16},
    {Precision::kBf16, "bf16", "kBf16", 8, ir::ElementType::kBFloat16},
}};

const PrecisionFacts& facts_of(Precision precision);
std::optional<Precision> precision_from_name(std::string_view name);

/// What the rounding of factors may add to the root mean square of an output's error, in units of the
/// output's own, or of 1/16 if that is more: 16 roundings; 0 for kFp32 (docs/cuda.md, "Precision").
double product_tolerance(Precision precision);
constexpr double kSmallestScale = 1.0 / 16;

}  // namespace gcompile
