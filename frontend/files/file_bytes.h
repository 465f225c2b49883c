#pragma once
// Regular files, read whole or mapped, with their size checked first.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/tensors/tensor.h"

namespace gcompile::frontend {

/// A file descriptor that closes itself.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  File& operator=(File&& other) noexcept;
  ~File();
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// Size of an open file; throws CompileError (kInputOutput) when it is not a regular file.
/// `name` is for messages.
std::int64_t regular_size(const File& file, const std::string& name);
/// Opens a file for reading, whatever it is. Throws CompileError (kInputOutput).
File open_file(const std::string& path);

/// A whole regular file in memory, without a copy; small ones are read. Its size is that at the time of
/// opening. Who writes to the file meanwhile may change what is read here, and who cuts it off takes the
/// pages away: reading one raises SIGBUS, which the driver answers with a message and kInputOutput.
class FileBytes : public ir::ByteSource {
 public:
  /// Throws CompileError (kInputOutput): not regular, larger than `limit`. `name` is for messages.
  FileBytes(const File& file, std::string name, std::int64_t limit);
  FileBytes(const FileBytes&) = delete;
  ~FileBytes() override;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  void rest(std::span<const std::byte> bytes) const override;

 private:
  std::string small_;
  std::span<const std::byte> bytes_;
  bool mapped_ = false;
};

/// The SHA-256 of a file as 64 hexadecimal digits, a piece at a time: what was read may leave memory again.
std::string sha256_of(const FileBytes& file);

/// The whole regular file of at most `limit` bytes. Throws CompileError (kInputOutput).
std::string read_file(const std::string& path, std::int64_t limit);

}  // namespace gcompile::frontend
