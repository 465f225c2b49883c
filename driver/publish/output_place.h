#pragma once

#include <string>
#include <vector>

#include "driver/machine/file_system.h"

namespace gcompile {

/// Where an output goes: a name in an open directory.
struct OutputPlace {
  Descriptor parent;
  std::string parent_path;
  std::string name;
  std::string shown;  ///< as the user gave it
  /// The folder is reached by a symbolic link, or this process stands in it: it must stay the one it is.
  bool stays = false;
  std::vector<std::string> made_parents;  ///< directories above it that were missing, outermost first
};

/// Finds the place of `directory`, through symbolic links, and makes its missing parents; `place` is filled
/// as far as the search came. Throws CompileError(ExitCode::kInputOutput), also for an existing folder
/// that is_protected_folder() names.
void locate_output(const std::string& directory, FileSystem& system, OutputPlace& place);

/// What locate_output() would throw, and leaves no directory behind. Returns whether there is a folder.
bool examine_output(const std::string& directory);

/// Whether no project may be mixed into the folder `path` (absolute, without links): the root, a folder of
/// the system (Filesystem Hierarchy Standard 3.0), or `home` and what lies above it.
bool is_protected_folder(const std::string& path, const std::string& home);

}  // namespace gcompile
