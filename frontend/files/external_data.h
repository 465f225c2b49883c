#pragma once
// External data of tensors: regular files inside the model's folder, and nowhere else.

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/files/file_bytes.h"
#include "frontend/files/limits.h"
#include "ir/graph/operator.h"

namespace gcompile::frontend {

/// Bytes in a file that is mapped as long as somebody needs them.
struct FilePart {
  std::span<const std::byte> bytes;
  std::shared_ptr<const FileBytes> file;
};

/// Data that lies outside of the model's file and cannot be had. What is wrong with the file is the message,
/// the same for all tensors in it; `detail` is what is of this tensor, or empty.
struct ExternalDataError : OperatorError {
  std::string detail;
};

class ExternalData {
 public:
  /// `folder`: the model's; empty: there is none (models from memory), and external data is refused. `model`:
  /// the model's own file, if raw data of tensors may be left there (model_file.h).
  ExternalData(std::string folder, bool allow_links, const Limits& limits,
               std::shared_ptr<const FileBytes> model = nullptr);

  /// The `bytes` bytes of an external tensor. Throws ExternalDataError when the entry is wrong (absolute
  /// path,
  /// "..", symbolic or hard link, range outside the file, length unlike the type), CompileError when the file
  /// cannot be read.
  FilePart find(const onnx::TensorProto& proto, std::int64_t bytes);
  /// A part of the model's own file.
  FilePart in_model(std::int64_t offset, std::int64_t bytes) const;

  /// The files that tensors lie in, by location.
  const std::map<std::string, std::shared_ptr<const FileBytes>>& files() const { return files_; }

 private:
  const std::shared_ptr<const FileBytes>& open(const std::string& location);

  std::string folder_;
  bool allow_links_;
  std::int64_t bytes_left_;
  std::shared_ptr<const FileBytes> model_;
  std::map<std::string, std::shared_ptr<const FileBytes>> files_;
};

/// Opens `location` below the folder without following "..", absolute paths or symlinks: openat2(2) where the
/// kernel has it and `use_openat2`, else component by component. Returns a closed File and sets `why`.
File open_beneath(const std::string& folder, const std::string& location, bool use_openat2, std::string& why);

}  // namespace gcompile::frontend
