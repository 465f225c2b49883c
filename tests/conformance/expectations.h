#pragma once
// The committed list of what every official case is expected to do.

#include <map>
#include <string>

namespace gcompile::conformance {

/// One line per case: its name, and "pass", "pass, INPUTS constant" (an operator must know them at compile
/// time), "unsupported: REASON", or "wrong: REASON" for a case that we know to fail.
using Expectations = std::map<std::string, std::string>;

/// Throws std::runtime_error with path and line for a line that is none of these,
/// and for a name that occurs twice.
Expectations read_expectations(const std::string& path);
enum class List { kAll, kExceptions };
void write_expectations(const std::string& path, const Expectations& expectations, List list);

/// Whether `result`, "wrong: WHAT" included, is what `expected` says.
/// What is wrong may be worded differently.
bool agrees(const std::string& expected, const std::string& result);

}  // namespace gcompile::conformance
