#pragma once

#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "driver/machine/file_system.h"

namespace gcompile {

struct PublishOptions {
  /// Also publish into a directory that holds files but no manifest of ours.
  bool force = false;
  /// fsync everything before it becomes visible, so that a power failure cannot leave empty files.
  bool durable = true;
};

struct PublishResult {
  int changed = 0;    ///< files written that were not there with the same bytes before
  int unchanged = 0;  ///< files that were; they keep their modification time
  std::vector<std::string> warnings;
};

/// Makes `directory` hold `files` (which has a manifest), and no other file of ours. A file is ours when a
/// manifest lists it and it is a regular file; no other is ever deleted, overwritten, moved or out of sight,
/// at no instant, `force` or not.
///
/// A directory that is new, or holds nothing but files of ours, changes all at once: whoever looks sees the
/// old tree or the new one, also after a crash, an error or a kill at any moment.
///
///     write .NAME.gcompile-PID-N beside NAME -> fsync -> rename into place; exchange with the old tree
///     -> delete the old tree
///
/// A directory that holds other things as well, that a symbolic link leads to, that is a mount point or
/// belongs to someone else, and the working directory stay the directory they are; in them each file changes
/// by itself (Stage). After a kill some are new and some old, until the next run.
///
/// Missing parent directories are made. When nothing changes, nothing is touched. A directory that holds
/// files but no manifest of ours is refused unless `force`; a file that is not ours and stands in the way is
/// an error, and so are folders of the system and the home folder (is_protected_folder). What dead processes
/// left is cleared up first. Two processes at once: each output is whole, the last one stays.
///
/// Throws CompileError: ExitCode::kInputOutput, or kInterrupted when a signal came
/// (driver/machine/interrupt.h); the old tree is then in place and nothing is left beside it.
PublishResult publish(const FileSet& files, const std::string& directory, const PublishOptions& options = {},
                      FileSystem& system = FileSystem::real());

/// Throws what publish() would throw before it writes, as far as that shows now: a folder of the system, one
/// that gcompile did not make, a parent that cannot be made. Changes nothing.
void expect_publishable(const std::string& directory, const PublishOptions& options = {});

}  // namespace gcompile
