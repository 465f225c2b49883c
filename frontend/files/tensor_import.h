#pragma once
// TensorProto -> ir::Tensor. Sizes are checked against the dims before anything is allocated.

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

#include "frontend/files/external_data.h"
#include "frontend/files/limits.h"
#include "ir/tensors/tensor.h"

namespace gcompile::frontend {

/// ONNX TensorProto.DataType -> ours; nullopt for types that are not supported (string, complex, ...).
std::optional<ir::ElementType> element_type_of(int onnx_type);
/// Ours -> TensorProto.DataType.
int onnx_type_of(ir::ElementType type);
/// "string", "complex64", "float6e2m3", "element type 99".
std::string onnx_type_name(int onnx_type);

/// Dims of at most limits.rank axes, none negative, with at most limits.tensor_elements elements (dims before
/// a zero count as well: 2^62 x 0 is refused). Throws OperatorError.
ir::Shape checked_shape(const google::protobuf::RepeatedField<std::int64_t>& dims, const Limits& limits);

/// The value of a tensor. `external` reads external data; nullptr: refused. Throws OperatorError with a
/// message about the tensor ("raw_data has 7 bytes, ..."),
/// CompileError for external files that cannot be read.
ir::Tensor import_tensor(const onnx::TensorProto& proto, const Limits& limits, ExternalData* external);

}  // namespace gcompile::frontend
