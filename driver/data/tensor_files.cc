#include "driver/data/tensor_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/diagnostics.h"
#include "driver/data/npy.h"
#include "driver/data/zip_archive.h"
#include "driver/machine/file_system.h"
#include "frontend/files/file_bytes.h"

namespace gcompile {
namespace {

const std::string kSuffix = ".npy";

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A pipe or a device has no end that could be waited for: only regular files are read.
frontend::FileBytes open_regular(const std::string& path) {
  return {frontend::open_file(path), path, std::numeric_limits<std::int64_t>::max()};
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
    throw CompileError(ExitCode::kInputOutput,
                       fmt::format("cannot {} '{}': {}", action, printable(path), problem.what()));
  }
}

/// An archive may unpack to so many times its size, and to this much in any case.
constexpr std::uint64_t kMostTimes = 16;
constexpr std::uint64_t kUnpackedInAnyCase = std::uint64_t{1} << 28;

std::vector<NamedTensor> parse_npz(std::string_view bytes) {
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  read_zip(bytes, kUnpackedInAnyCase + kMostTimes * bytes.size(), [&](const ZipEntry& entry) {
    const bool is_array =
        entry.name.size() > kSuffix.size() &&
        entry.name.compare(entry.name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
    if (!is_array) throw std::invalid_argument("it is not an array");
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (!names.insert(name).second) throw std::invalid_argument("its name is in it twice");
    tensors.push_back({name, parse_npy(entry.bytes)});
  });
  return tensors;
}

}  // namespace

ir::Tensor read_npy(const std::string& path) {
  const frontend::FileBytes file = open_regular(path);
  return with_path("read", path, [&] { return parse_npy(file.text()); });
}

void write_npy(const std::string& path, const ir::Tensor& tensor) { write_bytes(path, to_npy(tensor)); }

std::vector<NamedTensor> read_npz(const std::string& path) {
  const frontend::FileBytes file = open_regular(path);
  return with_path("read", path, [&] { return parse_npz(file.text()); });
}

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  const std::string archive = with_path("write", path, [&] {
    std::vector<ZipEntry> entries;
    std::set<std::string> names;
    for (const NamedTensor& named : tensors) {
      if (!names.insert(named.name).second) {
        throw std::invalid_argument(fmt::format("'{}' would be in it twice", printable(named.name)));
      }
      entries.push_back({named.name + kSuffix, to_npy(named.tensor)});
    }
    return write_zip(entries);
  });
  write_bytes(path, archive);
}

}  // namespace gcompile
