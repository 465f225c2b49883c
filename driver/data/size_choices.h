#pragma once
// The sizes that the caller of a model chooses from (--dim N=1,2,4): one set of options for each choice.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/command_line/options.h"

namespace gcompile {

/// One choice: options that bind every size, or give it bounds.
struct SizeChoice {
  std::vector<frontend::DimBounds> sizes;  // that the caller tells, in the order of the command line
  std::string text;                        // "batch=4, length=128"; empty: there is nothing to choose
  Options options;                         // without lists of sizes
};

/// Every choice, the largest last; one where there is nothing to choose. Throws CompileError (kUsage)
/// where there are too many.
std::vector<SizeChoice> size_choices(const Options& options);

}  // namespace gcompile
