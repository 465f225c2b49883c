// attention.row: one row of Q, as a decoder has it, over K and V where they lie; on the CPU. Nothing is
// packed, which for one row takes longer than the attention. On CUDA that is a plan of attention.flash.

#include <fmt/format.h>

#include "codegen/kernels/attention_heads.h"
#include "codegen/kernels/cuda_call.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  if (Refusal elements = refuse_unless_factors(problem, machine, 3, {})) return elements;
  if (work.rows != 1) return "more than one row";
  if (Refusal large = refuse_heads_above(kLargestHead, problem)) return large;
  for (const std::size_t i : {1, 2}) {
    const ir::ProblemOperand& operand = problem.operands[i];
    if (operand.shape.back() != 1 && operand.strides.back() != 1) return "rows of K or V that lie apart";
  }
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

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/attention_row.h"};
  out.threaded = true;
  const KernelTensor q = writer.operand(0, "q");
  const KernelTensor k = writer.operand(1, "k");
  const KernelTensor v = writer.operand(2, "v");
  const std::size_t batch = work.heads.size();
  const AttentionMaskText mask = mask_text(problem, writer);
  const EpilogueWriter epilogue(writer, {static_cast<int>(batch)}, static_cast<int>(batch) + 1);

  CodeText code(1);
  write_attention_shape(work, code, out.sizes);
  code.open("attention_row(");
  code.line(fmt::format("threads, shape, /*heads of K and V*/ {}, /*query heads for each*/ {},",
                        out.sizes(ir::element_count(work.key_heads)), work.group));
  const HeadOffset to_k = moved(k.strides, work.key_heads, out.sizes),
                   to_v = moved(v.strides, work.key_heads, out.sizes);
  std::set<int> key_axes = to_k.axes;
  key_axes.insert(to_v.axes.begin(), to_v.axes.end());
  open_head(code, key_axes, "", work.key_heads, out.sizes);
  const std::string k_row = out.sizes(k.strides[batch]), v_row = out.sizes(v.strides[batch]);
  code.line(fmt::format("return KeysAndValues{{k{}, {}, v{}, {}}};", to_k.text, k_row, to_v.text, v_row));
  code.close("},");
  const HeadOffset to_q = moved(q.strides, work.heads, out.sizes);
  std::set<int> axes = mask.axes;
  axes.insert(to_q.axes.begin(), to_q.axes.end());
  axes.insert(epilogue.named_axes().begin(), epilogue.named_axes().end());
  open_head(code, axes, "const RowTask& task", work.heads, out.sizes);
  code.line(epilogue.declaration());
  code.line(fmt::format("task(q{}, {}, epilogue);", to_q.text, mask.text));
  code.close("});");
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
