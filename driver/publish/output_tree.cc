#include "driver/publish/output_tree.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/diagnostics.h"
#include "driver/machine/interrupt.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
// O_NONBLOCK: a named pipe must not hold us up.
constexpr int kReadFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

/// Whether the last call failed because there is no such file, or something else is where it should be.
bool is_absent() {
  return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EISDIR || errno == ENXIO;
}

}  // namespace

std::vector<std::string> directories_above(const std::string& path) {
  std::vector<std::string> directories;
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    directories.push_back(path.substr(0, slash));
  }
  return directories;
}

std::set<std::string> paths_of(const FileSet& files) {
  std::set<std::string> paths;
  for (const auto& [path, file] : files.files()) paths.insert(path);
  return paths;
}

std::set<std::string> directories_of(const std::set<std::string>& paths) {
  std::set<std::string> directories;
  for (const std::string& path : paths) {
    for (std::string& directory : directories_above(path)) directories.insert(std::move(directory));
  }
  return directories;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

OutputTree::OutputTree(FileSystem& system, Descriptor root, std::string shown)
    : system_(system), root_(std::move(root)), shown_(std::move(shown)) {}

Descriptor OutputTree::open_directory(const std::string& path, bool create) const {
  Descriptor directory(system_, system_.openat(root_.get(), ".", O_RDONLY | O_DIRECTORY, 0));
  for (std::size_t begin = 0; directory && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (create && system_.mkdirat(directory.get(), part.c_str(), 0777) != 0 && errno != EEXIST) return {};
    directory = Descriptor(system_, system_.openat(directory.get(), part.c_str(), kDirectoryFlags, 0));
    begin = end + 1;
  }
  return directory;
}

Descriptor OutputTree::open_parent(const std::string& path, bool create) const {
  const std::size_t slash = path.rfind('/');
  return open_directory(slash == std::string::npos ? "" : path.substr(0, slash), create);
}

bool OutputTree::is_empty() const {
  const auto names = system_.list(root_.get());
  if (!names) throw_errno("read", shown_);
  return names->empty();
}

std::optional<std::string> OutputTree::read(const std::string& path) const {
  const Descriptor parent = open_parent(path, false);
  const Descriptor file(system_,
                        parent ? system_.openat(parent.get(), last_part(path).c_str(), kReadFlags, 0) : -1);
  if (!file && !is_absent()) throw_errno("read", shown_path(path));
  if (!file) return std::nullopt;
  std::string bytes;
  std::string chunk(kChunkBytes, '\0');
  while (bytes.size() <= kMaxManifestBytes) {
    const ssize_t count = system_.read(file.get(), chunk.data(), chunk.size());
    if (count == 0) return bytes;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && !is_absent()) throw_errno("read", shown_path(path));
    if (count < 0) return std::nullopt;
    bytes.append(chunk, 0, static_cast<std::size_t>(count));
  }
  return std::nullopt;
}

std::optional<std::set<std::string>> OutputTree::read_manifest(const std::string& path) const {
  const std::optional<std::string> text = read(path);
  if (!text) return std::nullopt;
  const auto manifest = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!manifest.is_object() || manifest.value("generator", nlohmann::ordered_json()) != "gcompile")
    return std::nullopt;
  const auto files = manifest.find("files");
  if (files == manifest.end() || !files->is_array()) return std::nullopt;
  std::set<std::string> listed;
  for (const auto& file : *files) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) return std::nullopt;
    const std::string listed_path = file["path"];
    if (!is_output_path(listed_path)) return std::nullopt;
    listed.insert(listed_path);
  }
  return listed;
}

std::optional<std::set<std::string>> OutputTree::listed_files() const {
  const Descriptor meta = open_directory("meta", false);
  if (!meta && !is_absent()) throw_errno("read", shown_path("meta"));
  if (!meta) return std::nullopt;
  const auto names = system_.list(meta.get());
  if (!names) throw_errno("read", shown_path("meta"));
  std::optional<std::set<std::string>> listed;
  static const std::string kSuffix = ".json";
  for (const std::string& name : *names) {
    const bool is_json = name.size() > kSuffix.size() &&
                         name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
    if (!is_json || !is_output_path(name)) continue;
    const auto manifest = read_manifest("meta/" + name);
    if (!manifest) continue;
    if (!listed) listed.emplace();
    listed->insert("meta/" + name);
    listed->insert(manifest->begin(), manifest->end());
  }
  return listed;
}

bool OutputTree::holds(const std::string& path, const OutputFile& expected, struct timespec& modified) const {
  const Descriptor parent = open_parent(path, false);
  if (!parent) return false;
  const Descriptor file(system_, system_.openat(parent.get(), last_part(path).c_str(), kReadFlags, 0));
  struct stat status = {};
  if (!file || system_.fstatat(file.get(), "", &status, AT_EMPTY_PATH) != 0) return false;
  if (!S_ISREG(status.st_mode) || ((status.st_mode & S_IXUSR) != 0) != expected.executable) return false;
  if (static_cast<std::size_t>(status.st_size) != expected.bytes.size()) return false;
  std::string chunk(std::min(kChunkBytes, expected.bytes.size() + 1), '\0');
  std::size_t offset = 0;
  while (true) {
    const ssize_t count = system_.read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    const auto size = static_cast<std::size_t>(count);
    if (size > expected.bytes.size() - offset) return false;
    if (std::memcmp(chunk.data(), expected.bytes.data() + offset, size) != 0) return false;
    offset += size;
  }
  modified = status.st_mtim;
  return offset == expected.bytes.size();
}

/// The S_IFMT bits of what is at `path`; 0 for nothing.
mode_t OutputTree::kind(const std::string& path) const {
  const Descriptor parent = open_parent(path, false);
  struct stat status = {};
  if (parent && system_.fstatat(parent.get(), last_part(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return status.st_mode & S_IFMT;
  }
  if (!is_absent()) throw_errno("examine", shown_path(path));
  return 0;
}

bool OutputTree::is_file(const std::string& path) const { return kind(path) == S_IFREG; }

bool OutputTree::is_directory(const std::string& path) const { return kind(path) == S_IFDIR; }

bool OutputTree::holds_only(const std::set<std::string>& listed) const {
  return holds_only("", listed, directories_of(listed));
}

bool OutputTree::holds_only(const std::string& directory, const std::set<std::string>& listed,
                            const std::set<std::string>& directories) const {
  const Descriptor opened = open_directory(directory, false);
  const auto names = opened ? system_.list(opened.get()) : std::nullopt;
  if (!names) throw_errno("read", shown_path(directory));
  return std::all_of(names->begin(), names->end(), [&](const std::string& name) {
    const std::string path = directory.empty() ? name : directory + "/" + name;
    if (directories.count(path) > 0 && is_directory(path)) return holds_only(path, listed, directories);
    return listed.count(path) > 0 && is_file(path);
  });
}

std::vector<std::string> OutputTree::foreign_in_the_way(const FileSet& files,
                                                        const std::set<std::string>& listed) const {
  const std::set<std::string> directories = directories_of(listed);
  std::set<std::string> foreign;
  for (const auto& [path, file] : files.files()) {
    std::vector<std::string> places = directories_above(path);
    places.push_back(path);
    for (const std::string& place : places) {
      const mode_t found = kind(place);
      if (found == 0) break;
      if (found == S_IFDIR && place != path) continue;
      const bool ours = found == S_IFDIR
                            ? directories.count(place) > 0 && holds_only(place, listed, directories)
                            : found == S_IFREG && listed.count(place) > 0;
      if (!ours) foreign.insert(place);
      break;
    }
  }
  return {foreign.begin(), foreign.end()};
}

void OutputTree::write_bytes(int descriptor, const std::string& path, std::string_view bytes) {
  for (std::size_t offset = 0; offset < bytes.size();) {
    throw_if_interrupted();
    const ssize_t count =
        system_.write(descriptor, bytes.data() + offset, std::min(kChunkBytes, bytes.size() - offset));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;
    if (count <= 0) throw_errno("write", shown_path(path));
    offset += static_cast<std::size_t>(count);
  }
}

void OutputTree::write_file(const std::string& path, const OutputFile& file, const struct timespec* modified,
                            bool durable) {
  throw_if_interrupted();
  const Descriptor parent = open_parent(path, true);
  if (!parent) throw_errno("create the directory of", shown_path(path));
  Descriptor opened(
      system_, system_.openat(parent.get(), last_part(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                              file.executable ? 0777 : 0666));
  if (!opened) throw_errno("create", shown_path(path));
  write_bytes(opened.get(), path, file.bytes);
  if (modified != nullptr) {
    const struct timespec times[2] = {*modified, *modified};
    if (system_.futimens(opened.get(), times) != 0) throw_errno("set the time of", shown_path(path));
  }
  if (durable && system_.fsync(opened.get()) != 0) throw_errno("write", shown_path(path));
  if (!opened.close()) throw_errno("write", shown_path(path));
}

int OutputTree::write(const FileSet& files, const OutputTree* previous, bool durable) {
  int changed = 0;
  auto write_one = [&](const std::string& path, const OutputFile& file, const std::string& place) {
    struct timespec modified = {};
    const bool same = previous != nullptr && previous->holds(path, file, modified);
    changed += same ? 0 : 1;
    write_file(place, file, same ? &modified : nullptr, durable);
  };
  const std::string& manifest = files.manifest_path();
  write_one(manifest, *files.find(manifest), kUnfinishedManifest);
  const Descriptor meta = open_parent(manifest, true);
  if (!meta ||
      system_.renameat2(root_.get(), kUnfinishedManifest, meta.get(), last_part(manifest).c_str(), 0) != 0) {
    throw_errno("create", shown_path(manifest));
  }
  for (const auto& [path, file] : files.files()) {
    if (path != manifest) write_one(path, file, path);
  }
  if (durable) sync_directories(paths_of(files));
  return changed;
}

void OutputTree::sync_directories(const std::set<std::string>& paths) {
  std::set<std::string> directories = directories_of(paths);
  directories.insert("");
  for (const std::string& path : directories) {
    const Descriptor directory = open_directory(path, false);
    if (!directory || system_.fsync(directory.get()) != 0) throw_errno("write", shown_path(path));
  }
}

bool OutputTree::remove(const std::string& path, int flags) {
  const Descriptor parent = open_parent(path, false);
  if (parent && system_.unlinkat(parent.get(), last_part(path).c_str(), flags) == 0) return true;
  return is_absent() || (flags == AT_REMOVEDIR && errno == ENOTEMPTY);
}

std::set<std::string> OutputTree::remove_listed(const std::set<std::string>& listed) {
  std::set<std::string> left;
  auto remove_all = [&](const std::set<std::string>& paths, bool in_meta, int flags) {
    // Backwards: what lies in a directory comes before the directory.
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
      const bool is_in_meta = path->compare(0, 4, "meta") == 0 && (path->size() == 4 || (*path)[4] == '/');
      if (is_in_meta == in_meta && !remove(*path, flags)) left.insert(*path);
    }
  };
  std::set<std::string> directories = directories_of(listed);
  directories.insert("meta");
  remove_all({kUnfinishedManifest}, false, 0);
  remove_all(listed, false, 0);
  remove_all(directories, false, AT_REMOVEDIR);
  if (!left.empty()) {
    left.insert(listed.begin(), listed.end());
    return left;
  }
  remove_all(listed, true, 0);
  remove_all(directories, true, AT_REMOVEDIR);
  return left;
}

void OutputTree::move_rest_to(OutputTree& home, const std::set<std::string>& ours) {
  merge(root_.get(), home.root_.get(), "", ours);
}

void OutputTree::merge(int from, int to, const std::string& prefix, const std::set<std::string>& ours) {
  const auto names = system_.list(from);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string path = prefix + name;
    if (ours.count(path) > 0) continue;
    const auto below = ours.lower_bound(path + "/");
    const bool holds_ours = below != ours.end() && below->compare(0, path.size() + 1, path + "/") == 0;
    if (!holds_ours && rename_to_free_place(system_, from, name, to, name) == 0) continue;
    const Descriptor inner_from(system_, system_.openat(from, name.c_str(), kDirectoryFlags, 0));
    const Descriptor inner_to(system_, system_.openat(to, name.c_str(), kDirectoryFlags, 0));
    if (!inner_from || !inner_to) continue;
    merge(inner_from.get(), inner_to.get(), path + "/", ours);
    system_.unlinkat(from, name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace gcompile
