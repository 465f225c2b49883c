#include "codegen/choice/refusals.h"

#include <fmt/format.h>

#include <cstdint>

namespace gcompile {

Refusal refuse_beyond_32_bits(const ir::Problem& problem, const Machine&) {
  for (const auto* list : {&problem.operands, &problem.results}) {
    for (const ir::ProblemOperand& operand : *list) {
      for (const std::int64_t extent : operand.shape) {
        if (extent > INT32_MAX) return "a dimension does not fit 32 bits";
      }
    }
  }
  return std::nullopt;
}

bool fits_32_bits(const ir::Problem& problem) { return !refuse_beyond_32_bits(ir::at_highest(problem), {}); }

Refusal refuse_unless_float32(const ir::Problem& problem) {
  const auto* product = std::get_if<ir::ProductWork>(&problem.work);
  if (product && product->block > 0) return "weights with scales of their own";
  const ir::ElementType element = problem.operands[0].element;
  if (element != ir::ElementType::kFloat32) return fmt::format("elements of {}", name_of(element));
  return std::nullopt;
}

Refusal refuse_unless_bytes(const ir::Problem& problem) {
  const auto is_8_bit = [](ir::ElementType type) {
    return type == ir::ElementType::kInt8 || type == ir::ElementType::kUInt8;
  };
  for (std::size_t i = 0; i < 2; ++i) {
    if (!is_8_bit(problem.operands[i].element))
      return fmt::format("elements of {}", name_of(problem.operands[i].element));
  }
  return std::nullopt;
}

namespace {

Refusal refuse_zero_points(const ir::Problem& problem) {
  for (std::size_t i = 2; i < problem.operands.size(); ++i) {
    const ir::ProblemOperand& zero = problem.operands[i];
    if (!zero.present) continue;
    if (!zero.constant) return "zero points that only the run knows";
    if (i == 2 && ir::element_count(zero.shape) != 1) return "several zero points of the input";
  }
  return std::nullopt;
}

}  // namespace

Refusal refuse_unless_integer(const ir::Problem& problem) {
  if (Refusal elements = refuse_unless_bytes(problem)) return elements;
  return refuse_zero_points(problem);
}

Refusal refuse_unless_short_integer(const ir::Problem& problem) {
  if (Refusal zero = refuse_zero_points(problem)) return zero;
  for (std::size_t i = 0; i < 2; ++i) {
    const ir::ElementType element = problem.operands[i].element;
    if (!is_integer(element) || bits_of(element) < 8 || bits_of(element) > 16)
      return fmt::format("elements of {}", name_of(element));
  }
  if (bits_of(problem.operands[1].element) == 8) return std::nullopt;
  if (!problem.operands[1].constant) return "weights that only the run knows";
  const ir::ConstantFacts weights = *problem.operands[1].constant;
  ir::ConstantFacts zero;
  if (problem.operands.size() > 3 && problem.operands[3].present) zero = *problem.operands[3].constant;
  if (weights.low - zero.high < -32768 || weights.high - zero.low > 32767) return "weights beyond int16";
  return std::nullopt;
}

Refusal cuda_refuse_unless_bytes(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuse_unless_bytes(problem)) return elements;
  return refuse_beyond_32_bits(problem, machine);
}

Refusal refuse_gpu(const ir::Problem&, const Machine&) { return "a GPU"; }

bool are_bytes(const ir::Problem& problem) {
  const auto is_byte = [](const ir::ProblemOperand& operand) {
    return is_integer(operand.element) && bits_of(operand.element) == 8;
  };
  return problem.operands.size() >= 2 && is_byte(problem.operands[0]) && is_byte(problem.operands[1]);
}

double integer_rate(const ir::Problem& problem, const Level& level) {
  return are_bytes(problem) ? level.byte_rate : level.int16_rate;
}

}  // namespace gcompile
