#pragma once

namespace gcompile {

/// The version of the tool, as CMakeLists.txt has it; it stands in every output.
constexpr const char* kVersion = "0.1.0";

}  // namespace gcompile
