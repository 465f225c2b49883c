#include "driver/publish/publish.h"

#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "base/diagnostics.h"
#include "driver/publish/output_place.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/driver/publish_fixture.h"

namespace gcompile {
namespace {

using testing::HasSubstr;

class Publish : public PublishFixture {
 protected:
  std::string error_of(const FileSet& files, const std::string& directory,
                       const PublishOptions& options = {}) {
    try {
      publish(files, directory, options);
      return "no error";
    } catch (const CompileError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kInputOutput);
      return error.what();
    }
  }
};

TEST_F(Publish, CreatesTheDirectoryAndItsParents) {
  const fs::path deep = base_ / "a/b/c";
  const PublishResult result = publish(second_output(), deep.string() + "//");
  EXPECT_EQ(snapshot(deep), snapshot(second_output()));
  EXPECT_EQ(result.changed, 6);
  EXPECT_EQ(result.unchanged, 0);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_NE(fs::status(deep / "run.sh").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(fs::status(deep / "CMakeLists.txt").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(snapshot(base_).size(), snapshot(second_output()).size());
}

TEST_F(Publish, ReplacesAnOlderOutput) {
  publish(first_output(), target_);
  const PublishResult result = publish(second_output(), target_);
  EXPECT_EQ(snapshot(target_), snapshot(second_output()));
  EXPECT_EQ(result.unchanged, 1);
  EXPECT_EQ(result.changed, 5);
  EXPECT_TRUE(leftovers().empty());
  publish(first_output(), target_);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
}

TEST_F(Publish, FillsAnEmptyDirectoryAndKeepsItsMode) {
  fs::create_directory(target_);
  fs::permissions(target_, fs::perms::owner_all);
  publish(first_output(), target_);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
  EXPECT_EQ(fs::status(target_).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Publish, TouchesNothingWhenNothingChanges) {
  publish(first_output(), target_);
  struct stat before = {};
  ASSERT_EQ(::stat(target_.c_str(), &before), 0);
  const PublishResult result = publish(first_output(), target_);
  struct stat after = {};
  ASSERT_EQ(::stat(target_.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(result.changed, 0);
  EXPECT_EQ(result.unchanged, 6);
}

TEST_F(Publish, UnchangedFilesKeepTheirTime) {
  publish(first_output(), target_);
  const auto long_ago = fs::last_write_time(target_ / "CMakeLists.txt") - std::chrono::hours(100);
  fs::last_write_time(target_ / "CMakeLists.txt", long_ago);
  fs::last_write_time(target_ / "src/net.cpp", long_ago);
  publish(second_output(), target_);
  EXPECT_EQ(fs::last_write_time(target_ / "CMakeLists.txt"), long_ago);
  EXPECT_GT(fs::last_write_time(target_ / "src/net.cpp"), long_ago);
}

TEST_F(Publish, RepairsAnOutputThatWasTamperedWith) {
  publish(first_output(), target_);
  write_file(target_ / "src/net.cpp", "edited by hand\n");
  fs::remove(target_ / "old/gone.h");
  fs::permissions(target_ / "CMakeLists.txt", fs::perms::owner_all);
  publish(first_output(), target_);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
  EXPECT_EQ(fs::status(target_ / "CMakeLists.txt").permissions() & fs::perms::owner_exec, fs::perms::none);
}

TEST_F(Publish, RefusesAForeignDirectory) {
  write_file(target_ / "precious.txt", "mine");
  const Snapshot before = snapshot(base_);
  EXPECT_THAT(error_of(first_output(), target_), HasSubstr("was not made by gcompile"));
  EXPECT_EQ(snapshot(base_), before);
  // Another tool's meta/*.json, and one that names files outside, do not make it ours.
  write_file(target_ / "meta/other.json", R"({"generator": "other", "files": []})");
  write_file(target_ / "meta/evil.json",
             R"({"generator": "gcompile", "files": [{"path": "../../precious.txt"}]})");
  write_file(target_ / "meta/broken.json", R"({"generator": "gcompile", "files": [)");
  EXPECT_THAT(error_of(first_output(), target_), HasSubstr("was not made by gcompile"));
}

TEST_F(Publish, ForceAddsToAForeignDirectoryAndDeletesNothing) {
  write_file(target_ / "precious.txt", "mine");
  write_file(target_ / "src/mine.cpp", "mine too");
  fs::create_directories(target_ / "empty");
  fs::create_symlink("/etc", target_ / "link");
  PublishOptions options;
  options.force = true;
  publish(first_output(), target_, options);
  Snapshot expected = snapshot(first_output());
  expected["precious.txt"] = "mine";
  expected["src/mine.cpp"] = "mine too";
  expected["empty/"] = "";
  expected["link"] = "-> /etc";
  EXPECT_EQ(snapshot(target_), expected);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Publish, NothingForeignIsOverwrittenEvenByForce) {
  PublishOptions options;
  options.force = true;
  const std::vector<std::function<void()>> obstacles = {
      [&] { write_file(target_ / "src/net.cpp", "mine"); },
      [&] { write_file(target_ / "src", "mine"); },
      [&] { write_file(target_ / "src/net.cpp/mine.txt", "mine"); },
      [&] { fs::create_directories(target_), fs::create_symlink("/etc", target_ / "src"); },
      [&] {
        fs::create_directories(target_ / "src"), fs::create_symlink("/etc/passwd", target_ / "src/net.cpp");
      },
  };
  for (const auto& obstacle : obstacles) {
    start_again();
    obstacle();
    const Snapshot before = snapshot(base_);
    EXPECT_THAT(error_of(first_output(), target_, options),
                HasSubstr("in the way that gcompile did not make: 'src"));
    EXPECT_EQ(snapshot(base_), before);
  }
}

TEST_F(Publish, LeavesTheUsersFilesWhereTheyAre) {
  publish(first_output(), target_);
  write_file(target_ / "build/net.o", "an object file");
  write_file(target_ / "src/notes.txt", "notes");
  write_file(target_ / "old/mine.h", "beside a file that goes");
  publish(second_output(), target_);
  Snapshot expected = snapshot(second_output());
  expected["build/net.o"] = "an object file";
  expected["src/notes.txt"] = "notes";
  expected["old/mine.h"] = "beside a file that goes";
  EXPECT_EQ(snapshot(target_), expected);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Publish, FollowsALinkToTheDirectoryItself) {
  fs::create_directory(base_ / "real");
  fs::create_directory_symlink("real", target_);
  publish(first_output(), target_);
  EXPECT_EQ(snapshot(base_ / "real"), snapshot(first_output()));
  EXPECT_TRUE(fs::is_symlink(target_));
}

TEST_F(Publish, RefusesPlacesThatCannotBeReplaced) {
  EXPECT_THAT(error_of(first_output(), ""), HasSubstr("needs a name"));
  EXPECT_THAT(error_of(first_output(), "/"), HasSubstr("name a directory below it"));
  EXPECT_THAT(error_of(first_output(), base_ / "nosuch/.."), HasSubstr("names no directory"));
  write_file(base_ / "file", "x");
  EXPECT_THAT(error_of(first_output(), base_ / "file"), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of(first_output(), base_ / "file/out"), HasSubstr("Not a directory"));
  fs::create_symlink("nowhere", base_ / "dangling");
  EXPECT_THAT(error_of(first_output(), base_ / "dangling"), HasSubstr("cannot open directory"));
  EXPECT_EQ(read_file(base_ / "file"), "x");
}

TEST_F(Publish, AFolderStaysWhenALinkLeadsToItOrSomeoneStandsInIt) {
  const auto inode = [](const fs::path& path) {
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_ino;
  };
  publish(first_output(), target_);
  const ino_t before = inode(target_);
  publish(second_output(), target_ / ".");
  EXPECT_EQ(inode(target_), before);
  EXPECT_EQ(snapshot(target_), snapshot(second_output()));
  fs::create_directory_symlink("out", base_ / "real");  // not among the leftovers
  publish(first_output(), base_ / "real/");
  EXPECT_EQ(inode(target_), before);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));

  const fs::path here = fs::current_path();
  fs::current_path(target_ / "src");
  publish(second_output(), "..");
  fs::current_path(target_);
  publish(first_output(), ".");
  fs::current_path(here);
  EXPECT_EQ(inode(target_), before);
  EXPECT_EQ(snapshot(target_), snapshot(first_output()));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Publish, ALinkInThePlaceOfAFileIsTheUsers) {
  publish(first_output(), target_);
  write_file(base_ / "real", "shared by the user");
  fs::remove(target_ / "src/net.cpp");
  fs::create_symlink("../../real", target_ / "src/net.cpp");
  EXPECT_THAT(error_of(second_output(), target_),
              HasSubstr("in the way that gcompile did not make: 'src/net.cpp'"));
  // One that is no longer wanted stays.
  fs::remove(target_ / "src/net.cpp");
  fs::remove(target_ / "old/gone.h");
  fs::create_symlink("../../real", target_ / "old/gone.h");
  publish(second_output(), target_);
  Snapshot expected = snapshot(second_output());
  expected["old/gone.h"] = "-> ../../real";
  EXPECT_EQ(snapshot(target_), expected);
}

TEST_F(Publish, TheStageOfSomeoneElseIsInTheWay) {
  write_file(target_ / ".gcompile-stage/mine.txt", "mine");
  PublishOptions options;
  options.force = true;
  const Snapshot before = snapshot(base_);
  EXPECT_THAT(error_of(first_output(), target_, options), HasSubstr("is in the way"));
  EXPECT_EQ(snapshot(base_), before);
}

TEST_F(Publish, AFolderKeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  publish(first_output(), target_);
  ASSERT_EQ(::chown(target_.c_str(), 12345, 23456), 0);
  publish(second_output(), target_);
  struct stat status = {};
  ASSERT_EQ(::stat(target_.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12345u);
  EXPECT_EQ(status.st_gid, 23456u);
  EXPECT_EQ(snapshot(target_), snapshot(second_output()));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Publish, FoldersOfTheSystemAndTheHomeFolderAreProtected) {
  for (const char* path : {"/", "/etc", "/usr", "/usr/lib", "/home", "/home/me", "/var", "/tmp"}) {
    EXPECT_TRUE(is_protected_folder(path, "/home/me")) << path;
  }
  for (const char* path : {"/etc/mine", "/home/me/out", "/home/you", "/usr/local/mine", "/mnt", "/home/m"}) {
    EXPECT_FALSE(is_protected_folder(path, "/home/me")) << path;
  }
  EXPECT_TRUE(is_protected_folder("/", "/"));
  EXPECT_FALSE(is_protected_folder("/work", "/"));
  // A home of the test's own.
  const char* real_home = std::getenv("HOME");
  const std::string kept = real_home != nullptr ? real_home : "";
  fs::create_directories(base_ / "people/me/out");
  ASSERT_EQ(::setenv("HOME", (base_ / "people/me").c_str(), 1), 0);
  PublishOptions options;
  options.force = true;
  fs::create_directory_symlink("people/me", base_ / "alias");
  for (const char* place : {"people/me", "people", "alias", "people/me/out/.."}) {
    EXPECT_THAT(error_of(first_output(), base_ / place, options), HasSubstr("name a directory below it"))
        << place;
  }
  EXPECT_TRUE(fs::is_empty(base_ / "people/me/out"));
  publish(first_output(), base_ / "people/me/out");
  EXPECT_EQ(snapshot(base_ / "people/me/out"), snapshot(first_output()));
  ASSERT_EQ(real_home != nullptr ? ::setenv("HOME", kept.c_str(), 1) : ::unsetenv("HOME"), 0);
}

}  // namespace
}  // namespace gcompile
