#include "driver/projects/edit_script.h"

#include <algorithm>

#include "base/interrupt.h"

namespace gcompile {
namespace {

using Sequence = std::vector<std::int64_t>;

constexpr std::int64_t kMostEdits = 2000;

/// How far into `before` each diagonal (position before - position after) gets with a number of edits:
/// diagonals -edits to edits.
struct Reach {
  std::int64_t edits = 0;
  Sequence furthest;
  std::int64_t at(std::int64_t diagonal) const { return furthest[diagonal + edits]; }
  /// Whether the next edit that ends on a diagonal is best one of `after`, not of `before`.
  bool inserts_to(std::int64_t diagonal) const {
    if (diagonal < -edits || diagonal > edits) return diagonal < 0;
    return at(diagonal - 1) < at(diagonal + 1);
  }
};

/// The reach of every number of edits, up to that which ends both sequences; none where that is too many.
std::vector<Reach> reaches(const Sequence& before, const Sequence& after) {
  const auto n = static_cast<std::int64_t>(before.size()), m = static_cast<std::int64_t>(after.size());
  std::vector<Reach> out;
  for (std::int64_t edits = 0; edits <= std::min(n + m, kMostEdits); ++edits) {
    poll_interrupt();
    Reach next{edits, Sequence(2 * edits + 1, 0)};
    bool ends = false;
    for (std::int64_t k = -edits; k <= edits && !ends; k += 2) {
      std::int64_t x = edits == 0                 ? 0
                       : out.back().inserts_to(k) ? out.back().at(k + 1)
                                                  : out.back().at(k - 1) + 1;
      while (x < n && x - k < m && before[x] == after[x - k]) ++x;
      next.furthest[k + edits] = x;
      ends = x >= n && x - k >= m;
    }
    out.push_back(std::move(next));
    if (ends) return out;
  }
  return {};
}

/// The edits of sequences without a common beginning or end.
std::vector<Edit> middle_edits(const Sequence& before, const Sequence& after) {
  std::vector<Edit> out;
  const std::vector<Reach> all = reaches(before, after);
  std::size_t x = before.size(), y = after.size();
  const auto keep_until = [&](std::size_t first) {
    while (x > first) out.push_back({--x, --y});
  };
  for (std::size_t edits = all.size(); edits-- > 1;) {
    const Reach& last = all[edits - 1];
    const std::int64_t k = static_cast<std::int64_t>(x) - static_cast<std::int64_t>(y);
    if (last.inserts_to(k)) {
      keep_until(static_cast<std::size_t>(last.at(k + 1)));
      out.push_back({std::nullopt, --y});
    } else {
      keep_until(static_cast<std::size_t>(last.at(k - 1)) + 1);
      out.push_back({--x, std::nullopt});
    }
  }
  if (!all.empty()) keep_until(0);
  while (y > 0) out.push_back({std::nullopt, --y});
  while (x > 0) out.push_back({--x, std::nullopt});
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<Edit> edit_script(const Sequence& before, const Sequence& after) {
  const std::size_t shorter = std::min(before.size(), after.size());
  std::size_t first = 0, last = 0;
  while (first < shorter && before[first] == after[first]) ++first;
  while (last < shorter - first && before[before.size() - 1 - last] == after[after.size() - 1 - last]) ++last;
  std::vector<Edit> out;
  for (std::size_t i = 0; i < first; ++i) out.push_back({i, i});
  const auto between = [&](const Sequence& all) {
    return Sequence(all.begin() + static_cast<std::ptrdiff_t>(first),
                    all.end() - static_cast<std::ptrdiff_t>(last));
  };
  for (Edit edit : middle_edits(between(before), between(after))) {
    if (edit.before) *edit.before += first;
    if (edit.after) *edit.after += first;
    out.push_back(edit);
  }
  for (std::size_t i = last; i > 0; --i) out.push_back({before.size() - i, after.size() - i});
  return out;
}

}  // namespace gcompile
