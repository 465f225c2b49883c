#pragma once
// What many families refuse: types of elements, and sizes beyond 32 bits.

#include "codegen/choice/family.h"

namespace gcompile {

Refusal refuse_unless_float32(const ir::Problem& problem);
Refusal refuse_unless_bytes(const ir::Problem& problem);
/// 8-bit integers with constant weights and zero points, that of x being one.
Refusal refuse_unless_integer(const ir::Problem& problem);
/// The same for 8 or 16 bits: the kernels of the CPU multiply all elements that are int16 less
/// their zero points.
Refusal refuse_unless_short_integer(const ir::Problem& problem);
/// What recipes for CUDA refuse that take bytes only.
Refusal cuda_refuse_unless_bytes(const ir::Problem& problem, const Machine& machine);
/// Why a family that the CPU alone has refuses on CUDA.
Refusal refuse_gpu(const ir::Problem& problem, const Machine& machine);
/// Whether both factors are integers of 8 bits.
bool are_bytes(const ir::Problem& problem);
/// Multiply-adds in the time of one of float32: of bytes, or of int16 where an operand is of 16 bits.
double integer_rate(const ir::Problem& problem, const Level& level);

/// Why a kernel that counts in 32 bits refuses: an extent does not fit.
Refusal refuse_beyond_32_bits(const ir::Problem& problem, const Machine& machine);
/// Where sizes are formulas: whether it does at all of them.
bool fits_32_bits(const ir::Problem& problem);

}  // namespace gcompile
