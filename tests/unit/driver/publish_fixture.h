#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gcompile {

namespace fs = std::filesystem;
using Snapshot = std::map<std::string, std::string>;

inline std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

inline void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Every file below `root` with its bytes; symbolic links with their targets; empty directories.
inline Snapshot snapshot(const fs::path& root) {
  Snapshot result;
  if (!fs::exists(root)) return result;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).string();
    if (entry.is_symlink()) {
      result[path] = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      result[path] = read_file(entry.path());
    } else if (fs::is_empty(entry.path())) {
      result[path + "/"] = "";
    }
  }
  return result;
}

inline Snapshot snapshot(const FileSet& files) {
  Snapshot result;
  for (const auto& [path, file] : files.files()) result[path] = file.bytes;
  return result;
}

/// Two outputs that share a file, differ in one, and have one each of their own; `src/only` changes its kind.
inline FileSet first_output() {
  FileSet files;
  files.add("CMakeLists.txt", "same in both\n");
  files.add("src/net_files.h", "of the first version\n");
  files.add("src/net.cpp", "first version\n");
  files.add("src/only", "a file in the first\n");
  files.add("old/gone.h", "only in the first\n");
  files.add_manifest("net", {{"version", 1}});
  return files;
}

inline FileSet second_output() {
  FileSet files;
  files.add("CMakeLists.txt", "same in both\n");
  files.add("src/net_files.h", "of the second version\n");
  files.add("src/net.cpp", "second version, longer\n");
  files.add("src/only/inner.h", "a directory in the second\n");
  files.add("run.sh", "#!/bin/sh\n", true);
  files.add_manifest("net", {{"version", 2}});
  return files;
}

class PublishFixture : public testing::Test {
 protected:
  void SetUp() override {
    // The fault tests make some ten thousand directories; memory spares the disk.
    std::string pattern = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir();
    pattern += "/publish_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base_ = pattern;
    target_ = base_ / "out";
  }
  void TearDown() override { fs::remove_all(base_); }

  /// What lies beside the target: must be nothing after every run that was not killed.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(base_)) {
      if (entry.path() != target_ && entry.path() != base_ / "real") names.push_back(entry.path().filename());
    }
    return names;
  }

  void start_again() {
    fs::remove_all(base_);
    fs::create_directory(base_);
  }

  fs::path base_;
  fs::path target_;
};

}  // namespace gcompile
