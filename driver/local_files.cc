#include "driver/local_files.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "driver/file_system.h"
#include "ir/diagnostics.h"

namespace gcompile {

void write_local_file(const std::string& path, std::string_view bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw_errno("write", path);
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = error;
  if (!written || !closed) throw_errno("write", path);
}

void write_text_file(const std::string& folder, const std::string& name, std::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    errno = error.value();
    throw_errno("make", folder);
  }
  write_local_file(folder + "/" + name, text);
}

std::string read_local_file(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw_errno("open", path);
  std::string bytes;
  char block[65536];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof(block), file)) > 0;)
    bytes.append(block, count);
  const bool good = std::ferror(file) == 0;
  std::fclose(file);
  if (!good) throw_errno("read", path);
  return bytes;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:,@=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = fmt::format("{}/gcompile-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp");
  if (mkdtemp(pattern.data()) == nullptr) throw_errno("make", pattern);
  path_ = std::move(pattern);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gcompile
