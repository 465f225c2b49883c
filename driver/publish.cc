#include "driver/publish.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "driver/interrupt.h"
#include "driver/output_tree.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

constexpr int kMaxAttempts = 100;
constexpr std::size_t kMaxNamesShown = 5;
constexpr const char* kAsideSuffix = "-old";

[[noreturn]] void refuse(const std::string& message) {
  throw ir::CompileError(ir::ExitCode::kInputOutput, message);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamesShown); ++i) {
    text += (i > 0 ? ", '" : "'") + ir::printable(names[i]) + "'";
  }
  if (names.size() > kMaxNamesShown) text += fmt::format(" and {} more", names.size() - kMaxNamesShown);
  return text;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Where the output goes: a name in an open directory.
struct Place {
  Descriptor parent;
  std::string parent_path;
  std::string name;
  std::string shown;
};

class Publisher {
 public:
  Publisher(const FileSet& files, const std::string& directory, const PublishOptions& options,
            FileSystem& system)
      : files_(files), options_(options), system_(system) {
    GC_CHECK(!files.manifest_path().empty());
    place_.shown = directory;
  }

  PublishResult run() {
    try {
      throw_if_interrupted();
      locate();
      clear_leftovers();
      for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
        if (attempt_once()) return std::move(result_);
      }
      refuse(
          fmt::format("cannot publish '{}': it keeps being changed by others", ir::printable(place_.shown)));
    } catch (...) {
      remove_made_parents();
      throw;
    }
  }

 private:
  // ---- Finding the place ----

  void locate() {
    std::string path = place_.shown;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path.empty() || path.size() >= PATH_MAX || path.find('\0') != std::string::npos) {
      refuse("the output directory needs a name");
    }
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    if (resolved) {
      path = resolved.get();
      refuse_working_directory(path);
    } else if (errno != ENOENT) {
      throw_errno("open", place_.shown);
    }
    const std::size_t slash = path.rfind('/');
    place_.name = path.substr(slash == std::string::npos ? 0 : slash + 1);
    place_.parent_path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    if (place_.name.empty() || place_.name == "." || place_.name == "..") {
      refuse(fmt::format("cannot replace '{}' as a whole; name a directory below it",
                         ir::printable(place_.shown)));
    }
    make_parents();
    place_.parent =
        Descriptor(system_, system_.openat(AT_FDCWD, place_.parent_path.c_str(), O_RDONLY | O_DIRECTORY, 0));
    if (!place_.parent) throw_errno("open", place_.parent_path);
  }

  /// A shell that stands in the directory would find itself in the deleted old one.
  void refuse_working_directory(const std::string& path) const {
    const std::unique_ptr<char, decltype(&std::free)> here(::realpath(".", nullptr), &std::free);
    if (here && path == here.get()) {
      refuse("cannot publish into the working directory; name a directory below it");
    }
  }

  void make_parents() {
    const std::string& path = place_.parent_path;
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string part = path.substr(0, end);
      if (system_.mkdirat(AT_FDCWD, part.c_str(), 0777) == 0) {
        made_parents_.push_back(part);
      } else if (errno != EEXIST) {
        const int problem = errno;
        // On a read-only file system mkdir() may complain before it looks.
        struct stat status = {};
        if (system_.fstatat(AT_FDCWD, part.c_str(), &status, 0) != 0 || !S_ISDIR(status.st_mode)) {
          errno = problem;
          throw_errno("create directory", part);
        }
      }
      if (end == std::string::npos) break;
    }
  }

  void remove_made_parents() {
    for (auto part = made_parents_.rbegin(); part != made_parents_.rend(); ++part) {
      system_.unlinkat(AT_FDCWD, part->c_str(), AT_REMOVEDIR);
    }
  }

  // ---- What dead processes left ----

  std::string temporary_prefix() const { return "." + place_.name + ".gcompile-"; }

  /// Whether `name` is PREFIX DIGITS - DIGITS, and then perhaps "-old", which sets `aside`.
  bool is_leftover(std::string_view name, bool& aside) const {
    const std::string prefix = temporary_prefix();
    if (name.substr(0, prefix.size()) != prefix) return false;
    name.remove_prefix(prefix.size());
    const std::string_view suffix = kAsideSuffix;
    aside = name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
    if (aside) name.remove_suffix(suffix.size());
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
      bool aside = false;
      if (!is_leftover(name, aside)) continue;
      OutputTree leftover(system_, open_child(name), place_.parent_path + "/" + name);
      if (!leftover.root() || system_.flock(leftover.root().get(), LOCK_EX | LOCK_NB) != 0) continue;
      // Killed between the two renames that stand in for an exchange: the old tree goes back.
      const bool restored = aside && rename_to_free_place(system_, place_.parent.get(), name,
                                                          place_.parent.get(), place_.name) == 0;
      if (restored) continue;
      OutputTree home(system_, open_child(place_.name), place_.shown);
      try {
        retire(leftover, leftover.listed_files(), name, home.root() ? &home : nullptr);
      } catch (const ir::CompileError& problem) {
        result_.warnings.push_back(problem.diagnostics().front().message);
      }
    }
  }

  Descriptor open_child(const std::string& name) {
    return Descriptor(
        system_, system_.openat(place_.parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
  }

  using Listed = std::optional<std::set<std::string>>;

  /// Deletes the listed files of a tree that is no longer in place and moves the others `home`.
  void retire(OutputTree& tree, const Listed& listed, const std::string& name, OutputTree* home) {
    const auto left = tree.remove_listed(listed.value_or(std::set<std::string>()));
    if (home != nullptr) tree.move_rest_to(*home, left);
    if (system_.unlinkat(place_.parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      result_.warnings.push_back(fmt::format("files that could not be deleted or moved are left in '{}'",
                                             ir::printable(place_.parent_path + "/" + name)));
    }
  }

  // ---- Publishing ----

  /// False when someone else came between, so that all has to be looked at again.
  bool attempt_once() {
    std::optional<OutputTree> old = open_old();
    if (old && check_old(*old)) return true;

    std::string name;
    std::optional<OutputTree> fresh = make_temporary(name);
    bool in_place = false;
    try {
      result_.changed = fresh->write(files_, old ? &*old : nullptr, options_.durable);
      result_.unchanged = static_cast<int>(files_.files().size()) - result_.changed;
      if (old) copy_mode(*old, *fresh);
      throw_if_interrupted();
      in_place = old ? exchange(name) : move_in(name);
    } catch (...) {
      discard(*fresh, name);
      throw;
    }
    if (!in_place) {
      discard(*fresh, name);
      return false;
    }
    // From here on the output is published, whatever happens.
    if (options_.durable) system_.fsync(place_.parent.get());
    if (old) retire(*old, old_listed_, old_name_.value_or(name), &*fresh);
    return true;
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
    if (!old_listed_ && !options_.force && !old.is_empty()) {
      refuse(fmt::format(
          "'{}' holds files and was not made by gcompile; choose another directory, or pass --force "
          "to add to it",
          ir::printable(place_.shown)));
    }
    const std::set<std::string> ours = old_listed_.value_or(std::set<std::string>());
    const auto foreign = old.foreign_in_the_way(files_, ours);
    if (!foreign.empty()) {
      refuse(fmt::format("'{}' holds files in the way that gcompile did not make: {}",
                         ir::printable(place_.shown), joined(foreign)));
    }
    if (ours.size() != files_.files().size()) return false;
    for (const auto& [path, file] : files_.files()) {
      struct timespec modified = {};
      if (ours.count(path) == 0 || !old.holds(path, file, modified)) return false;
    }
    result_.changed = 0;
    result_.unchanged = static_cast<int>(files_.files().size());
    return true;
  }

  std::optional<OutputTree> make_temporary(std::string& name) {
    for (int number = 0; number < kMaxAttempts; ++number) {
      name = fmt::format("{}{}-{}", temporary_prefix(), ::getpid(), number);
      if (system_.mkdirat(place_.parent.get(), name.c_str(), 0777) != 0) {
        if (errno == EEXIST) continue;
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
    refuse(fmt::format("cannot create a temporary directory in '{}'", ir::printable(place_.parent_path)));
  }

  void copy_mode(const OutputTree& old, const OutputTree& fresh) {
    struct stat status = {};
    if (system_.fstatat(old.root().get(), "", &status, AT_EMPTY_PATH) != 0 ||
        system_.fchmod(fresh.root().get(), status.st_mode & 07777) != 0) {
      throw_errno("set the mode of", fresh.shown());
    }
  }

  bool move_in(const std::string& name) {
    if (rename_to_free_place(system_, place_.parent.get(), name, place_.parent.get(), place_.name) == 0)
      return true;
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
    throw_errno("create", place_.shown);
  }

  bool exchange(const std::string& name) {
    const int parent = place_.parent.get();
    if (system_.renameat2(parent, name.c_str(), parent, place_.name.c_str(), RENAME_EXCHANGE) == 0)
      return true;
    if (errno == ENOENT) return false;
    if (errno == EBUSY || errno == EXDEV) {
      refuse(fmt::format("cannot replace '{}', a mount point; name a directory below it",
                         ir::printable(place_.shown)));
    }
    if (errno != EINVAL && errno != ENOSYS) throw_errno("replace", place_.shown);

    const std::string aside = name + kAsideSuffix;
    if (rename_to_free_place(system_, parent, place_.name, parent, aside) != 0)
      throw_errno("replace", place_.shown);
    if (rename_to_free_place(system_, parent, name, parent, place_.name) != 0) {
      const int problem = errno;
      rename_to_free_place(system_, parent, aside, parent, place_.name);
      errno = problem;
      throw_errno("replace", place_.shown);
    }
    old_name_ = aside;
    return true;
  }

  void discard(OutputTree& fresh, const std::string& name) {
    std::set<std::string> listed;
    for (const auto& [path, file] : files_.files()) listed.insert(path);
    fresh.remove_listed(listed);
    system_.unlinkat(place_.parent.get(), name.c_str(), AT_REMOVEDIR);
  }

  const FileSet& files_;
  const PublishOptions& options_;
  FileSystem& system_;
  Place place_;
  std::vector<std::string> made_parents_;
  Listed old_listed_;                    ///< what the manifest of the old tree lists
  std::optional<std::string> old_name_;  ///< where the old tree went, when not to the temporary name
  PublishResult result_;
};

}  // namespace

PublishResult publish(const FileSet& files, const std::string& directory, const PublishOptions& options,
                      FileSystem& system) {
  return Publisher(files, directory, options, system).run();
}

}  // namespace gcompile
