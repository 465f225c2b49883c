#pragma once
// Records of the option table: what commands take that build and run a project, or look at a build.

#include <vector>

#include "driver/command_line/option_table.h"

namespace gcompile {

std::vector<OptionRecord> verify_options();
std::vector<OptionRecord> check_options();
std::vector<OptionRecord> report_options();
std::vector<OptionRecord> diff_options();

}  // namespace gcompile
