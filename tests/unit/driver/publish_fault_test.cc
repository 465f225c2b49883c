// publish() on disks that fail, with processes that die and processes that compete.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/diagnostics.h"
#include "driver/machine/interrupt.h"
#include "driver/publish/publish.h"
#include "gtest/gtest.h"
#include "tests/unit/driver/publish_fixture.h"

namespace gcompile {
namespace {

/// Lets the call number `fail_at` fail, or kills the process there.
class FaultySystem : public FileSystem {
 public:
  int fail_at = -1;
  int error = EIO;
  bool stays_broken = false;   ///< also all later calls
  bool kill = false;           ///< kill -9 in place of failing
  bool kill_after = false;     ///< ... after the call was made
  bool plain_renames = false;  ///< renameat2 knows no flags, as on some network file systems
  bool no_locks = false;
  bool no_links = false;              ///< no hard links, as on FAT
  std::size_t most_bytes = SIZE_MAX;  ///< short reads and writes
  int calls = 0;

  int openat(int d, const char* p, int f, mode_t m) override {
    return run([&] { return FileSystem::openat(d, p, f, m); });
  }
  int mkdirat(int d, const char* p, mode_t m) override {
    return run([&] { return FileSystem::mkdirat(d, p, m); });
  }
  int unlinkat(int d, const char* p, int f) override {
    return run([&] { return FileSystem::unlinkat(d, p, f); });
  }
  // Really syncing some thousand times would take minutes and show nothing: the machine stays up.
  int fsync(int) override {
    return run([] { return 0; });
  }
  int fchmod(int d, mode_t m) override {
    return run([&] { return FileSystem::fchmod(d, m); });
  }
  int futimens(int d, const struct timespec* t) override {
    return run([&] { return FileSystem::futimens(d, t); });
  }
  int fstatat(int d, const char* p, struct stat* s, int f) override {
    return run([&] { return FileSystem::fstatat(d, p, s, f); });
  }
  int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                unsigned flags) override {
    return run([&] {
      if (plain_renames && flags != 0) return errno = EINVAL, -1;
      return FileSystem::renameat2(from_directory, from, to_directory, to, flags);
    });
  }
  int linkat(int from_directory, const char* from, int to_directory, const char* to) override {
    return run([&] {
      if (no_links) return errno = EPERM, -1;
      return FileSystem::linkat(from_directory, from, to_directory, to);
    });
  }
  int flock(int d, int operation) override {
    return run([&] { return no_locks ? (errno = ENOTSUP, -1) : FileSystem::flock(d, operation); });
  }
  ssize_t read(int d, void* b, std::size_t n) override {
    return run([&] { return FileSystem::read(d, b, std::min(n, most_bytes)); });
  }
  ssize_t write(int d, const void* b, std::size_t n) override {
    return run([&] { return FileSystem::write(d, b, std::min(n, most_bytes)); });
  }
  int close(int d) override {
    const int closed = FileSystem::close(d);
    return run([&] { return closed; });
  }
  std::optional<std::vector<std::string>> list(int d) override {
    std::optional<std::vector<std::string>> names;
    run([&] { return (names = FileSystem::list(d)) ? 0 : -1; });
    return names;
  }

 private:
  template <typename Call>
  auto run(const Call& call) -> decltype(call()) {
    const int number = calls++;
    const bool hit = number == fail_at || (stays_broken && fail_at >= 0 && number > fail_at);
    if (hit && kill && !kill_after) ::raise(SIGKILL);
    if (hit && !kill) return errno = error, -1;
    const auto result = call();
    if (hit && kill) ::raise(SIGKILL);
    return result;
  }
};

/// What the fault tests start from and the kind of file system they run on.
struct Scenario {
  std::string name;
  bool has_old = false;
  bool has_foreign = false;
  bool plain_renames = false;
  bool no_locks = false;
  bool no_links = false;
  bool is_link = false;  ///< the target is a symbolic link to the folder

  /// The folder must stay the one it is.
  bool is_in_place() const { return has_foreign || is_link || (has_old && plain_renames); }
};

void PrintTo(const Scenario& scenario, std::ostream* stream) { *stream << scenario.name; }

class PublishFaults : public PublishFixture, public testing::WithParamInterface<Scenario> {
 protected:
  void prepare(FaultySystem& system) {
    start_again();
    if (GetParam().is_link) {
      fs::create_directory(base_ / "real");
      fs::create_directory_symlink("real", target_);
    }
    if (GetParam().has_old) publish(first_output(), target_, quick_);
    if (GetParam().has_foreign) {
      write_file(target_ / "build/net.o", "object");
      write_file(target_ / "src/notes.txt", "notes");
      fs::create_directories(target_ / "apps/mine");
    }
    if (fs::exists(target_)) folder_ = inode(target_);
    system.plain_renames = GetParam().plain_renames;
    system.no_locks = GetParam().no_locks;
    system.no_links = GetParam().no_links;
  }

  static ino_t inode(const fs::path& path) {
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_ino;
  }

  Snapshot with_foreign(Snapshot files) const {
    if (GetParam().has_foreign) {
      files["build/net.o"] = "object";
      files["src/notes.txt"] = "notes";
      files["apps/mine/"] = "";
    }
    return files;
  }
  Snapshot old_ours() const { return GetParam().has_old ? snapshot(first_output()) : Snapshot(); }
  Snapshot old_state() const { return with_foreign(old_ours()); }
  Snapshot new_state() const { return with_foreign(snapshot(second_output())); }

  /// What holds at every instant. Every file of the user is in its place, and so is a folder that has to
  /// stay; our files are the old ones or the new ones, all of them or, in a folder that stays,
  /// each by itself.
  void expect_no_harm(const std::string& when) const {
    Snapshot ours;
    for (const auto& [path, bytes] : snapshot(target_)) {
      if (path.find(".gcompile-stage") != 0) ours[path] = bytes;
    }
    for (const auto& [path, bytes] : with_foreign({})) {
      EXPECT_EQ(ours.count(path), 1u) << path << " is gone, " << when;
      EXPECT_EQ(ours[path], bytes) << when;
      ours.erase(path);
    }
    const Snapshot before = old_ours();
    const Snapshot after = snapshot(second_output());
    if (!GetParam().is_in_place()) {
      EXPECT_TRUE(ours == before || ours == after) << when;
      return;
    }
    EXPECT_EQ(inode(target_), folder_) << when;
    for (const auto& [path, bytes] : ours) {
      if (bytes.empty()) continue;  // a directory about to be filled
      const bool is_old = before.count(path) > 0 && before.at(path) == bytes;
      const bool is_new = after.count(path) > 0 && after.at(path) == bytes;
      EXPECT_TRUE(is_old || is_new) << path << ", " << when;
    }
    for (const Snapshot* all : {&before, &after}) expect_whole_if_it_builds(*all, ours, when);
    for (const auto& [path, bytes] : before) {
      const bool must_exist = after.count(path) > 0 && !GetParam().no_links;
      EXPECT_TRUE(!must_exist || ours.count(path) > 0) << path << " is missing, " << when;
    }
  }

  /// Sources ask the header which of them are of its run:
  /// where all are of one, so is everything, but for the manifest.
  static void expect_whole_if_it_builds(const Snapshot& all, const Snapshot& ours, const std::string& when) {
    const auto is_of_it = [&](const std::string& path) {
      const auto at = ours.find(path), of = all.find(path);
      return (at == ours.end()) == (of == all.end()) && (at == ours.end() || at->second == of->second);
    };
    for (const auto& [path, bytes] : all) {
      if (path.find("src/") == 0 && !is_of_it(path)) return;
    }
    for (const auto& [path, bytes] : all) {
      EXPECT_TRUE(path == "meta/net.json" || is_of_it(path)) << path << " is of another run, " << when;
    }
  }

  /// After any accident the next run ends well and clears up.
  void expect_recovery(const std::string& when) {
    publish(second_output(), target_, quick_);
    EXPECT_EQ(snapshot(target_), new_state()) << when;
    if (!GetParam().no_locks) {
      EXPECT_TRUE(leftovers().empty()) << when;
    }
  }

  int calls_of_a_clean_run() {
    FaultySystem system;
    prepare(system);
    publish(second_output(), target_, durable_, system);
    EXPECT_EQ(snapshot(target_), new_state());
    EXPECT_TRUE(leftovers().empty());
    return system.calls;
  }

  PublishOptions quick_{true, false};
  PublishOptions durable_{true, true};
  ino_t folder_ = 0;
};

/// Where an interrupted publication is undone by the next.
class PublishInPlaceFaults : public PublishFaults {};

TEST_P(PublishFaults, EveryCallMayFailOnce) {
  const int calls = calls_of_a_clean_run();
  ASSERT_GT(calls, 50);
  int errors = 0;
  for (int at = 0; at < calls; ++at) {
    const int reasons[] = {ENOSPC, EIO, EACCES, EROFS, EDQUOT};
    FaultySystem system;
    prepare(system);
    system.fail_at = at;
    system.error = reasons[at % 5];
    const std::string when = "call " + std::to_string(at);
    try {
      publish(second_output(), target_, durable_, system);
      EXPECT_EQ(snapshot(target_).count("run.sh"), 1u) << when;
    } catch (const CompileError& error) {
      ++errors;
      EXPECT_EQ(error.exit_code(), ExitCode::kInputOutput) << when;
      EXPECT_EQ(snapshot(target_), old_state()) << when;
      EXPECT_TRUE(leftovers().empty()) << when << ": " << testing::PrintToString(leftovers());
    }
    expect_no_harm(when);
    expect_recovery(when);
  }
  EXPECT_GT(errors, calls / 3);
}

TEST_P(PublishFaults, TheDiskMayBreakForGood) {
  const int calls = calls_of_a_clean_run();
  for (int at = 0; at < calls; ++at) {
    FaultySystem system;
    prepare(system);
    system.fail_at = at;
    system.stays_broken = true;
    const std::string when = "from call " + std::to_string(at);
    try {
      publish(second_output(), target_, durable_, system);
    } catch (const CompileError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kInputOutput) << when;
    }
    expect_no_harm(when);
    expect_recovery(when);
  }
}

TEST_P(PublishFaults, TheProcessMayBeKilledAtEveryCall) {
  const int calls = calls_of_a_clean_run();
  for (int at = 0; at < calls; ++at) {
    FaultySystem system;
    prepare(system);
    system.fail_at = at;
    system.kill = true;
    system.kill_after = at % 2 == 1;
    const std::string when = "killed at call " + std::to_string(at);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      publish(second_output(), target_, quick_, system);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    expect_no_harm(when);
    expect_recovery(when);
  }
}

TEST_P(PublishInPlaceFaults, TheNextRunMayBeKilledAsWell) {
  const int calls = calls_of_a_clean_run();
  const auto killed_at = [&](int at) {
    const pid_t child = ::fork();
    if (child == 0) {
      FaultySystem system;
      system.plain_renames = GetParam().plain_renames;
      system.no_links = GetParam().no_links;
      system.fail_at = at;
      system.kill = true;
      publish(second_output(), target_, quick_, system);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
  };
  for (int at = 0; at < calls; at += 13) {
    for (int again = at % 17; again < calls; again += 17) {
      FaultySystem system;
      prepare(system);
      killed_at(at);
      killed_at(again);
      const std::string when = "killed at call " + std::to_string(at) + ", then at " + std::to_string(again);
      expect_no_harm(when);
      expect_recovery(when);
    }
  }
}

TEST_P(PublishFaults, ShortReadsAndWritesAreCompleted) {
  FaultySystem system;
  prepare(system);
  system.most_bytes = 3;
  publish(second_output(), target_, durable_, system);
  EXPECT_EQ(snapshot(target_), new_state());
}

std::string name_of(const testing::TestParamInfo<Scenario>& info) { return info.param.name; }

const Scenario kBesideForeign = {.name = "beside_foreign", .has_old = true, .has_foreign = true};
const Scenario kForced = {.name = "forced", .has_foreign = true};
const Scenario kLink = {.name = "link", .has_old = true, .is_link = true};
const Scenario kNoLinks = {.name = "no_links", .has_old = true, .has_foreign = true, .no_links = true};

INSTANTIATE_TEST_SUITE_P(
    Scenarios, PublishFaults,
    testing::Values(
        Scenario{.name = "first"}, Scenario{.name = "replace", .has_old = true}, kBesideForeign, kForced,
        kLink, kNoLinks, Scenario{.name = "plain_first", .plain_renames = true},
        Scenario{.name = "plain_replace", .has_old = true, .plain_renames = true},
        Scenario{.name = "plain_beside_foreign", .has_old = true, .has_foreign = true, .plain_renames = true},
        Scenario{.name = "no_locks", .has_old = true, .has_foreign = true, .no_locks = true}),
    name_of);
INSTANTIATE_TEST_SUITE_P(Scenarios, PublishInPlaceFaults,
                         testing::Values(kBesideForeign, kForced, kLink, kNoLinks), name_of);

class PublishAccidents : public PublishFixture {};

TEST_F(PublishAccidents, AFullDiskIsAnError) {
  publish(first_output(), target_);
  FileSet large;
  large.add("data/net.weights.bin", std::string(1 << 20, 'w'));
  large.add_manifest("net", nlohmann::ordered_json::object());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      publish(large, target_);
      ::_exit(0);
    } catch (const CompileError& error) {
      ::_exit(std::string(error.what()).find("File too large") != std::string::npos ? 4 : 1);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(PublishAccidents, ASignalLeavesTheOldOutput) {
  publish(first_output(), target_);
  /// Sends the signal at the first write of the new output.
  class Interrupting : public FileSystem {
    ssize_t write(int descriptor, const void* bytes, std::size_t size) override {
      ::raise(SIGTERM);
      return FileSystem::write(descriptor, bytes, size);
    }
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    catch_interrupts();
    Interrupting system;
    try {
      publish(second_output(), target_, {}, system);
      ::_exit(0);
    } catch (const CompileError& error) {
      ::_exit(static_cast<int>(error.exit_code()));
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(PublishAccidents, FailureRemovesTheParentsItMade) {
  FaultySystem system;
  system.fail_at = 20;
  EXPECT_THROW(publish(first_output(), base_ / "a/b/c", {}, system), CompileError);
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(PublishAccidents, LeavesTheTemporaryDirectoryOfALivingProcessAlone) {
  // Another process, stopped in the middle of its writing.
  class Stopping : public FileSystem {
    int fsync(int descriptor) override {
      ::raise(SIGSTOP);
      return FileSystem::fsync(descriptor);
    }
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Stopping system;
    publish(second_output(), target_, {}, system);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(leftovers().size(), 1u);
  publish(first_output(), target_);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
  EXPECT_EQ(leftovers().size(), 1u);
  while (!WIFEXITED(status)) {
    ::kill(child, SIGCONT);
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(snapshot(target_), snapshot(second_output()));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(PublishAccidents, ManyAtOnceNeverMix) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int round = 0; round < 20; ++round) {
        publish((i + round) % 2 == 0 ? first_output() : second_output(), target_,
                PublishOptions{false, false});
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const Snapshot result = snapshot(target_);
  EXPECT_TRUE(result == snapshot(first_output()) || result == snapshot(second_output()));
  EXPECT_TRUE(leftovers().empty());
}

}  // namespace
}  // namespace gcompile
