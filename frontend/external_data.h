#pragma once
// External data of tensors: regular files inside the model's folder, and nowhere else.

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/file_bytes.h"
#include "frontend/limits.h"

namespace gcompile::frontend {

class ExternalData {
 public:
  /// `folder`: the model's; empty: there is none (models from memory), and external data is refused.
  ExternalData(std::string folder, bool allow_symlinks, const Limits& limits);

  /// The `bytes` bytes of an external tensor. Throws ir::OperatorError when the entry is wrong (absolute
  /// path,
  /// "..", symlink, range outside the file, length unlike the type), CompileError when the file cannot be
  /// read.
  std::vector<std::byte> read(const onnx::TensorProto& proto, std::int64_t bytes);

 private:
  struct Opened {
    File file;
    std::int64_t size = 0;
  };
  const Opened& open(const std::string& location);

  std::string folder_;
  bool allow_symlinks_;
  std::int64_t bytes_left_;
  std::map<std::string, Opened> files_;
};

/// Opens `location` below the folder without following "..", absolute paths or symlinks: openat2(2) where the
/// kernel has it and `use_openat2`, else component by component. Returns a closed File and sets `why`.
File open_beneath(const std::string& folder, const std::string& location, bool use_openat2, std::string& why);

}  // namespace gcompile::frontend
