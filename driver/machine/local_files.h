#pragma once
// Small files that the user asked for by name, and temporary folders.

#include <string>
#include <string_view>

namespace gcompile {

/// Makes `path` hold `bytes`, all at once: a file that is there stays as it is until then. Its folder must
/// exist; a device or a pipe is written to. Throws CompileError (kInputOutput).
void write_local_file(const std::string& path, std::string_view bytes);

/// Writes folder/name, making the folder when it is missing. Throws CompileError (kInputOutput).
void write_text_file(const std::string& folder, const std::string& name, std::string_view text);

/// Makes `folder` one of ours, to be filled with files of fixed names: it must be new, empty, or claimed
/// before, which the file kClaim in it tells. Throws CompileError (kInputOutput).
void claim_folder(const std::string& folder);
inline constexpr const char* kClaim = ".gcompile";

/// `word` as one word of a POSIX shell.
std::string shell_quoted(const std::string& word);

/// A new folder in $TMPDIR or /tmp that goes with all its contents when the object does.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gcompile
