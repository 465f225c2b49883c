#pragma once

#include <string>
#include <string_view>

#include "ir/tensors/tensor.h"

namespace gcompile {

/// The array in the bytes of a .npy file, versions 1 to 3 (numpy.lib.format). Both byte orders and both
/// storage orders; the element types that numpy and ONNX share, of which bool holds 0 and 1 only. Throws
/// std::invalid_argument with the reason.
ir::Tensor parse_npy(std::string_view bytes);

/// The .npy file of a tensor, version 1. Types that numpy lacks are widened, which loses nothing: bfloat16
/// and float8 to float32, int4 to int8, uint4 to uint8.
std::string to_npy(const ir::Tensor& tensor);

/// The tensor with elements of another type, rounded: of a file of such a widened type, or of a state that
/// has fewer bits than the model says.
ir::Tensor as_element(const ir::Tensor& tensor, ir::ElementType element);

}  // namespace gcompile
