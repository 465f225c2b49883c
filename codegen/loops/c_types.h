#pragma once
// How element types are spelled in emitted C++.

#include <string>

#include "ir/tensors/element_type.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

/// Pointee of kernel parameters: "float", "Half", "std::int64_t", "std::uint8_t" for bool.
std::string kernel_type(ir::ElementType type);
/// Pointee in the C API: "float", "uint16_t" for 16-bit floats, "int64_t", "uint8_t" for bool and for all types
/// that nothing computes in.
std::string api_type(ir::ElementType type);
/// A literal of the type the kernels compute in: "0.5f", "std::int64_t{3}", "kInfinity".
std::string literal(const ir::Scalar& value);

}  // namespace gcompile
