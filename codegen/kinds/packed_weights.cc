#include "codegen/kinds/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/packing/word_packing.h"

namespace gcompile {
namespace {

constexpr std::int64_t kPanelColumns = 32;  // gcrt/cpu/product/decode.h, kWordColumns
constexpr std::size_t kItemColumns = 1;     // field of a dense plan

std::int64_t whole_panels(std::int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
}

bool has_zeros(const ir::Problem& problem) {
  return problem.operands.size() > 3 && problem.operands[3].present;
}

}  // namespace

const ir::ProductWork& product_work(const ir::Problem& problem) {
  return std::get<ir::ProductWork>(problem.work);
}

int bits_of_weights(const ir::Problem& problem) {
  const ir::ConstantFacts& facts = *problem.operands[1].constant;
  return facts.low >= -8 && facts.high <= 7 ? 4 : 8;
}

std::int64_t rows_of_block(const ir::Problem& problem) {
  return std::min(product_work(problem).block, std::max<std::int64_t>(1, problem.shape(0).back()));
}

std::int64_t blocks_of_weights(const ir::Problem& problem) { return problem.shape(2)[0]; }

Refusal refuse_unless_packed_weights(const ir::Problem& problem) {
  if (product_work(problem).block == 0) return "weights without scales of their own";
  for (std::size_t i = 1; i < problem.operands.size(); ++i) {
    if (problem.operands[i].present && !problem.operands[i].constant)
      return "weights that only the run knows";
  }
  const int depth = 32 / bits_of_weights(problem);  // a word has no part of a block
  if (blocks_of_weights(problem) > 1 && rows_of_block(problem) % depth != 0) {
    return fmt::format("blocks of {} rows, which are not a multiple of {}", rows_of_block(problem), depth);
  }
  return std::nullopt;
}

Refusal refuse_packed_weights_on_cuda(const ir::Problem&, const Machine&) {
  return "on CUDA packed weights are made floats";
}

DenseWork packed_weights_work(const ir::Problem& problem) {
  const Product product(problem);
  const std::int64_t zero_bytes = has_zeros(problem) ? bits_of(problem.operands[3].element) / 8 : 0;
  DenseWork work = dense_work(product, 4);
  work.right_bytes = whole_panels(product.columns) * (product.depth * bits_of_weights(problem) / 8 +
                                                      blocks_of_weights(problem) * (4 + zero_bytes));
  return work;
}

KernelPlan packed_weights_plan(const ir::Problem& problem, const Machine& machine) {
  KernelPlan plan = dense_plan(packed_weights_work(problem), machine);
  plan.fields[kItemColumns] = whole_panels(plan.fields[kItemColumns]);
  return plan;
}

std::int64_t packed_weights_bytes(const ir::Problem& problem) {
  const DenseWork work = packed_weights_work(problem);
  return work.right_bytes + work.left_bytes +
         ir::TensorType{problem.results[0].element, problem.results[0].shape}.bytes();
}

std::string packed_weights_parameters(const ir::Problem& problem, CallWriter& writer) {
  const int bits = bits_of_weights(problem);
  writer.packed(1, pack_words(*writer.constant(1), bits), fmt::format("{} bits, packed for gemm", bits), "b",
                "std::uint32_t");
  writer.packed(2, pack_wide_panels(*writer.constant(2)), "packed for gemm", "scales");
  std::string zero_type = "void", zeros = "nullptr";
  if (has_zeros(problem)) {
    zero_type = problem.operands[3].element == ir::ElementType::kInt8 ? "std::int8_t" : "float";
    zeros = "zeros";
    writer.packed(3, pack_wide_panels(*writer.constant(3)), "packed for gemm", "zeros", zero_type);
  }
  return fmt::format("const BlockWeights<{}, {}> weights{{b, scales, {}, /*rows of a block*/ {}}};", bits,
                     zero_type, zeros, rows_of_block(problem));
}

}  // namespace gcompile
