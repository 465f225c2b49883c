#include "codegen/emit/embedded.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;

std::string read_source_file(const std::string& path) {
  std::ifstream stream(std::string(GCOMPILE_SOURCE_DIR "/") + path, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

bool is_embeddable(const fs::path& path) {
  const std::string name = path.filename().string();
  return name[0] != '.' && name.back() != '~' && path.string().find("/__pycache__/") == std::string::npos;
}

TEST(Embedded, HoldsEveryFileOfItsFoldersUnchanged) {
  std::set<std::string> expected;
  for (const char* room : {"templates", "runtime_stub", "docs/errors"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(GCOMPILE_SOURCE_DIR) / room)) {
      if (entry.is_regular_file() && is_embeddable(entry.path())) {
        expected.insert(entry.path().lexically_relative(GCOMPILE_SOURCE_DIR).string());
      }
    }
  }
  std::set<std::string> actual;
  for (const EmbeddedFile& file : embedded_files()) {
    actual.insert(std::string(file.path));
    EXPECT_EQ(file.contents, read_source_file(std::string(file.path))) << file.path;
  }
  EXPECT_EQ(actual, expected);
}

TEST(Embedded, IsSortedAndFindable) {
  std::string_view previous;
  for (const EmbeddedFile& file : embedded_files()) {
    EXPECT_LT(previous, file.path);
    previous = file.path;
    EXPECT_EQ(find_embedded_file(file.path), &file);
  }
  EXPECT_EQ(find_embedded_file("templates/no_such_file.j2"), nullptr);
  EXPECT_EQ(find_embedded_file(""), nullptr);
}

}  // namespace
}  // namespace gcompile
