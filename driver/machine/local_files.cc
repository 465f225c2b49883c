#include "driver/machine/local_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/diagnostics.h"
#include "driver/machine/file_system.h"

namespace gcompile {

namespace {

/// Writes and closes; `file` may be null, with errno.
void write_and_close(std::FILE* file, const std::string& path, std::string_view bytes) {
  if (file == nullptr) throw_errno("write", path);
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = error;
  if (!written || !closed) throw_errno("write", path);
}

/// The mode of the file that may take the place of what is at `path`: of nothing, or of a regular file of
/// ours with one name. None when what is there has to be written to.
std::optional<mode_t> mode_of_successor(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return std::nullopt;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return static_cast<mode_t>(0666 & ~mask);
  }
  const bool is_replaceable = S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                              status.st_uid == ::geteuid() && ::access(path.c_str(), W_OK) == 0;
  return is_replaceable ? std::optional<mode_t>(status.st_mode & 07777) : std::nullopt;
}

}  // namespace

void write_local_file(const std::string& path, std::string_view bytes) {
  std::error_code no_file;
  const std::filesystem::path resolved = std::filesystem::canonical(path, no_file);
  const std::string target = no_file ? path : resolved.string();
  std::string temporary = target + ".gcompile-XXXXXX";
  const std::optional<mode_t> mode = mode_of_successor(target);
  const int descriptor = mode ? ::mkostemp(temporary.data(), O_CLOEXEC) : -1;
  if (descriptor < 0) {  // also where only the file may be written, not its folder
    write_and_close(std::fopen(path.c_str(), "wb"), path, bytes);
    return;
  }
  try {
    ::fchmod(descriptor, *mode);
    write_and_close(::fdopen(descriptor, "wb"), path, bytes);
    if (std::rename(temporary.c_str(), target.c_str()) != 0) throw_errno("write", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void claim_folder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path claim = std::filesystem::path(folder) / kClaim;
  const bool exists = std::filesystem::exists(folder, error);
  const bool is_free =
      !exists || std::filesystem::exists(claim, error) || std::filesystem::is_empty(folder, error);
  if (error) {
    errno = error.value();
    throw_errno("open", folder);
  }
  if (!is_free) {
    throw CompileError(ExitCode::kInputOutput,
                       fmt::format("'{}' holds files and was not made by gcompile", printable(folder)),
                       "choose a folder that is new, empty, or was filled so before");
  }
  write_text_file(folder, kClaim, "");
}

void write_text_file(const std::string& folder, const std::string& name, std::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    errno = error.value();
    throw_errno("make", folder);
  }
  write_local_file(folder + "/" + name, text);
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:,@=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = fmt::format("{}/gcompile-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp");
  if (mkdtemp(pattern.data()) == nullptr) throw_errno("make", pattern);
  path_ = std::move(pattern);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gcompile
