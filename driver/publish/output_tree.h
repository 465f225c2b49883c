#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "driver/machine/file_system.h"

namespace gcompile {

/// A directory tree that gcompile writes or has written. Nothing in it is reached through a symbolic link.
class OutputTree {
 public:
  /// `shown` is the path for messages.
  OutputTree(FileSystem& system, Descriptor root, std::string shown);

  const Descriptor& root() const { return root_; }
  const std::string& shown() const { return shown_; }

  bool is_empty() const;

  /// The files that the manifests (meta/*.json with "generator": "gcompile") list, and the manifests; nothing
  /// when there is none. A manifest with a path that is not an output path counts as foreign.
  std::optional<std::set<std::string>> listed_files() const;
  /// What the manifest at `path` lists, without itself.
  std::optional<std::set<std::string>> read_manifest(const std::string& path) const;

  /// Whether `path` is a regular file, all that gcompile ever writes.
  bool is_file(const std::string& path) const;
  bool is_directory(const std::string& path) const;

  /// Whether everything in the tree is listed: regular files, and the directories above listed files.
  bool holds_only(const std::set<std::string>& listed) const;

  /// Whether the regular file at `path` has these bytes and executable bit; if so, `modified` is its time.
  bool holds(const std::string& path, const OutputFile& file, struct timespec& modified) const;

  /// The paths of `files` at which, or above which, something stands that is not in `listed`.
  std::vector<std::string> foreign_in_the_way(const FileSet& files,
                                              const std::set<std::string>& listed) const;

  /// Creates the file and the directories above it. Throws when something is there.
  void write_file(const std::string& path, const OutputFile& file, const struct timespec* modified,
                  bool durable);

  /// fsync of the root and of every directory above one of `paths`. Throws.
  void sync_directories(const std::set<std::string>& paths);

  /// Writes the whole set, the manifest first, so that every file is listed before it exists. Files that
  /// `previous` (may be null) holds unchanged get their old modification time. Returns how many changed.
  /// Throws on any error and when interrupted, leaving the tree half-written.
  int write(const FileSet& files, const OutputTree* previous, bool durable);

  /// Deletes the listed files and the directories that this leaves empty. Returns what could not be deleted;
  /// then the manifests are among it, for as long as one is there, what is left is known as ours.
  std::set<std::string> remove_listed(const std::set<std::string>& listed);

  /// unlinkat(); true also when there is nothing, or the directory is not empty.
  bool remove(const std::string& path, int flags);

  /// The open directory above `path`, made if `create`; none, with errno, on failure.
  Descriptor open_parent(const std::string& path, bool create) const;

  /// Moves everything to the same place in `home`, where that place is free, except `ours`.
  /// Errors are skipped.
  void move_rest_to(OutputTree& home, const std::set<std::string>& ours);

 private:
  Descriptor open_directory(const std::string& path, bool create) const;
  std::optional<std::string> read(const std::string& path) const;
  mode_t kind(const std::string& path) const;
  void write_bytes(int descriptor, const std::string& path, std::string_view bytes);
  bool holds_only(const std::string& directory, const std::set<std::string>& listed,
                  const std::set<std::string>& directories) const;
  void merge(int from, int to, const std::string& prefix, const std::set<std::string>& ours);
  std::string shown_path(const std::string& path) const { return shown_ + "/" + path; }

  FileSystem& system_;
  Descriptor root_;
  std::string shown_;
};

/// The directories above `path`, outermost first: "a", "a/b" for "a/b/c".
std::vector<std::string> directories_above(const std::string& path);
std::set<std::string> paths_of(const FileSet& files);
std::set<std::string> directories_of(const std::set<std::string>& paths);

/// The part of `path` after the last slash.
std::string last_part(const std::string& path);

/// The name, at the top of a tree being written, of its manifest until that is complete.
inline constexpr const char* kUnfinishedManifest = ".gcompile-manifest";

}  // namespace gcompile
