#pragma once
// Which source file has which kernels.

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/program/program.h"

namespace gcompile {

/// The kernels of one source file: indices into Program::kernels.
struct KernelFile {
  std::string stem;  // "NAME_kernels" or "NAME_kernels_2"
  std::vector<std::size_t> kernels;
};

/// The kernels in order, in files of two thirds to four thirds of `kernels_per_file` each (0: as usual for the
/// target); the last may have fewer. Where one file ends is decided by the names of the kernels around, so that a
/// kernel more or less moves others between two neighbours at most (content-defined chunking: Muthitacharoen et
/// al., A Low-bandwidth Network File System, SOSP 2001).
std::vector<KernelFile> split_kernels(const Program& program, int kernels_per_file);

}  // namespace gcompile
