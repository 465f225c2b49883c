#pragma once
// A graph in which a rule fires, or that its guard refuses (rule_cases.h).

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gcompile::testing {

struct RuleCase {
  std::string rule;
  std::string graph;  // inputs "w_..." are constants, which the test fills; "n_..." are ordinary numbers
  /// Other inputs that are constants, all elements of one value.
  std::vector<std::pair<std::string, double>> numbers = {};
  bool float32_only = false;  // as quantised models are
  bool weights_flush =
      false;              // denormal weights are zeros (DESIGN law 5), and lose what infinity times them is
  bool must_fire = true;  // false: the rule refuses on some types or on all, and if it fires it must be right
  /// Not empty: the guard refuses this graph, for a reason that contains these words.
  std::string refuses = {};
};

inline std::string unary(const std::string& nodes, const std::string& more = "",
                         const std::string& constants = "") {
  return "g (T[20] x" + more + ") => (T[20] y) " + constants + "{ " + nodes + " }";
}

}  // namespace gcompile::testing
