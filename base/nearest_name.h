#pragma once
// Names as hints: the nearest of those that exist.

#include <string>
#include <string_view>
#include <vector>

namespace gcompile {

/// Edits (insert, delete, substitute one character, let two neighbours change places) from `a` to `b`, at
/// most `limit` + 1.
int edit_distance(std::string_view a, std::string_view b, int limit);
/// "did you mean 'X'?" for the nearest name within a third of its length, else "".
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names);
/// "did you mean 'X'?" for the shortest name that `wanted`, of four letters or more, begins, else "".
std::string did_you_abbreviate(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace gcompile
