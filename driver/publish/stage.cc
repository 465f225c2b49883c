#include "driver/publish/stage.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/diagnostics.h"
#include "driver/machine/interrupt.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

constexpr const char* kStage = ".gcompile-stage";
constexpr const char* kJournal = "journal";
const std::string kNew = "new/";
const std::string kOld = "old/";
const std::string kMade = "made/";  // names a directory; nothing lies there

/// The turn in which a file changes: the header that says which texts are of its run first, and the sources
/// last, which ask it, so that nothing builds while some files are new and some old;
/// the manifest when all are.
enum Turn : int { kFiles, kOthers, kSources, kManifest };

int turn_of(const std::string& path, const std::string& manifest) {
  if (path == manifest) return kManifest;
  if (!path.starts_with("src/")) return kOthers;
  return path.ends_with("_files.h") ? kFiles : kSources;
}

}  // namespace

bool Stage::open(bool create) {
  const int root = target_.root().get();
  if (create && system_.mkdirat(root, kStage, 0777) != 0) {
    if (errno == EEXIST) {
      throw CompileError(ExitCode::kInputOutput,
                         fmt::format("'{}/{}' is in the way and not of gcompile's making",
                                     printable(target_.shown()), kStage));
    }
    throw_errno("create a directory in", target_.shown());
  }
  Descriptor opened(system_, system_.openat(root, kStage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
  if (!opened) {
    const int problem = errno;
    if (create) system_.unlinkat(root, kStage, AT_REMOVEDIR);
    errno = problem;
    if (create || problem != ENOENT) throw_errno("open", target_.shown() + "/" + kStage);
    return false;
  }
  stage_.emplace(system_, std::move(opened), target_.shown() + "/" + kStage);
  return true;
}

Stage::Publication Stage::plan(const FileSet& files, const std::set<std::string>& listed) const {
  Publication plan;
  for (const auto& [path, file] : files.files()) {
    struct timespec modified = {};
    const bool replaces = listed.count(path) > 0 && target_.is_file(path);
    if (replaces && target_.holds(path, file, modified)) continue;
    plan.arriving.insert(path);
    if (replaces) plan.leaving.insert(path);
  }
  for (const std::string& path : listed) {
    if (files.find(path) == nullptr && target_.is_file(path)) plan.leaving.insert(path);
  }
  for (const std::string& path : directories_of(plan.arriving)) {
    if (!target_.is_directory(path)) plan.made.insert(path);
  }
  return plan;
}

std::optional<Stage::Publication> Stage::read_plan(const std::string& name) const {
  const auto listed = stage_->read_manifest(name);
  if (!listed) return std::nullopt;
  Publication plan;
  for (const std::string& path : *listed) {
    if (path.starts_with(kNew)) plan.arriving.insert(path.substr(kNew.size()));
    if (path.starts_with(kOld)) plan.leaving.insert(path.substr(kOld.size()));
    if (path.starts_with(kMade)) plan.made.insert(path.substr(kMade.size()));
  }
  return plan;
}

void Stage::recover() {
  if (!open(false)) return;
  const std::optional<Publication> interrupted = read_plan(kJournal);
  if (interrupted) undo(*interrupted);
  clear(interrupted ? interrupted : read_plan(kUnfinishedManifest));
}

int Stage::publish(const FileSet& files, const std::set<std::string>& listed, bool durable) {
  const Publication plan = this->plan(files, listed);
  open(true);
  bool begun = false;
  try {
    write(plan, files, durable);
    throw_if_interrupted();
    rename_list(kUnfinishedManifest, kJournal);
    begun = true;
    if (durable) stage_->sync_directories({});
    commit(plan, files, listed);
    if (durable) target_.sync_directories(paths_of(files));
    rename_list(kJournal, kUnfinishedManifest);
  } catch (...) {
    try {
      if (begun) undo(plan);
      clear(plan);
    } catch (const std::exception&) {
      // The journal is still there: the next run undoes it.
    }
    throw;
  }
  clear(plan);
  return static_cast<int>(plan.arriving.size());
}

void Stage::write(const Publication& plan, const FileSet& files, bool durable) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::set<std::string> written;
  for (const std::string& path : plan.arriving) written.insert(kNew + path);
  std::set<std::string> all = written;
  for (const std::string& path : plan.leaving) all.insert(kOld + path);
  for (const std::string& path : plan.made) all.insert(kMade + path);
  for (const std::string& path : all) list.push_back({{"path", path}});
  const nlohmann::ordered_json text = {{"generator", "gcompile"}, {"files", std::move(list)}};
  stage_->write_file(kUnfinishedManifest, OutputFile{json_text(text)}, nullptr, durable);
  for (const std::string& path : plan.arriving) {
    stage_->write_file(kNew + path, *files.find(path), nullptr, durable);
  }
  if (durable) stage_->sync_directories(written);
}

void Stage::commit(const Publication& plan, const FileSet& files, const std::set<std::string>& listed) {
  const auto bring = [&](const std::string& path) {
    const bool replaces = plan.leaving.count(path) > 0;
    if (replaces) set_aside(path, true);
    bring_in(path, replaces);
  };
  std::set<std::string> brought;
  for (const std::string& path : plan.arriving) {
    if (turn_of(path, files.manifest_path()) != kFiles || plan.leaving.count(path) == 0) continue;
    bring(path);
    brought.insert(path);
  }
  // Then what goes: a directory of old files may give way to a file, and the other way round.
  for (const std::string& path : plan.leaving) {
    if (plan.arriving.count(path) == 0) set_aside(path, false);
  }
  const std::set<std::string> wanted = directories_of(paths_of(files));
  const std::set<std::string> held = directories_of(listed);
  for (auto path = held.rbegin(); path != held.rend(); ++path) {
    if (wanted.count(*path) == 0 && !target_.remove(*path, AT_REMOVEDIR)) {
      throw_errno("delete", target_.shown() + "/" + *path);
    }
  }
  for (int now = kFiles; now <= kManifest; ++now) {
    for (const std::string& path : plan.arriving) {
      if (turn_of(path, files.manifest_path()) == now && brought.count(path) == 0) bring(path);
    }
  }
}

void Stage::set_aside(const std::string& path, bool keep_in_place) {
  const Descriptor from = target_.open_parent(path, false);
  const Descriptor to = stage_->open_parent(kOld + path, true);
  const std::string name = last_part(path);
  if (!from || !to) throw_errno("replace", target_.shown() + "/" + path);
  if (keep_in_place && system_.linkat(from.get(), name.c_str(), to.get(), name.c_str()) == 0) return;
  // Where the file system has no hard links, the file is missing between two renames.
  if (system_.renameat2(from.get(), name.c_str(), to.get(), name.c_str(), 0) != 0) {
    throw_errno("replace", target_.shown() + "/" + path);
  }
}

void Stage::bring_in(const std::string& path, bool replaces) {
  const Descriptor from = stage_->open_parent(kNew + path, false);
  const Descriptor to = target_.open_parent(path, true);
  const std::string name = last_part(path);
  const bool moved = from && to &&
                     (replaces ? system_.renameat2(from.get(), name.c_str(), to.get(), name.c_str(), 0) == 0
                               : rename_to_free_place(system_, from.get(), name, to.get(), name) == 0);
  if (!moved) throw_errno("create", target_.shown() + "/" + path);
}

/// Idempotent: it may be interrupted as well. A path that arrives and replaces nothing is ours in the target
/// exactly when it is gone from the stage.
void Stage::undo(const Publication& plan) {
  for (const int now : {kSources, kOthers, kManifest, kFiles}) undo(plan, now);
  // What is deleted from the stage from now on must not look as if it had arrived.
  rename_list(kJournal, kUnfinishedManifest);
}

/// Takes back the files of one turn.
void Stage::undo(const Publication& plan, int turn) {
  const auto is_of_it = [&](const std::string& path) { return turn_of(path, "") == turn; };
  for (const std::string& path : plan.arriving) {
    if (!is_of_it(path) || plan.leaving.count(path) > 0 || stage_->is_file(kNew + path)) continue;
    if (!target_.remove(path, 0)) throw_errno("delete", target_.shown() + "/" + path);
  }
  for (auto path = plan.made.rbegin(); path != plan.made.rend(); ++path) target_.remove(*path, AT_REMOVEDIR);
  for (const std::string& path : plan.leaving) {
    if (!is_of_it(path) || !stage_->is_file(kOld + path)) continue;
    const Descriptor from = stage_->open_parent(kOld + path, false);
    const Descriptor to = target_.open_parent(path, true);
    const std::string name = last_part(path);
    // Nothing is overwritten but what this publication brought in.
    const bool back = from && to &&
                      (plan.arriving.count(path) > 0
                           ? system_.renameat2(from.get(), name.c_str(), to.get(), name.c_str(), 0) == 0
                           : rename_to_free_place(system_, from.get(), name, to.get(), name) == 0);
    if (!back && errno != EEXIST) throw_errno("restore", target_.shown() + "/" + path);
  }
}

/// Deletes what the plan lists, and the list last: as long as there is one, what is left is known as ours.
/// Errors are no reason to fail: the next run tries again.
void Stage::clear(const std::optional<Publication>& plan) {
  std::set<std::string> files;
  if (plan) {
    for (const std::string& path : plan->arriving) files.insert(kNew + path);
    for (const std::string& path : plan->leaving) files.insert(kOld + path);
  }
  bool all = true;
  for (const std::string& path : files) all = stage_->remove(path, 0) && all;
  const std::set<std::string> directories = directories_of(files);
  for (auto path = directories.rbegin(); path != directories.rend(); ++path) {
    all = stage_->remove(*path, AT_REMOVEDIR) && all;
  }
  is_cleared_ = all && stage_->remove(kUnfinishedManifest, 0) &&
                system_.unlinkat(target_.root().get(), kStage, AT_REMOVEDIR) == 0;
}

void Stage::rename_list(const char* from, const char* to) {
  const int root = stage_->root().get();
  if (system_.renameat2(root, from, root, to, 0) != 0) throw_errno("write", stage_->shown() + "/" + to);
}

}  // namespace gcompile
