#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "driver/file_system.h"

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

  /// Whether the regular file at `path` has these bytes and executable bit; if so, `modified` is its time.
  bool holds(const std::string& path, const OutputFile& file, struct timespec& modified) const;

  /// The paths of `files` at which, or above which, something stands that is not in `listed`.
  std::vector<std::string> foreign_in_the_way(const FileSet& files,
                                              const std::set<std::string>& listed) const;

  /// Writes the whole set, the manifest first, so that every file is listed before it exists. Files that
  /// `previous` (may be null) holds unchanged get their old modification time. Returns how many changed.
  /// Throws on any error and when interrupted, leaving the tree half-written.
  int write(const FileSet& files, const OutputTree* previous, bool durable);

  /// Deletes the listed files and the directories that this leaves empty. Returns what could not be deleted;
  /// then the manifests are among it, for as long as one is there, what is left is known as ours.
  std::set<std::string> remove_listed(const std::set<std::string>& listed);

  /// Moves everything to the same place in `home`, where that place is free, except `ours`. Errors are
  /// skipped.
  void move_rest_to(OutputTree& home, const std::set<std::string>& ours);

 private:
  Descriptor open_directory(const std::string& path, bool create) const;
  Descriptor open_parent(const std::string& path, bool create) const;
  std::optional<std::string> read(const std::string& path) const;
  std::optional<std::set<std::string>> read_manifest(const std::string& path) const;
  void write_file(const std::string& path, const OutputFile& file, const struct timespec* modified,
                  bool durable);
  void write_bytes(int descriptor, const std::string& path, const std::string& bytes);
  void sync_directories(const FileSet& files);
  bool holds_only(const std::string& directory, const std::set<std::string>& listed) const;
  bool remove(const std::string& path, int flags);
  void merge(int from, int to, const std::string& prefix, const std::set<std::string>& ours);
  std::string shown_path(const std::string& path) const { return shown_ + "/" + path; }

  FileSystem& system_;
  Descriptor root_;
  std::string shown_;
};

/// The name, at the top of a tree being written, of its manifest until that is complete.
inline constexpr const char* kUnfinishedManifest = ".gcompile-manifest";

}  // namespace gcompile
