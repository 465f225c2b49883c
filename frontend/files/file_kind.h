#pragma once
// Files that are not models: what they are, and how a model is made of them.

#include <optional>
#include <string>
#include <string_view>

namespace gcompile::frontend {

struct FileKind {
  std::string what;  // "a TensorFlow Lite model"
  std::string help;  // what to do, with the command
};

/// What `bytes`, a whole file, are by their first bytes, if that is something else than a binary ONNX model;
/// nothing where they may be one. A file that begins as another format does is no ONNX model, so that a model
/// is never taken for something else.
std::optional<FileKind> kind_of_other_file(std::string_view bytes);

/// Whether a repository was cloned without this file.
bool is_git_lfs_pointer(std::string_view bytes);

/// Whether `bytes` begin as ONNX text does: "<ir_version: 8, ...".
bool is_onnx_text(std::string_view bytes);

/// Throws E0007 for such a file.
void expect_model(std::string_view bytes);

}  // namespace gcompile::frontend
