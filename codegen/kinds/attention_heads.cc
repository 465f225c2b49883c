#include "codegen/kinds/attention_heads.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"

namespace gcompile {

using ir::Shape;

NeededOrder needs_attention_rows(const ir::Problem& problem, std::size_t i) {
  const ir::ProblemOperand& operand = problem.operands[i];
  const bool any = operand.shape.empty() || operand.shape.back() == 1 || operand.strides.back() == 1;
  return any || i == 1 || i == 2 ? std::nullopt : NeededOrder(std::vector<int>{});
}

Refusal refuse_heads_above(std::int64_t largest, const ir::Problem& problem) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  if (std::max(work.size, work.value_size) <= largest) return std::nullopt;
  return fmt::format("heads of more than {} elements", largest);
}

void open_head(CodeText& code, const std::set<int>& axes, const std::string& last, const Shape& heads,
               SizeParameters& sizes) {
  code.open(fmt::format("[&](std::ptrdiff_t{}{}) {{", axes.empty() ? "" : " head",
                        last.empty() ? "" : ", " + last));
  declare_coordinates(code, "head", axes, heads, sizes);
}

Shape mask_strides(const Shape& shape, const Shape& strides, std::size_t rank) {
  Shape out(rank, 0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) out[rank - shape.size() + i] = strides[i];
  }
  return out;
}

namespace {

/// The mask that is operand `i`, as a parameter of that name.
AttentionMaskText one_mask(const ir::Problem& problem, CallWriter& writer, int i, const std::string& name) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  SizeParameters& sizes = writer.call().sizes;
  const std::size_t batch = work.heads.size();
  const KernelTensor operand = writer.operand(i, name);
  const Shape strides = mask_strides(problem.shape(i), operand.strides, batch + 2);
  const bool kept = operand.element == ir::ElementType::kBool;
  const std::string fill = kept ? ", " + literal_of(work.fill) : "";
  const HeadOffset offset = moved(strides, work.heads, sizes);
  const std::string row = sizes(strides[batch]), column = sizes(strides[batch + 1]);
  return {fmt::format("{}{{{}{}, {}, {}{}}}", kept ? "KeptMask" : "AddedMask", name, offset.text, row, column,
                      fill),
          offset.axes};
}

}  // namespace

AttentionMaskText mask_text(const ir::Problem& problem, CallWriter& writer) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  if (!work.has_mask) return {"NoMask{}", {}};
  AttentionMaskText mask = one_mask(problem, writer, ir::AttentionWork::kMask, "mask");
  if (!work.adds_behind) return mask;
  const AttentionMaskText added = one_mask(problem, writer, ir::AttentionWork::kAdded, "added");
  mask.axes.insert(added.axes.begin(), added.axes.end());
  return {fmt::format("MaskThen<KeptMask, AddedMask>{{{}, {}}}", mask.text, added.text), mask.axes};
}

std::string literal_of(float x) {
  return literal(ir::Scalar::of_real(ir::ElementType::kFloat32, static_cast<double>(x)));
}

void write_attention_shape(const ir::AttentionWork& work, CodeText& code, SizeParameters& sizes) {
  const bool is_fixed = work.rows.is_constant() && work.columns.is_constant();
  const std::string head = fmt::format("{} AttentionShape shape = {{", is_fixed ? "constexpr" : "const");
  const std::string rows = sizes(work.rows), columns = sizes(work.columns);
  code.line(head + fmt::format("/*rows*/ {}, /*columns*/ {}, /*sizes*/ {}, {}, /*scale*/ {},", rows, columns,
                               work.size, work.value_size, literal_of(work.scale)));
  code.line(std::string(head.size(), ' ') + fmt::format("/*causal*/ {}, /*past*/ {}, /*zero if empty*/ {}}};",
                                                        work.causal, work.past, work.zero_if_empty));
}

bool has_dense_keys(const ir::Problem& problem) {
  const auto is_dense = [](const ir::ProblemOperand& rows) {
    return rows.shape.back() == 1 || rows.strides.back() == 1;
  };
  return is_dense(problem.operands[1]) && is_dense(problem.operands[2]);
}

void write_keys(const ir::AttentionWork& work, const KernelTensor& k, const KernelTensor& v, CodeText& code,
                SizeParameters& sizes) {
  const std::size_t batch = work.heads.size();
  const HeadOffset to_k = moved(k.strides, work.key_heads, sizes),
                   to_v = moved(v.strides, work.key_heads, sizes);
  std::set<int> axes = to_k.axes;
  axes.insert(to_v.axes.begin(), to_v.axes.end());
  open_head(code, axes, "", work.key_heads, sizes);
  const std::string k_row = sizes(k.strides[batch]), v_row = sizes(v.strides[batch]);
  code.line(fmt::format("return KeysAndValues{{k{}, {}, v{}, {}}};", to_k.text, k_row, to_v.text, v_row));
  code.close("},");
}

void write_heads(const ir::AttentionWork& work, const std::string& task, bool may_be_several,
                 const KernelTensor& q, const AttentionMaskText& mask, const EpilogueWriter& epilogue,
                 CodeText& code, SizeParameters& sizes) {
  const HeadOffset to_q = moved(q.strides, work.heads, sizes);
  std::set<int> axes = mask.axes;
  axes.insert(to_q.axes.begin(), to_q.axes.end());
  axes.insert(epilogue.named_axes().begin(), epilogue.named_axes().end());
  open_head(code, axes, fmt::format("const {}& task", task), work.heads, sizes);
  code.line(epilogue.declaration());
  const std::string row = may_be_several ? sizes(q.strides[work.heads.size()]) + ", " : "";
  code.line(fmt::format("task(q{}, {}{}, epilogue);", to_q.text, row, mask.text));
  code.close("});");
}

bool takes_attention_formulas(const ir::Problem& problem) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  for (const ir::ProblemOperand& operand : problem.operands) {
    if (operand.present && !operand.strides.empty() && !operand.strides.back().is_constant()) return false;
  }
  return work.heads.empty() || (work.heads.back().is_constant() && work.key_heads.back().is_constant());
}

}  // namespace gcompile
