#pragma once

#include <map>
#include <string>
#include <string_view>

#include "codegen/program/weights_file.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

struct OutputFile {
  SharedBytes bytes;
  bool executable = false;

  bool operator==(const OutputFile&) const = default;
};

/// Whether `path` may name a file of an output: relative, parts of [A-Za-z0-9_.-] between single slashes,
/// none of them "." or "..", none longer than 255 bytes, 1024 in all.
bool is_output_path(std::string_view path);

/// The files of one output, by path: what code generation hands to the driver.
class FileSet {
 public:
  /// Throws an internal CompileError for a bad path, one that is taken, or one that would need a file to
  /// be a directory as well.
  void add(std::string path, SharedBytes bytes, bool executable = false);

  /// Adds the manifest meta/NAME.json: the members of `content` after "generator": "gcompile", and before
  /// "files", which lists path, size in bytes and SHA-256 of all files so far (the manifest itself has no
  /// digest). By it a later run knows the directory as ours, and which files in it.
  /// Must be the last file added.
  void add_manifest(const std::string& name, const nlohmann::ordered_json& content);

  /// The path of the manifest, empty before add_manifest().
  const std::string& manifest_path() const { return manifest_path_; }
  const OutputFile* find(const std::string& path) const;
  const std::map<std::string, OutputFile>& files() const { return files_; }

 private:
  std::map<std::string, OutputFile> files_;
  std::string manifest_path_;
};

}  // namespace gcompile
