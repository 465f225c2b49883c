// attention.row: one row of Q, as a decoder has it, over K and V where they lie; on the CPU. Nothing is
// packed, which for one row takes longer than the attention. attention.flash does the same where a run has
// one row; on CUDA it has plans for one.

#include <fmt/format.h>

#include "codegen/calls/cuda_precision.h"
#include "codegen/kinds/attention_heads.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  if (Refusal elements = refuse_unless_factors(problem, machine, 3, {})) return elements;
  if (work.rows != 1) return "more than one row";
  if (Refusal large = refuse_heads_above(kLargestHead, problem)) return large;
  if (!has_dense_keys(problem)) return "rows of K or V that lie apart";
  return std::nullopt;
}

Refusal refuses_on_cuda(const ir::Problem&, const Machine&) {
  return "attention.flash has plans for one row";
}

/// Whatever is typical: a single row in every run.
bool takes_formulas(const ir::Problem& problem) {
  return std::get<ir::AttentionWork>(problem.work).rows.is_constant() && takes_attention_formulas(problem);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.5);
  only.cost.code_key = "attention_row";
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/attention_row.h"};
  const KernelTensor q = writer.operand(0, "q");
  const KernelTensor k = writer.operand(1, "k");
  const KernelTensor v = writer.operand(2, "v");
  const std::size_t batch = work.heads.size();
  const AttentionMaskText mask = mask_text(problem, writer);
  const EpilogueWriter epilogue(writer, {static_cast<int>(batch)}, static_cast<int>(batch) + 1);

  CodeText code(1);
  write_attention_shape(work, code, out.sizes);
  code.open("attention_row(");
  code.line(fmt::format("{}, shape, /*heads of K and V*/ {}, /*query heads for each*/ {},",
                        threads_argument(out), out.sizes(ir::element_count(work.key_heads)), work.group));
  write_keys(work, k, v, code, out.sizes);
  write_heads(work, "RowTask", false, q, mask, epilogue, code, out.sizes);
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_attention_row() {
  static const KernelFamily family = {"attention.row",
                                      ir::Kind::kAttention,
                                      nullptr,
                                      {{{.refuses = refuses,
                                         .takes_formulas = takes_formulas,
                                         .needs = needs_attention_rows,
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = refuses_on_cuda}}}};
  return family;
}

}  // namespace gcompile
