#pragma once
// What passes tell of what they did to a model: for the terminal, for --json and for the project's report.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gcompile::ir {

/// Why something was done or refused, for the fusion log.
struct Remark {
  std::string pass, subject, text;
  bool refused = false;
};
/// The line as one reads it: what was refused begins with "not".
inline std::string to_string(const Remark& remark) {
  return remark.refused ? "not " + remark.text : remark.text;
}

/// A pass, and what it came to.
struct PassStatistics {
  std::string name;
  int runs = 0, changes = 0;
  std::size_t nodes = 0;  // in the graph behind its last run
  double seconds = 0;     // never part of a project: the same model gives the same report
};

struct PassReport {
  std::vector<Remark> remarks;
  std::vector<PassStatistics> passes;
  std::map<std::string, int> rule_counts;  // how often each law changed something
};

/// A weight of the model that was packed on request, and what that cost it.
struct PackedWeight {
  std::string name;  // of the constant
  std::int64_t rows = 0, columns = 0;
  std::int64_t bytes = 0;         // packed, with scales
  double relative_error = 0;      // root mean square of the differences, over that of the weight
  double largest_difference = 0;  // between an element and what is packed for it
};

}  // namespace gcompile::ir
