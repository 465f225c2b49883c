#include "driver/publish/publish.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/diagnostics.h"
#include "driver/machine/interrupt.h"
#include "driver/publish/output_place.h"
#include "driver/publish/output_tree.h"
#include "driver/publish/overwritten.h"
#include "driver/publish/stage.h"

namespace gcompile {
namespace {

constexpr int kMaxAttempts = 100;
constexpr std::size_t kMaxNamesShown = 5;

[[noreturn]] void refuse(const std::string& message, const std::string& help = {}) {
  throw CompileError(ExitCode::kInputOutput, message, help);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamesShown); ++i) {
    text += (i > 0 ? ", '" : "'") + printable(names[i]) + "'";
  }
  if (names.size() > kMaxNamesShown) text += fmt::format(" and {} more", names.size() - kMaxNamesShown);
  return text;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

using Listed = std::optional<std::set<std::string>>;

void refuse_foreign(const OutputTree& old, const Listed& listed, const PublishOptions& options,
                    const std::string& shown) {
  if (listed || options.force || old.is_empty()) return;
  refuse(fmt::format("'{}' holds files and was not made by gcompile", printable(shown)),
         "choose another folder; --force adds the project to this one and touches no file of yours");
}

class Publisher {
 public:
  Publisher(const FileSet& files, const std::string& directory, const PublishOptions& options,
            FileSystem& system)
      : files_(files), directory_(directory), options_(options), system_(system) {
    GC_CHECK(!files.manifest_path().empty());
  }

  PublishResult run() {
    try {
      throw_if_interrupted();
      locate_output(directory_, system_, place_);
      clear_leftovers();
      for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
        if (attempt_once()) return std::move(result_);
      }
      refuse(fmt::format("cannot publish '{}': it keeps being changed by others", printable(place_.shown)));
    } catch (...) {
      for (auto part = place_.made_parents.rbegin(); part != place_.made_parents.rend(); ++part) {
        system_.unlinkat(AT_FDCWD, part->c_str(), AT_REMOVEDIR);
      }
      throw;
    }
  }

 private:
  // ---- What dead processes left ----

  std::string temporary_prefix() const { return "." + place_.name + ".gcompile-"; }

  /// Whether `name` is PREFIX DIGITS - DIGITS.
  bool is_leftover(std::string_view name) const {
    const std::string prefix = temporary_prefix();
    if (name.substr(0, prefix.size()) != prefix) return false;
    name.remove_prefix(prefix.size());
    const std::size_t dash = name.find('-');
    const auto is_number = [](std::string_view text) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    return dash != std::string_view::npos && is_number(name.substr(0, dash)) &&
           is_number(name.substr(dash + 1));
  }

  /// A directory is locked by its publisher as long as that lives; one that can be locked is a leftover.
  /// Errors here are no reason to fail: the next run tries again.
  void clear_leftovers() {
    const auto names = system_.list(place_.parent.get());
    if (!names) return;
    for (const std::string& name : *names) {
      if (!is_leftover(name)) continue;
      OutputTree leftover(system_, open_child(name), place_.parent_path + "/" + name);
      if (!leftover.root() || system_.flock(leftover.root().get(), LOCK_EX | LOCK_NB) != 0) continue;
      OutputTree home(system_, open_child(place_.name), place_.shown);
      try {
        retire(leftover, leftover.listed_files(), name, home.root() ? &home : nullptr);
      } catch (const CompileError& problem) {
        result_.warnings.push_back(problem.diagnostics().front().message);
      }
    }
  }

  Descriptor open_child(const std::string& name) {
    return Descriptor(
        system_, system_.openat(place_.parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
  }

  /// Deletes the listed files of a tree that is no longer in place and moves the others `home`.
  void retire(OutputTree& tree, const Listed& listed, const std::string& name, OutputTree* home) {
    const auto left = tree.remove_listed(listed.value_or(std::set<std::string>()));
    if (home != nullptr) tree.move_rest_to(*home, left);
    if (system_.unlinkat(place_.parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      result_.warnings.push_back(fmt::format("files that could not be deleted or moved are left in '{}'",
                                             printable(place_.parent_path + "/" + name)));
    }
  }

  // ---- Publishing ----

  enum class Outcome { kPublished, kOvertaken, kMustStay };

  /// False when someone else came between, so that all has to be looked at again.
  bool attempt_once() {
    std::optional<OutputTree> old = open_old();
    if (old) Stage(system_, *old).recover();
    if (old && check_old(*old)) return true;
    const Outcome outcome = old && must_stay(*old) ? Outcome::kMustStay : replace_whole(old);
    if (outcome == Outcome::kMustStay) publish_in_place(*old);
    return outcome != Outcome::kOvertaken;
  }

  /// What is not ours is never moved, not for an instant: beside it, files are replaced one by one. Neither
  /// does a folder move that a link, a mount or a process holds on to.
  bool must_stay(const OutputTree& old) const {
    struct stat inside = {};
    struct stat above = {};
    if (system_.fstatat(old.root().get(), "", &inside, AT_EMPTY_PATH) != 0 ||
        system_.fstatat(place_.parent.get(), "", &above, AT_EMPTY_PATH) != 0) {
      throw_errno("examine", place_.shown);
    }
    return place_.stays || inside.st_dev != above.st_dev || !old.holds_only(ours());
  }

  void publish_in_place(OutputTree& old) {
    Stage stage(system_, old);
    result_.changed = stage.publish(files_, ours(), options_.durable);
    result_.unchanged = static_cast<int>(files_.files().size()) - result_.changed;
    if (!stage.is_cleared()) {
      result_.warnings.push_back(fmt::format("temporary files are left in '{}'; the next run deletes them",
                                             printable(place_.shown)));
    }
  }

  /// Writes the output beside its place and puts it there as a whole; kMustStay when the old one cannot be
  /// moved, or its owner would change.
  Outcome replace_whole(std::optional<OutputTree>& old) {
    std::string name;
    std::optional<OutputTree> fresh = make_temporary(name, old.has_value());
    if (!fresh) return Outcome::kMustStay;
    Outcome outcome = Outcome::kMustStay;
    try {
      if (!old || copy_mode(*old, *fresh)) {
        result_.changed = fresh->write(files_, old ? &*old : nullptr, options_.durable);
        result_.unchanged = static_cast<int>(files_.files().size()) - result_.changed;
        throw_if_interrupted();
        outcome = old ? exchange(name) : move_in(name);
      }
    } catch (...) {
      discard(*fresh, name);
      throw;
    }
    if (outcome != Outcome::kPublished) {
      discard(*fresh, name);
      return outcome;
    }
    // From here on the output is published, whatever happens.
    if (options_.durable) system_.fsync(place_.parent.get());
    if (old) retire(*old, old_listed_, name, &*fresh);
    return outcome;
  }

  /// The directory that is in place, locked against other publishers; nothing when there is none.
  std::optional<OutputTree> open_old() {
    while (true) {
      throw_if_interrupted();
      Descriptor root = open_child(place_.name);
      if (!root && errno == ENOENT) return std::nullopt;
      if (!root) throw_errno("open directory", place_.shown);
      // File systems without locks give up mutual exclusion and clearing up, nothing else.
      if (system_.flock(root.get(), LOCK_EX) != 0 && errno == EINTR) continue;
      struct stat opened = {};
      struct stat named = {};
      if (system_.fstatat(root.get(), "", &opened, AT_EMPTY_PATH) != 0) throw_errno("examine", place_.shown);
      const int found =
          system_.fstatat(place_.parent.get(), place_.name.c_str(), &named, AT_SYMLINK_NOFOLLOW);
      if (found != 0 && errno != ENOENT) throw_errno("examine", place_.shown);
      if (found == 0 && same_file(opened, named)) return OutputTree(system_, std::move(root), place_.shown);
    }
  }

  /// Throws if `old` may not be replaced. True if it already is what is wanted.
  bool check_old(const OutputTree& old) {
    old_listed_ = old.listed_files();
    refuse_foreign(old, old_listed_, options_, place_.shown);
    const auto foreign = old.foreign_in_the_way(files_, ours());
    if (!foreign.empty()) {
      refuse(fmt::format("'{}' holds files in the way that gcompile did not make: {}",
                         printable(place_.shown), joined(foreign)));
    }
    if (ours().size() != files_.files().size()) return false;
    for (const auto& [path, file] : files_.files()) {
      struct timespec modified = {};
      if (ours().count(path) == 0 || !old.holds(path, file, modified)) return false;
    }
    result_.changed = 0;
    result_.unchanged = static_cast<int>(files_.files().size());
    return true;
  }

  /// Nothing when `may_fail` and nothing may be created beside the place.
  std::optional<OutputTree> make_temporary(std::string& name, bool may_fail) {
    for (int number = 0; number < kMaxAttempts; ++number) {
      name = fmt::format("{}{}-{}", temporary_prefix(), ::getpid(), number);
      if (system_.mkdirat(place_.parent.get(), name.c_str(), 0777) != 0) {
        if (errno == EEXIST) continue;
        if (may_fail && (errno == EACCES || errno == EPERM || errno == EROFS)) return std::nullopt;
        throw_errno("create a directory in", place_.parent_path);
      }
      Descriptor root = open_child(name);
      struct stat status = {};
      if (!root || system_.fstatat(root.get(), "", &status, AT_EMPTY_PATH) != 0) {
        const int problem = errno;
        system_.unlinkat(place_.parent.get(), name.c_str(), AT_REMOVEDIR);
        // Someone who clears up may have found it before it was locked.
        if (problem == ENOENT) continue;
        errno = problem;
        throw_errno("open", place_.parent_path + "/" + name);
      }
      if (system_.flock(root.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
      struct stat named = {};
      if (system_.fstatat(place_.parent.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (same_file(status, named))
        return OutputTree(system_, std::move(root), place_.parent_path + "/" + name);
    }
    refuse(fmt::format("cannot create a temporary directory in '{}'", printable(place_.parent_path)));
  }

  /// False when the owners differ.
  bool copy_mode(const OutputTree& old, const OutputTree& fresh) {
    struct stat status = {};
    struct stat made = {};
    if (system_.fstatat(old.root().get(), "", &status, AT_EMPTY_PATH) != 0 ||
        system_.fstatat(fresh.root().get(), "", &made, AT_EMPTY_PATH) != 0) {
      throw_errno("examine", fresh.shown());
    }
    if (status.st_uid != made.st_uid || status.st_gid != made.st_gid) return false;
    if (system_.fchmod(fresh.root().get(), status.st_mode & 07777) != 0) {
      throw_errno("set the mode of", fresh.shown());
    }
    return true;
  }

  Outcome move_in(const std::string& name) {
    if (rename_to_free_place(system_, place_.parent.get(), name, place_.parent.get(), place_.name) == 0)
      return Outcome::kPublished;
    if (errno == EEXIST || errno == ENOTEMPTY) return Outcome::kOvertaken;
    throw_errno("create", place_.shown);
  }

  Outcome exchange(const std::string& name) {
    const int parent = place_.parent.get();
    if (system_.renameat2(parent, name.c_str(), parent, place_.name.c_str(), RENAME_EXCHANGE) == 0)
      return Outcome::kPublished;
    if (errno == ENOENT) return Outcome::kOvertaken;
    // A mount point, or a file system that cannot exchange.
    if (errno == EBUSY || errno == EXDEV || errno == EINVAL || errno == ENOSYS) return Outcome::kMustStay;
    throw_errno("replace", place_.shown);
  }

  void discard(OutputTree& fresh, const std::string& name) {
    fresh.remove_listed(paths_of(files_));
    system_.unlinkat(place_.parent.get(), name.c_str(), AT_REMOVEDIR);
  }

  const std::set<std::string>& ours() const {
    static const std::set<std::string> kNone;
    return old_listed_ ? *old_listed_ : kNone;
  }

  const FileSet& files_;
  const std::string& directory_;
  const PublishOptions& options_;
  FileSystem& system_;
  OutputPlace place_;
  Listed old_listed_;  ///< what the manifests of the old tree list
  PublishResult result_;
};

}  // namespace

void expect_publishable(const std::string& directory, const PublishOptions& options) {
  FileSystem& system = FileSystem::real();
  if (!examine_output(directory)) return;
  OutputTree old(system,
                 Descriptor(system, system.openat(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY, 0)),
                 directory);
  if (!old.root()) throw_errno("open directory", directory);
  refuse_foreign(old, old.listed_files(), options, directory);
}

PublishResult publish(const FileSet& files, const std::string& directory, const PublishOptions& options,
                      FileSystem& system) {
  std::vector<std::string> told = told_before_overwriting(files, directory);
  PublishResult result = Publisher(files, directory, options, system).run();
  result.warnings.insert(result.warnings.begin(), told.begin(), told.end());
  return result;
}

}  // namespace gcompile
