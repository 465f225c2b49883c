#include "driver/publish/output_place.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "base/diagnostics.h"

namespace gcompile {
namespace {

constexpr std::string_view kSystemFolders[] = {"/bin",
                                               "/boot",
                                               "/dev",
                                               "/etc",
                                               "/home",
                                               "/lib",
                                               "/lib32",
                                               "/lib64",
                                               "/libx32",
                                               "/media",
                                               "/opt",
                                               "/proc",
                                               "/root",
                                               "/run",
                                               "/sbin",
                                               "/sys",
                                               "/tmp",
                                               "/usr",
                                               "/usr/bin",
                                               "/usr/games",
                                               "/usr/include",
                                               "/usr/lib",
                                               "/usr/lib32",
                                               "/usr/lib64",
                                               "/usr/local",
                                               "/usr/sbin",
                                               "/usr/libexec",
                                               "/usr/libx32",
                                               "/usr/local/bin",
                                               "/usr/local/etc",
                                               "/usr/share",
                                               "/usr/src",
                                               "/usr/local/lib",
                                               "/usr/local/man",
                                               "/usr/local/src",
                                               "/usr/local/include",
                                               "/var",
                                               "/var/cache",
                                               "/var/lib",
                                               "/var/log",
                                               "/usr/local/sbin",
                                               "/usr/local/share",
                                               "/var/mail",
                                               "/var/opt",
                                               "/var/run",
                                               "/var/spool",
                                               "/var/tmp"};

[[noreturn]] void refuse(const std::string& message, const std::string& help = {}) {
  throw CompileError(ExitCode::kInputOutput, message, help);
}

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  return resolved ? std::optional<std::string>(resolved.get()) : std::nullopt;
}

bool is_at_or_above(const std::string& path, const std::string& other) {
  return other == path || other.compare(0, path.size() + 1, path + "/") == 0;
}

/// What the environment says is home, and what the system says.
std::vector<std::string> home_folders() {
  std::vector<std::string> homes;
  if (const char* home = std::getenv("HOME")) homes.emplace_back(home);
  if (const passwd* user = ::getpwuid(::geteuid())) homes.emplace_back(user->pw_dir);
  return homes;
}

void refuse_protected(const std::string& path, const std::string& shown) {
  bool is_protected = is_protected_folder(path, "");
  for (const std::string& home : home_folders()) {
    const auto resolved = home.empty() ? std::nullopt : real_path(home);
    is_protected = is_protected || (resolved && is_protected_folder(path, *resolved));
  }
  if (!is_protected) return;
  refuse(fmt::format("cannot write a project into '{}', a folder of the system or of all that is yours",
                     printable(shown)),
         "name a directory below it");
}

bool is_symbolic_link(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

/// Without slashes at its end.
std::string named_path(const std::string& directory) {
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.empty() || path.size() >= PATH_MAX || path.find('\0') != std::string::npos) {
    refuse("the output directory needs a name");
  }
  return path;
}

void make_parents(FileSystem& system, OutputPlace& place) {
  const std::string& path = place.parent_path;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (system.mkdirat(AT_FDCWD, part.c_str(), 0777) == 0) {
      place.made_parents.push_back(part);
    } else if (errno != EEXIST) {
      const int problem = errno;
      // On a read-only file system mkdir() may complain before it looks.
      struct stat status = {};
      if (system.fstatat(AT_FDCWD, part.c_str(), &status, 0) != 0 || !S_ISDIR(status.st_mode)) {
        errno = problem;
        throw_errno("create directory", part);
      }
    }
    if (end == std::string::npos) break;
  }
}

}  // namespace

bool is_protected_folder(const std::string& path, const std::string& home) {
  if (path == "/") return true;
  const bool is_of_the_system =
      std::find(std::begin(kSystemFolders), std::end(kSystemFolders), path) != std::end(kSystemFolders);
  return is_of_the_system || (!home.empty() && is_at_or_above(path, home));
}

namespace {

/// Whether a folder can be made in this one. Only the attempt tells: the superuser may write into every
/// folder, and cannot in those of the kernel. With errno.
bool may_hold_folders(const std::string& folder) {
  std::string probe = folder + "/.gcompile-XXXXXX";
  return ::mkdtemp(probe.data()) && ::rmdir(probe.c_str()) == 0;
}

}  // namespace

bool examine_output(const std::string& directory) {
  std::string path = named_path(directory);
  if (const auto resolved = real_path(path)) {
    refuse_protected(*resolved, directory);
    return true;
  }
  if (errno != ENOENT) throw_errno("open", directory);
  // The lowest folder that is there, in which the others would be made.
  while (true) {
    const std::string missing = path;
    const std::size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    struct stat status = {};
    if (::stat(path.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode)) errno = ENOTDIR;
      if (!S_ISDIR(status.st_mode) || !may_hold_folders(path)) throw_errno("create directory", missing);
      return false;
    }
    if (errno != ENOENT) throw_errno("open", path);
  }
}

void locate_output(const std::string& directory, FileSystem& system, OutputPlace& place) {
  place.shown = directory;
  std::string path = named_path(directory);
  if (const auto resolved = real_path(path)) {
    refuse_protected(*resolved, place.shown);
    const auto here = real_path(".");
    const std::string last = path.substr(path.rfind('/') + 1);
    place.stays =
        last == "." || last == ".." || is_symbolic_link(path) || (here && is_at_or_above(*resolved, *here));
    path = *resolved;
  } else if (errno != ENOENT) {
    throw_errno("open", place.shown);
  }
  const std::size_t slash = path.rfind('/');
  place.name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  place.parent_path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (place.name.empty() || place.name == "." || place.name == "..") {
    refuse(fmt::format("'{}' names no directory", printable(place.shown)));
  }
  make_parents(system, place);
  place.parent =
      Descriptor(system, system.openat(AT_FDCWD, place.parent_path.c_str(), O_RDONLY | O_DIRECTORY, 0));
  if (!place.parent) throw_errno("open", place.parent_path);
}

}  // namespace gcompile
