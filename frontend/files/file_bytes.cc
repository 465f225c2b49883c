#include "frontend/files/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/diagnostics.h"
#include "base/sha256.h"

namespace gcompile::frontend {
namespace {

/// Below this a mapping costs more than a copy.
constexpr std::int64_t kMappedBytes = std::int64_t{1} << 16;

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw CompileError(ExitCode::kInputOutput, fmt::format("cannot read '{}': {}", printable(name), why));
}

/// The first `size` bytes.
std::string read_bytes(const File& file, const std::string& name, std::int64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got =
        ::pread(file.descriptor(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(name, std::strerror(errno));
    if (got == 0) fail(name, "it became shorter while it was read");
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::int64_t checked_size(const File& file, const std::string& name, std::int64_t limit) {
  const std::int64_t size = regular_size(file, name);
  if (size > limit) fail(name, fmt::format("it has {} bytes, more than the limit of {}", size, limit));
  return size;
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

File open_file(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail(path, "the name contains a NUL byte");
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) fail(path, std::strerror(errno));
  return file;
}

FileBytes::FileBytes(const File& file, std::string name, std::int64_t limit) {
  const std::int64_t size = checked_size(file, name, limit);
  if (size >= kMappedBytes) {
    const auto length = static_cast<std::size_t>(size);
    void* at = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    mapped_ = at != MAP_FAILED;
    if (mapped_) {
      bytes_ = {static_cast<const std::byte*>(at), length};
      return;
    }
  }
  // Some file systems cannot map.
  small_ = read_bytes(file, name, size);
  bytes_ = std::as_bytes(std::span<const char>(small_));
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void FileBytes::rest(std::span<const std::byte> bytes) const {
  if (!mapped_) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto base = static_cast<std::size_t>(bytes.data() - bytes_.data());
  const std::size_t begin = (base + page - 1) / page * page, end = (base + bytes.size()) / page * page;
  // The pages are those of the file, never written to: reading them again brings them back.
  if (begin < end) ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

std::string sha256_of(const FileBytes& file) {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  Sha256 hash;
  for (std::size_t at = 0; at < file.bytes().size(); at += kPiece) {
    hash.update(file.text().substr(at, kPiece));
    file.rest(file.bytes().subspan(at, std::min(kPiece, file.bytes().size() - at)));
  }
  return hex_of(hash.finish());
}

std::string read_file(const std::string& path, std::int64_t limit) {
  const File file = open_file(path);
  return read_bytes(file, path, checked_size(file, path, limit));
}

}  // namespace gcompile::frontend
