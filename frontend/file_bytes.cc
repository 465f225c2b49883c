#include "frontend/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "ir/diagnostics.h"

namespace gcompile::frontend {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw ir::CompileError(ir::ExitCode::kInputOutput,
                         fmt::format("cannot read '{}': {}", ir::printable(name), why));
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::int64_t regular_size(const File& file, const std::string& name) {
  struct stat status = {};
  if (::fstat(file.descriptor(), &status) != 0) fail(name, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(name, "it is a directory");
  if (!S_ISREG(status.st_mode)) fail(name, "it is not a regular file");
  return static_cast<std::int64_t>(status.st_size);
}

void read_at(const File& file, const std::string& name, std::int64_t offset, std::byte* to,
             std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::pread(file.descriptor(), to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(name, std::strerror(errno));
    if (got == 0) fail(name, "it became shorter while it was read");
    to += got;
    offset += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::string read_file(const std::string& path, std::int64_t limit) {
  if (path.find('\0') != std::string::npos) fail(path, "the name contains a NUL byte");
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) fail(path, std::strerror(errno));
  const std::int64_t size = regular_size(file, path);
  if (size > limit) fail(path, fmt::format("it has {} bytes, more than the limit of {}", size, limit));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  read_at(file, path, 0, reinterpret_cast<std::byte*>(bytes.data()), bytes.size());
  return bytes;
}

}  // namespace gcompile::frontend
