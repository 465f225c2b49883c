#include "driver/machine/file_system.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/diagnostics.h"

namespace gcompile {

FileSystem& FileSystem::real() {
  static FileSystem system;
  return system;
}

int FileSystem::openat(int directory, const char* path, int flags, mode_t mode) {
  return ::openat(directory, path, flags | O_CLOEXEC, mode);
}

int FileSystem::mkdirat(int directory, const char* path, mode_t mode) {
  return ::mkdirat(directory, path, mode);
}

int FileSystem::unlinkat(int directory, const char* path, int flags) {
  return ::unlinkat(directory, path, flags);
}

int FileSystem::renameat2(int from_directory, const char* from, int to_directory, const char* to,
                          unsigned flags) {
  return ::renameat2(from_directory, from, to_directory, to, flags);
}

int FileSystem::linkat(int from_directory, const char* from, int to_directory, const char* to) {
  return ::linkat(from_directory, from, to_directory, to, 0);
}

int FileSystem::fstatat(int directory, const char* path, struct stat* status, int flags) {
  return ::fstatat(directory, path, status, flags);
}

ssize_t FileSystem::read(int descriptor, void* bytes, std::size_t size) {
  return ::read(descriptor, bytes, size);
}

ssize_t FileSystem::write(int descriptor, const void* bytes, std::size_t size) {
  return ::write(descriptor, bytes, size);
}

int FileSystem::fsync(int descriptor) { return ::fsync(descriptor); }

int FileSystem::fchmod(int descriptor, mode_t mode) { return ::fchmod(descriptor, mode); }

int FileSystem::futimens(int descriptor, const struct timespec* access_and_modification) {
  return ::futimens(descriptor, access_and_modification);
}

int FileSystem::flock(int descriptor, int operation) { return ::flock(descriptor, operation); }

int FileSystem::close(int descriptor) { return ::close(descriptor); }

std::optional<std::vector<std::string>> FileSystem::list(int directory) {
  // A descriptor of its own: fdopendir() takes over the one it gets, and a dup() would share the position.
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return std::nullopt;
  DIR* stream = ::fdopendir(own);
  if (stream == nullptr) {
    ::close(own);
    return std::nullopt;
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int problem = errno;
  ::closedir(stream);
  errno = problem;
  if (problem != 0) return std::nullopt;
  std::sort(names.begin(), names.end());
  return names;
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : system_(other.system_), value_(std::exchange(other.value_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    system_ = other.system_;
    value_ = std::exchange(other.value_, -1);
  }
  return *this;
}

bool Descriptor::close() {
  const int value = std::exchange(value_, -1);
  // EINTR: Linux has closed the descriptor all the same.
  return value < 0 || system_->close(value) == 0 || errno == EINTR;
}

void Descriptor::reset() {
  const int problem = errno;
  close();
  errno = problem;
}

int rename_to_free_place(FileSystem& system, int from_directory, const std::string& from, int to_directory,
                         const std::string& to) {
  if (system.renameat2(from_directory, from.c_str(), to_directory, to.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  struct stat status = {};
  if (system.fstatat(to_directory, to.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) errno = EEXIST;
  if (errno != ENOENT) return -1;
  return system.renameat2(from_directory, from.c_str(), to_directory, to.c_str(), 0);
}

namespace {

const char* advice(int problem) {
  switch (problem) {
    case EACCES:
    case EPERM:
      return "check who owns it and may write there, or choose another path";
    case EROFS:
      return "choose a path on a file system that can be written to";
    case ENOSPC:
    case EDQUOT:
      return "make room, or choose a path on another file system";
    case ENOTDIR:
      return "a file stands where a folder is needed; choose another path";
    case EISDIR:
      return "a folder stands where a file is needed; choose another path";
    default:
      return "check the path";
  }
}

}  // namespace

void throw_errno(const std::string& action, const std::string& path) {
  const int problem = errno;
  throw CompileError(ExitCode::kInputOutput,
                     fmt::format("cannot {} '{}': {}", action, printable(path), std::strerror(problem)),
                     advice(problem));
}

}  // namespace gcompile
