#pragma once

#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "driver/file_system.h"

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

/// Makes `directory` hold exactly `files` (which has a manifest), all at once: whoever looks sees the old
/// tree or the new one, also after a crash, an error or a kill at any moment.
///
///     write .NAME.gcompile-PID-N beside NAME -> fsync -> rename into place; exchange with the old tree
///     -> delete what the old manifest lists -> move what it does not list into the new tree
///
/// Missing parent directories are made. When nothing changes, nothing is touched. A directory that holds
/// files but no manifest of ours is refused unless `force`; files that no manifest lists are never deleted
/// nor overwritten, `force` or not: one that stands in the way is an error. What dead processes left beside
/// `directory` is cleared up first. Two processes at once: each output is whole, the last one stays.
///
/// Throws ir::CompileError: ExitCode::kInputOutput, or kInterrupted when a signal came (driver/interrupt.h);
/// the old tree is then in place and nothing is left beside it.
PublishResult publish(const FileSet& files, const std::string& directory, const PublishOptions& options = {},
                      FileSystem& system = FileSystem::real());

}  // namespace gcompile
