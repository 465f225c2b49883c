#pragma once

#include <string>
#include <string_view>

#include "ir/tensors/tensor.h"

namespace gcompile {

/// The array in the bytes of a .npy file, versions 1 to 3 (numpy.lib.format). Both byte orders and both
/// storage orders; the element types that numpy and ONNX share, of which bool holds 0 and 1 only. Throws
/// std::invalid_argument with the reason.
ir::Tensor parse_npy(std::string_view bytes);

/// The .npy file of a tensor, version 1. Types that numpy lacks are widened, which loses nothing: bfloat16 to
/// float32, integers of 4 and 2 bits to int8 and uint8; of floats of 8 and 4 bits the file has the codes as uint8.
std::string to_npy(const ir::Tensor& tensor);

/// The tensor with elements of another type, rounded: of a file of such a widened type, or of a state that
/// has fewer bits than the model says.
ir::Tensor as_element(const ir::Tensor& tensor, ir::ElementType element);

/// The tensor of elements of a type that a file has, widened where numpy lacks the type; others as they are.
ir::Tensor as_written(const ir::Tensor& tensor, ir::ElementType element);

}  // namespace gcompile
