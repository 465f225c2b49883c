#pragma once
// The precision in which a product of floats is formed on CUDA says what its kernel reads.

#include <initializer_list>
#include <string>

#include "codegen/calls/call_writer.h"

namespace gcompile {

/// "Precision::kFp32", of gcrt's Precision.
std::string precision_argument(Precision precision);

/// Whether kernels for tensor cores take the first `factors` operands: float32, or constants, or those named
/// by `may_be_stored` in the 16-bit type to which the precision rounds them, on CUDA.
Refusal refuse_unless_factors(const ir::Problem& problem, const Machine& machine, std::size_t factors,
                              std::initializer_list<std::size_t> may_be_stored);
/// Bytes of an element of an operand.
int element_bytes(const ir::Problem& problem, std::size_t operand);

/// How the products of a problem's first `factors` operands are formed: as asked for, or in TF32 where
/// float16 cannot hold a constant among them. The one place that decides it.
Precision precision_of(const ir::Problem& problem, const Machine& machine, std::size_t factors = 2);
/// The warning that goes with it, if any.
void warn_of_precision(const ir::Problem& problem, CallWriter& writer, std::size_t factors = 2);

/// Adds the parameter for the constant operand 1, packed for `kernel`, in the type that the precision stores.
void weights_in_format(CallWriter& writer, Packing packing, const std::string& kernel,
                       const std::string& parameter, Precision precision);

}  // namespace gcompile
