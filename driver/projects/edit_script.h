#pragma once
// What a sequence lost and gained on the way to another.

#include <cstdint>
#include <optional>
#include <vector>

namespace gcompile {

/// A position of one sequence or the other, or of both where they have the same.
struct Edit {
  std::optional<std::size_t> before, after;
};

/// Each position of both sequences once, in order, with as few unmatched ones as can be (Myers, "An O(ND)
/// Difference Algorithm and Its Variations", 1986). Sequences that differ in more than 2,000 places are
/// matched at their ends alone.
std::vector<Edit> edit_script(const std::vector<std::int64_t>& before,
                              const std::vector<std::int64_t>& after);

}  // namespace gcompile
