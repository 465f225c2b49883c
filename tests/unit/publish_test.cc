#include "driver/publish.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/diagnostics.h"
#include "tests/unit/publish_fixture.h"

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
    } catch (const ir::CompileError& error) {
      EXPECT_EQ(error.exit_code(), ir::ExitCode::kInputOutput);
      return error.what();
    }
  }
};

TEST_F(Publish, CreatesTheDirectoryAndItsParents) {
  const fs::path deep = base_ / "a/b/c";
  const PublishResult result = publish(second_output(), deep.string() + "//");
  EXPECT_EQ(snapshot(deep), snapshot(second_output()));
  EXPECT_EQ(result.changed, 5);
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
  EXPECT_EQ(result.changed, 4);
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
  EXPECT_EQ(result.unchanged, 5);
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

TEST_F(Publish, CarriesTheUsersFilesOver) {
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
  EXPECT_THAT(error_of(first_output(), "."), HasSubstr("working directory"));
  EXPECT_THAT(error_of(first_output(), base_ / "nosuch/.."), HasSubstr("name a directory below it"));
  write_file(base_ / "file", "x");
  EXPECT_THAT(error_of(first_output(), base_ / "file"), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of(first_output(), base_ / "file/out"), HasSubstr("Not a directory"));
  fs::create_symlink("nowhere", base_ / "dangling");
  EXPECT_THAT(error_of(first_output(), base_ / "dangling"), HasSubstr("cannot open directory"));
  EXPECT_EQ(read_file(base_ / "file"), "x");
}

}  // namespace
}  // namespace gcompile
