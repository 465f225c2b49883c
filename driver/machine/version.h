#pragma once

namespace gcompile {

/// The version of the tool, as project() in CMakeLists.txt has it; it stands in every output. Semantic
/// (https://semver.org): CHANGELOG.md says of what.
const char* tool_version();

}  // namespace gcompile
