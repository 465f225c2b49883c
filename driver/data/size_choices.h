#pragma once
// The sizes that the caller of a model chooses from (--dim N=1,2,4): one set of options for each combination.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/command_line/options.h"

namespace gcompile {

/// One combination: options that bind every size, or give it bounds.
struct SizeChoice {
  std::vector<frontend::DimRange> sizes;  // that the caller tells, in the order of the command line
  std::string text;                       // "batch=4, length=128"; empty: there is nothing to choose
  Options options;                        // without choices
};

/// Every combination, the largest last; one where there is nothing to choose. Throws CompileError (kUsage)
/// where there are too many.
std::vector<SizeChoice> size_choices(const Options& options);

}  // namespace gcompile
