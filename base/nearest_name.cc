#include "base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/diagnostics.h"

namespace gcompile {

int edit_distance(std::string_view a, std::string_view b, int limit) {
  const auto difference = static_cast<int>(a.size() > b.size() ? a.size() - b.size() : b.size() - a.size());
  if (difference > limit) return limit + 1;
  // Three rows of the table, the last of them at hand.
  std::vector<int> before, above, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (a[i] != b[j]), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return std::min(row[b.size()], limit + 1);
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names) {
  // Longer names are not typed by hand, and the distance is quadratic.
  if (wanted.size() > 200) return "";
  // A name of one letter has nothing that could be alike.
  if (wanted.size() < 2) return "";
  const int limit = static_cast<int>(std::max<std::size_t>(wanted.size() / 3, 1));
  int best = limit + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const int distance = edit_distance(wanted, name, limit);
    if (distance < best || (distance == best && best <= limit && name < nearest)) {
      best = distance;
      nearest = name;
    }
  }
  return best <= limit ? fmt::format("did you mean '{}'?", printable(nearest)) : "";
}

std::string did_you_abbreviate(std::string_view wanted, const std::vector<std::string>& names) {
  std::string nearest;
  for (const std::string& name : names) {
    if (wanted.size() < 4 || name.compare(0, wanted.size(), wanted) != 0) continue;
    if (nearest.empty() || name.size() < nearest.size()) nearest = name;
  }
  return nearest.empty() ? "" : fmt::format("did you mean '{}'?", printable(nearest));
}

}  // namespace gcompile
