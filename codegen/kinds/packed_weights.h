#pragma once
// Weights of 4 or 8 bits with scales for blocks of rows, as the products of gcrt/cpu/product/decode.h and
// decode_int8.h take them: words, scales and zero points. What is packed in 4 bits follows from the values:
// all lie in [-8, 7].

#include "codegen/calls/call_writer.h"
#include "codegen/kinds/dense_plan.h"

namespace gcompile {

const ir::ProductWork& product_work(const ir::Problem& problem);

int bits_of_weights(const ir::Problem& problem);
/// Rows that share a scale.
std::int64_t rows_of_block(const ir::Problem& problem);
std::int64_t blocks_of_weights(const ir::Problem& problem);

/// What cannot be packed so.
Refusal refuse_unless_packed_weights(const ir::Problem& problem);
Refusal refuse_packed_weights_on_cuda(const ir::Problem& problem, const Machine& machine);

/// The product as its plan sees it, with packed weights.
DenseWork packed_weights_work(const ir::Problem& problem);
/// The plan; work items have whole panels.
KernelPlan packed_weights_plan(const ir::Problem& problem, const Machine& machine);
/// How many bytes the product reads and writes.
std::int64_t packed_weights_bytes(const ir::Problem& problem);

/// Adds the parameters of the weights; returns what defines `weights`.
std::string packed_weights_parameters(const ir::Problem& problem, CallWriter& writer);

}  // namespace gcompile
