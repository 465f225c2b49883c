#pragma once
// Files and bytes -> ModelProto, with sizes and nesting checked first.
// Internal to the frontend: needs protobuf.

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/files/limits.h"

namespace gcompile::frontend {

/// Where large raw data of tensors ends up.
enum class RawData {
  kCopied,  // in TensorProto.raw_data
  kLeft,    // in `bytes`, which outlive the message: raw_place() tells where
};

/// A binary ModelProto. Throws CompileError (kModel) for truncated or malformed bytes, and for fields that
/// this build's ONNX library does not know and that may not be ignored, each by name.
onnx::ModelProto parse_model_bytes(std::string_view bytes, const Limits& limits,
                                   RawData raw_data = RawData::kCopied);

/// Raw data within the bytes that a model was parsed from.
struct RawPlace {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};
/// The place of a tensor's raw data, if that was left in the file.
std::optional<RawPlace> raw_place(const onnx::TensorProto& proto);
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
