#include "codegen/emit/file_set.h"

#include <string>

#include "base/diagnostics.h"
#include "base/sha256.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

TEST(OutputPath, AcceptsWhatGcompileEmits) {
  for (const char* path : {"CMakeLists.txt", "src/resnet.cpp", "gcrt/cpu/product/gemm.h", "meta/a-b_C.9.json",
                           ".gitignore", "a..b", "..."}) {
    EXPECT_TRUE(is_output_path(path)) << path;
  }
  EXPECT_TRUE(is_output_path(std::string(255, 'x')));
}

TEST(OutputPath, RefusesEscapesAndOddBytes) {
  for (const char* path : {"", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", "./a", "a/.", "a//b", "a/",
                           "a b", "a\\b", "a:b", "a\nb", "\xC3\xA9", "~", "a*"}) {
    EXPECT_FALSE(is_output_path(path)) << path;
  }
  EXPECT_FALSE(is_output_path(std::string("a\0b", 3)));
  EXPECT_FALSE(is_output_path(std::string(256, 'x')));
  std::string deep = "x";
  while (deep.size() <= 1024) deep += "/x";
  EXPECT_FALSE(is_output_path(deep));
}

TEST(FileSet, IsSortedAndFindable) {
  FileSet files;
  files.add("src/b.cpp", "b");
  files.add("run.sh", "#!", true);
  files.add("src/a.cpp", "a");
  std::string order;
  for (const auto& [path, file] : files.files()) order += path + " ";
  EXPECT_EQ(order, "run.sh src/a.cpp src/b.cpp ");
  ASSERT_NE(files.find("run.sh"), nullptr);
  EXPECT_TRUE(files.find("run.sh")->executable);
  EXPECT_EQ(files.find("nosuch"), nullptr);
}

TEST(FileSet, RefusesWhatCannotLieOnADisk) {
  FileSet files;
  files.add("src/b.cpp", "b");
  files.add("src.txt", "not below src");
  EXPECT_THROW(files.add("src/b.cpp", "again"), CompileError);
  EXPECT_THROW(files.add("src", "a file where a directory is"), CompileError);
  EXPECT_THROW(files.add("src/b.cpp/c", "below a file"), CompileError);
  EXPECT_THROW(files.add("../x", ""), CompileError);
  EXPECT_EQ(files.files().size(), 2u);
}

TEST(FileSet, ManifestListsAllFiles) {
  FileSet files;
  files.add("src/b.cpp", "bytes");
  files.add("README.md", "");
  EXPECT_EQ(files.manifest_path(), "");
  files.add_manifest("net", {{"model", "net.onnx"}});
  EXPECT_EQ(files.manifest_path(), "meta/net.json");
  const auto manifest = nlohmann::ordered_json::parse(files.find("meta/net.json")->bytes.text());
  EXPECT_EQ(manifest.begin().key(), "generator");
  EXPECT_EQ(manifest["generator"], "gcompile");
  EXPECT_EQ(manifest["model"], "net.onnx");
  ASSERT_EQ(manifest["files"].size(), 2u);
  EXPECT_EQ(manifest["files"][1]["path"], "src/b.cpp");
  EXPECT_EQ(manifest["files"][1]["bytes"], 5);
  EXPECT_EQ(manifest["files"][1]["sha256"], sha256_hex("bytes"));
  EXPECT_THROW(files.add("late.txt", ""), CompileError);
}

}  // namespace
}  // namespace gcompile
