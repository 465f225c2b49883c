#pragma once
// One row of a product on the CPU by a matrix of the run, which is read where it lies.

#include "codegen/calls/call_writer.h"
#include "codegen/kinds/matrix_product.h"

namespace gcompile {

/// Why it cannot be, were there one row: of the right side.
Refusal refuse_in_place(const ir::Problem& problem);

/// "for_columns(...);": the product where it has one row, whose right side has these strides.
void write_gemv(const ir::Problem& problem, const ir::Shape& b_strides, const EpilogueWriter& epilogue,
                CodeText& code, KernelCall& out);

}  // namespace gcompile
