#include "codegen/calls/cuda_precision.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {

std::string precision_argument(Precision precision) {
  return fmt::format("Precision::{}", facts_of(precision).enumerator);
}

int element_bytes(const ir::Problem& problem, std::size_t operand) {
  return static_cast<int>(bits_of(problem.operands[operand].element) / 8);
}

namespace {

/// The first of the factors that float16 cannot hold; -1: none.
int beyond_float16(const ir::Problem& problem, const Machine& machine, std::size_t factors) {
  if (machine.precision != Precision::kFp16) return -1;
  for (std::size_t i = 0; i < factors; ++i) {
    const std::optional<ir::ConstantFacts>& constant = problem.operands[i].constant;
    if (constant && !constant->fits_float16) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Precision precision_of(const ir::Problem& problem, const Machine& machine, std::size_t factors) {
  return beyond_float16(problem, machine, factors) >= 0 ? Precision::kTf32 : machine.precision;
}

Refusal refuse_unless_factors(const ir::Problem& problem, const Machine& machine, std::size_t factors,
                              std::initializer_list<std::size_t> may_be_stored) {
  const Precision precision = precision_of(problem, machine, factors);
  const ir::ElementType stored = facts_of(precision).weight;
  const bool is_stored =
      machine.target == Target::kCuda && gcrt::has_tensor_cores(machine.architecture.capability, precision);
  for (std::size_t i = 0; i < factors; ++i) {
    const ir::ElementType element = problem.operands[i].element;
    if (element == ir::ElementType::kFloat32) continue;
    const bool may_be = std::find(may_be_stored.begin(), may_be_stored.end(), i) != may_be_stored.end();
    if (is_stored && may_be && element == stored && !problem.operands[i].constant) continue;
    return fmt::format("elements of {}", name_of(element));
  }
  return std::nullopt;
}

void warn_of_precision(const ir::Problem& problem, CallWriter& writer, std::size_t factors) {
  const int operand = beyond_float16(problem, writer.machine(), factors);
  if (operand < 0) return;
  writer.device().warning =
      fmt::format("the constant '{}' is out of the range of float16: multiplied in TF32",
                  printable(writer.name(operand)));
}

void weights_in_format(CallWriter& writer, Packing packing, const std::string& kernel,
                       const std::string& parameter, Precision precision) {
  const ir::ElementType stored = facts_of(precision).weight;
  std::string format = "packed for " + kernel;
  if (stored != ir::ElementType::kFloat32) format += fmt::format(" as {}", name_of(stored));
  const bool is_tf32 = precision == Precision::kTf32;
  writer.packed(1, is_tf32 ? round_to_tf32(std::move(packing)) : std::move(packing), format, parameter,
                is_tf32 ? "Tf32" : kernel_type(stored));
}

}  // namespace gcompile
