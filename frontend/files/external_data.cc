#include "frontend/files/external_data.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <limits>

#include "frontend/files/file_kind.h"
#include "ir/graph/operator.h"

namespace gcompile::frontend {
namespace {

[[noreturn]] void external_error(std::string message, std::string help = {}, std::string detail = {}) {
  throw ExternalDataError{{std::move(message), std::move(help)}, std::move(detail)};
}

constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

/// Components of a relative path; a reason when it may not be followed.
std::string split_location(const std::string& location, std::vector<std::string>& components) {
  if (location.empty()) return "the location is empty";
  if (location.find('\0') != std::string::npos) return "the location contains a NUL byte";
  if (location.front() == '/') return "the location is an absolute path";
  std::size_t begin = 0;
  while (begin <= location.size()) {
    const std::size_t end = std::min(location.find('/', begin), location.size());
    const std::string component = location.substr(begin, end - begin);
    if (component == "..") return "the location leaves the model's folder by '..'";
    if (!component.empty() && component != ".") components.push_back(component);
    begin = end + 1;
  }
  return components.empty() ? "the location names no file" : "";
}

std::string reason_of(int error) {
  if (error == ELOOP) return "it is, or passes through, a symbolic link";
  if (error == EXDEV) return "it leaves the model's folder";
  return std::strerror(error);
}

/// For kernels before 5.6: every component is opened without following a link.
File open_by_components(File folder, const std::vector<std::string>& components, std::string& why) {
  for (std::size_t i = 0; i < components.size(); ++i) {
    const bool last = i + 1 == components.size();
    File next(::openat(folder.descriptor(), components[i].c_str(),
                       kOpenFlags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    if (!next.open()) {
      // O_DIRECTORY on a symlink reports ENOTDIR.
      char target[1];
      const bool link = ::readlinkat(folder.descriptor(), components[i].c_str(), target, 1) >= 0;
      why = reason_of(link ? ELOOP : errno);
      return File();
    }
    folder = std::move(next);
  }
  return folder;
}

std::int64_t parse_count(const std::string& key, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    external_error(fmt::format("external data: {} '{}' is not a number of bytes", key, printable(text)));
  }
  return value;
}

}  // namespace

File open_beneath(const std::string& folder, const std::string& location, bool use_openat2,
                  std::string& why) {
  std::vector<std::string> components;
  why = split_location(location, components);
  if (!why.empty()) return File();
  File directory(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.open()) {
    why = std::strerror(errno);
    return File();
  }
  if (use_openat2) {
    open_how how = {};
    how.flags = kOpenFlags;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    File file(
        static_cast<int>(::syscall(SYS_openat2, directory.descriptor(), location.c_str(), &how, sizeof how)));
    if (file.open()) return file;
    // EPERM: sandboxes that do not know the call refuse it this way.
    if (errno != ENOSYS && errno != EPERM) {
      why = reason_of(errno);
      return File();
    }
  }
  return open_by_components(std::move(directory), components, why);
}

ExternalData::ExternalData(std::string folder, bool allow_links, const Limits& limits,
                           std::shared_ptr<const FileBytes> model)
    : folder_(std::move(folder)),
      allow_links_(allow_links),
      bytes_left_(limits.external_bytes),
      model_(std::move(model)) {}

const std::shared_ptr<const FileBytes>& ExternalData::open(const std::string& location) {
  if (const auto at = files_.find(location); at != files_.end()) return at->second;
  std::string why;
  File file;
  if (allow_links_) {
    std::vector<std::string> components;
    why = split_location(location, components);
    if (why.empty()) {
      file = File(::open((folder_ + "/" + location).c_str(), kOpenFlags));
      if (!file.open()) why = std::strerror(errno);
    }
  } else {
    file = open_beneath(folder_, location, true, why);
  }
  // A hard link is another way to a file elsewhere, which no path shows.
  struct stat status = {};
  if (file.open() && !allow_links_ && ::fstat(file.descriptor(), &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_nlink > 1) {
    why = "it has more than one name: a hard link";
    file = File();
  }
  if (!file.open()) {
    const bool link = why.find(" link") != std::string::npos;
    external_error(fmt::format("external data '{}': {}", printable(location), why),
                   link ? "--allow-symlinks permits links out of the model's folder"
                        : "put it back beside the model: external data is a file inside the model's folder");
  }
  auto opened = std::make_shared<const FileBytes>(file, location, std::numeric_limits<std::int64_t>::max());
  return files_.emplace(location, std::move(opened)).first->second;
}

FilePart ExternalData::in_model(std::int64_t offset, std::int64_t bytes) const {
  GC_CHECK(model_);
  return {model_->bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)), model_};
}

FilePart ExternalData::find(const onnx::TensorProto& proto, std::int64_t bytes) {
  if (folder_.empty())
    external_error("its data lies in another file, but the model was not read from a folder");
  std::string location;
  std::int64_t offset = 0;
  std::int64_t length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset") {
      offset = parse_count("offset", entry.value());
    } else if (entry.key() == "length") {
      length = parse_count("length", entry.value());
    } else if (entry.key() != "checksum") {
      external_error(fmt::format("external data: the key '{}' is not known", printable(entry.key())));
    }
  }
  if (length != bytes)
    external_error(fmt::format("external data: length is {}, the type needs {} bytes", length, bytes));
  const std::shared_ptr<const FileBytes>& opened = open(location);
  const auto size = static_cast<std::int64_t>(opened->bytes().size());
  if (length > size || offset > size - length) {
    external_error(
        fmt::format("external data '{}': a part that a tensor needs lies outside the file of {} bytes",
                    printable(location), size),
        is_git_lfs_pointer(opened->text())
            ? "the file is a Git LFS pointer; `git lfs pull` fetches the file that it stands for"
            : "the file may have been downloaded incompletely",
        fmt::format("{} bytes at offset {}", length, offset));
  }
  if (bytes > bytes_left_) external_error("the model's external data is larger than the limit");
  bytes_left_ -= bytes;
  return {opened->bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)), opened};
}

}  // namespace gcompile::frontend
