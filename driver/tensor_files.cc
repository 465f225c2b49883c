#include "driver/tensor_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "driver/file_system.h"
#include "driver/npy.h"
#include "driver/zip_archive.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

const std::string kSuffix = ".npy";

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string read_bytes(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw_errno("read", path);
  std::string bytes;
  std::string chunk(std::size_t{1} << 20, '\0');
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    bytes.append(chunk, 0, count);
  }
  if (std::ferror(file.get()) != 0) throw_errno("read", path);
  return bytes;
}

void write_bytes(const std::string& path, const std::string& bytes) {
  File file(std::fopen(path.c_str(), "wb"), &std::fclose);
  if (!file) throw_errno("write", path);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) throw_errno("write", path);
  if (std::fclose(file.release()) != 0) throw_errno("write", path);
}

/// Runs a parser or formatter, and turns its complaint into an error that names the file.
template <typename Work>
auto with_path(const char* action, const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const std::invalid_argument& problem) {
    throw ir::CompileError(ir::ExitCode::kInputOutput,
                           fmt::format("cannot {} '{}': {}", action, ir::printable(path), problem.what()));
  }
}

std::vector<NamedTensor> parse_npz(const std::string& bytes) {
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  for (const ZipEntry& entry : read_zip(bytes)) {
    const std::string shown = ir::printable(entry.name);
    const bool is_array =
        entry.name.size() > kSuffix.size() &&
        entry.name.compare(entry.name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
    if (!is_array) throw std::invalid_argument(fmt::format("'{}' in it is not an array", shown));
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (!names.insert(name).second) throw std::invalid_argument(fmt::format("'{}' is in it twice", shown));
    try {
      tensors.push_back({name, parse_npy(entry.bytes)});
    } catch (const std::invalid_argument& problem) {
      throw std::invalid_argument(fmt::format("in '{}': {}", shown, problem.what()));
    }
  }
  return tensors;
}

}  // namespace

ir::Tensor read_npy(const std::string& path) {
  const std::string bytes = read_bytes(path);
  return with_path("read", path, [&] { return parse_npy(bytes); });
}

void write_npy(const std::string& path, const ir::Tensor& tensor) { write_bytes(path, to_npy(tensor)); }

std::vector<NamedTensor> read_npz(const std::string& path) {
  const std::string bytes = read_bytes(path);
  return with_path("read", path, [&] { return parse_npz(bytes); });
}

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  const std::string archive = with_path("write", path, [&] {
    std::vector<ZipEntry> entries;
    std::set<std::string> names;
    for (const NamedTensor& named : tensors) {
      if (!names.insert(named.name).second) {
        throw std::invalid_argument(fmt::format("'{}' would be in it twice", ir::printable(named.name)));
      }
      entries.push_back({named.name + kSuffix, to_npy(named.tensor)});
    }
    return write_zip(entries);
  });
  write_bytes(path, archive);
}

}  // namespace gcompile
