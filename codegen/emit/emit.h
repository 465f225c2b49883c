#pragma once
// Program -> files of the output project: rendered templates, weights, and exactly the runtime headers that
// they include.

#include "codegen/emit/file_set.h"
#include "codegen/emit/program_json.h"
#include "codegen/program/program.h"

namespace gcompile {

/// All files, the manifest last.
FileSet emit(const Program& program, const EmitOptions& options);

/// One embedded template by itself, "report/times.j2".
std::string render_template(const std::string& name, const nlohmann::ordered_json& data);

/// The runtime headers in `headers` and all that they include, sorted: "gcrt/config.h".
std::vector<std::string> runtime_headers(const std::vector<std::string>& headers);

}  // namespace gcompile
