#pragma once
// Files and bytes -> ModelProto, with sizes and nesting checked first. Internal to the frontend: needs
// protobuf.

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>
#include <vector>

#include "frontend/limits.h"

namespace gcompile::frontend {

/// A binary ModelProto. Throws CompileError (kModel) for truncated or malformed bytes, and for fields that
/// this build's ONNX library does not know and that may not be ignored, each by name.
onnx::ModelProto parse_model_bytes(std::string_view bytes, const Limits& limits);
/// ONNX text syntax (onnx/docs/Syntax.md). Throws CompileError (kModel).
onnx::ModelProto parse_model_text(const std::string& text, const Limits& limits);
/// Whether the name says ONNX text: .onnxtxt or .txt.
bool is_text_name(const std::string& path);
/// "models" for "models/x.onnx", "." for "x.onnx".
std::string folder_of(const std::string& path);

/// Default values of a function's attributes. ONNX 1.12 does not know the field
/// (FunctionProto.attribute_proto, 11): then they are read from the unknown fields.
std::vector<onnx::AttributeProto> attribute_defaults(const onnx::FunctionProto& function);

}  // namespace gcompile::frontend
