#pragma once
// What verify has found, as text and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "driver/verify/compare.h"
#include "driver/verify/rounding_noise.h"
#include "driver/verify/verify_kernels.h"

namespace gcompile {

/// One compared tensor of one case.
struct Finding {
  std::string case_name;
  std::string value;  // name in the model
  ir::TensorType type;
  Comparison comparison;
  std::optional<Noise> noise;  // of the model, where the tolerance alone does not decide
  bool is_right = true;

  /// Right, but only by the model's own noise.
  bool is_ill_conditioned() const { return is_right && !comparison.same; }
  /// What only the judgement needs, as large as the tensor.
  void forget_elements() {
    comparison.ratios = {};
    if (noise) noise->elements = {};
  }
};

std::string finding_text(const Finding& finding);
nlohmann::ordered_json finding_json(const Finding& finding);

std::string kernel_text(const std::string& case_name, const KernelFinding& finding);
nlohmann::ordered_json kernel_json(const std::string& case_name, const KernelFinding& finding);

}  // namespace gcompile
