#pragma once
// Reads the protobuf wire format of a model (protobuf.dev/programming-guides/encoding) against the newest
// onnx.proto before any message is built: sizes, nesting, and fields that the ONNX library of this build may
// not know.

#include <string_view>

#include "frontend/files/limits.h"

namespace gcompile::frontend {

/// Messages inside messages that protobuf must be able to follow: an If takes four levels.
constexpr int kMaximumMessageDepth = 200;

/// Throws CompileError (kModel): truncated or malformed bytes (E0002, with the path of the field and the
/// position), nesting (E0004), and each field that changes the meaning of a model and is not supported
/// (E0006), by name. Descriptions (metadata_props, doc_string, device configurations) pass.
void scan_model(std::string_view bytes, const Limits& limits);

}  // namespace gcompile::frontend
