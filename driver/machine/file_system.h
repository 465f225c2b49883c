#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace gcompile {

/// The system calls that publish() makes, so that a test can let each of them fail. All behave as the call
/// they are named after: -1 with errno on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  static FileSystem& real();

  virtual int openat(int directory, const char* path, int flags, mode_t mode);
  virtual int mkdirat(int directory, const char* path, mode_t mode);
  virtual int unlinkat(int directory, const char* path, int flags);
  virtual int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                        unsigned flags);
  virtual int linkat(int from_directory, const char* from, int to_directory, const char* to);
  virtual int fstatat(int directory, const char* path, struct stat* status, int flags);
  virtual ssize_t read(int descriptor, void* bytes, std::size_t size);
  virtual ssize_t write(int descriptor, const void* bytes, std::size_t size);
  virtual int fsync(int descriptor);
  virtual int fchmod(int descriptor, mode_t mode);
  virtual int futimens(int descriptor, const struct timespec* access_and_modification);
  virtual int flock(int descriptor, int operation);
  virtual int close(int descriptor);
  /// The names in a directory without "." and "..", sorted; nothing, with errno, on failure.
  virtual std::optional<std::vector<std::string>> list(int directory);
};

/// Owns an open file; -1 is none.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(FileSystem& system, int value) : system_(&system), value_(value) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  /// Closes and tells whether that succeeded: some file systems report a failed write only here.
  bool close();

 private:
  void reset();

  FileSystem* system_ = nullptr;
  int value_ = -1;
};

/// renameat2(RENAME_NOREPLACE), and where the file system lacks it a rename after looking.
int rename_to_free_place(FileSystem& system, int from_directory, const std::string& from, int to_directory,
                         const std::string& to);

/// Throws CompileError(ExitCode::kInputOutput): "cannot ACTION 'PATH': reason of errno".
[[noreturn]] void throw_errno(const std::string& action, const std::string& path);

}  // namespace gcompile
