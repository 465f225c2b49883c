#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/publish/output_tree.h"

namespace gcompile {

/// Publication into a folder that stays the one it is: each file of ours is replaced by itself, and whatever
/// else is in the folder is never touched, moved or out of sight.
///
///     write what changes to OUT/.gcompile-stage/new/PATH, beside a list of it all -> fsync
///     -> rename the list to `journal`: from here on an interrupted publication is undone by the next one
///     -> for each file: link OUT/PATH to old/PATH, rename new/PATH to OUT/PATH, the manifest last;
///        one that is no longer wanted: rename OUT/PATH to old/PATH
///     -> rename `journal` back to the list: published -> delete the stage
///
/// The folder is locked by the caller. On an error, or a kill, between the renames of the journal, some files
/// are new and some are old; an error undoes that at once, else recover() does before anything else happens.
class Stage {
 public:
  /// `target` outlives the stage.
  Stage(FileSystem& system, OutputTree& target) : system_(system), target_(target) {}

  /// Undoes what an interrupted publication left half done and clears up after it. Throws when it cannot.
  void recover();

  /// Makes `target` hold `files`, and of the files that are `listed` as ours no others. Returns how many
  /// changed. Throws CompileError on any error and when interrupted; then all is as it was.
  int publish(const FileSet& files, const std::set<std::string>& listed, bool durable);

  /// False after a publication that could not delete its stage; the next one will.
  bool is_cleared() const { return is_cleared_; }

 private:
  /// What a publication is about to do, as the journal tells it.
  struct Publication {
    std::set<std::string> arriving;  ///< paths that are written
    std::set<std::string> leaving;   ///< paths whose old file goes, or is replaced
    std::set<std::string> made;      ///< directories that are missing
  };
  Publication plan(const FileSet& files, const std::set<std::string>& listed) const;
  std::optional<Publication> read_plan(const std::string& name) const;

  bool open(bool create);
  void write(const Publication& plan, const FileSet& files, bool durable);
  void commit(const Publication& plan, const FileSet& files, const std::set<std::string>& listed);
  void set_aside(const std::string& path, bool keep_in_place);
  void bring_in(const std::string& path, bool replaces);
  void undo(const Publication& plan);
  void undo(const Publication& plan, int turn);
  void clear(const std::optional<Publication>& plan);
  void rename_list(const char* from, const char* to);

  FileSystem& system_;
  OutputTree& target_;
  std::optional<OutputTree> stage_;
  bool is_cleared_ = true;
};

}  // namespace gcompile
