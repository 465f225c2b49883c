#pragma once
// What a command comes to, for programs (docs/json.md).

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "driver/command_line/options.h"
#include "nlohmann/json.hpp"

namespace gcompile {

/// `result`: an object, the members of which stand beside those that every answer has.
struct Answer {
  ExitCode code = ExitCode::kOk;
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
};

/// What --json prints: version, command, exit code, errors and warnings, and the result.
std::string answer_json(const Answer& answer, const char* command,
                        const std::vector<Diagnostic>& diagnostics);

/// The same in one line for scripts, without lists: "summary: command=check exit_code=0 errors=0 ...". Values
/// are words of a shell.
std::string summary_line(const Answer& answer, const char* command,
                         const std::vector<Diagnostic>& diagnostics);

}  // namespace gcompile
