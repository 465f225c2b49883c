#include "codegen/emit/kernel_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"

namespace gcompile {

std::vector<KernelFile> split_kernels(const Program& program, int kernels_per_file) {
  const std::size_t count = program.kernels.size();
  const int usual = info_of(program.target).kernels_per_file;
  const std::size_t wanted = static_cast<std::size_t>(kernels_per_file > 0 ? kernels_per_file : usual);
  const std::size_t least = std::max<std::size_t>(1, wanted - wanted / 3), most = wanted + wanted / 3;
  // The kernel with which the next file begins has the smallest digest of those that it may begin with.
  std::vector<std::string> digests;
  for (const Kernel& kernel : program.kernels) digests.push_back(sha256_hex(kernel.name));
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; count - begin > most;) {
    const auto first = digests.begin() + static_cast<std::ptrdiff_t>(begin + least);
    const auto last = digests.begin() + static_cast<std::ptrdiff_t>(begin + most);
    begin = static_cast<std::size_t>(std::min_element(first, last + 1) - digests.begin());
    ends.push_back(begin);
  }
  ends.push_back(count);
  std::vector<KernelFile> files;
  std::size_t next = 0;
  for (const std::size_t end : ends) {
    KernelFile file;
    file.stem = fmt::format("{}_kernels", program.name);
    if (ends.size() > 1) file.stem += fmt::format("_{}", files.size() + 1);
    for (; next < end; ++next) file.kernels.push_back(next);
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace gcompile
