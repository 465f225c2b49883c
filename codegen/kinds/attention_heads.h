#pragma once
// What the families of attention on the CPU share: how a kernel finds a head, its mask, its sizes.

#include <set>
#include <string>

#include "codegen/calls/call_writer.h"
#include "codegen/calls/head_coordinates.h"

namespace gcompile {

/// Elements of a head: gcrt/attention_limit.h.
constexpr std::int64_t kLargestHead = 256;
Refusal refuse_heads_above(std::int64_t largest, const ir::Problem& problem);

/// K and V are read from any strides; rows of Q as they are, masks along the columns.
NeededOrder needs_attention_rows(const ir::Problem& problem, std::size_t i);

/// Opens "[&](std::ptrdiff_t head, LAST) {", or without `last`, and declares these coordinates of the head.
void open_head(CodeText& code, const std::set<int>& axes, const std::string& last, const ir::Shape& heads,
               SizeParameters& sizes);

/// Strides of a mask along (heads..., rows, columns), 0 where it broadcasts.
ir::Shape mask_strides(const ir::Shape& shape, const ir::Shape& strides, std::size_t rank);

/// "AddedMask{mask + 64 * b1, 0, 1}", or two of them, and the coordinates that it names.
struct AttentionMaskText {
  std::string text;
  std::set<int> axes;
};
/// Adds the parameters for the masks that there are.
AttentionMaskText mask_text(const ir::Problem& problem, CallWriter& writer);

std::string literal_of(float x);

/// "constexpr AttentionShape shape = {...};"
void write_attention_shape(const ir::AttentionWork& work, CodeText& code, SizeParameters& sizes);

/// Whether rows of K and V are contiguous, as attention.row reads them.
bool has_dense_keys(const ir::Problem& problem);

/// "[&](std::ptrdiff_t head) { return KeysAndValues{...}; },": where the keys and values of a head lie.
void write_keys(const ir::AttentionWork& work, const KernelTensor& k, const KernelTensor& v, CodeText& code,
                SizeParameters& sizes);
/// "[&](std::ptrdiff_t head, const TASK& task) { task(q, ...); }": the rows of a head of Q, of which the task
/// is told the stride where it may have several.
void write_heads(const ir::AttentionWork& work, const std::string& task, bool may_be_several,
                 const KernelTensor& q, const AttentionMaskText& mask, const EpilogueWriter& epilogue,
                 CodeText& code, SizeParameters& sizes);

/// Rows and masks are read where they lie, dense along their last axes.
bool takes_attention_formulas(const ir::Problem& problem);

}  // namespace gcompile
