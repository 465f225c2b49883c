#pragma once
// Regular files, read whole or in part, with their size checked first.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

/// Size of an open file; throws CompileError (kInputOutput) when it is not a regular file. `name` is for
/// messages.
std::int64_t regular_size(const File& file, const std::string& name);
/// Exactly `size` bytes from `offset`. Throws CompileError (kInputOutput).
void read_at(const File& file, const std::string& name, std::int64_t offset, std::byte* to, std::size_t size);
/// The whole regular file of at most `limit` bytes. Throws CompileError (kInputOutput).
std::string read_file(const std::string& path, std::int64_t limit);

}  // namespace gcompile::frontend
