#pragma once
// The names that printed code mentions.

#include <set>
#include <string>

namespace gcompile {

/// All identifiers of a text, but for those in comments within its lines.
std::set<std::string> identifiers_of(const std::string& text);

}  // namespace gcompile
