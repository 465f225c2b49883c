#pragma once
// The symbols of a model's sizes, what is known of them, and what follows (DESIGN law 13): legality uses
// proofs from bounds, cost the typical value, and an equality that a model needs is solved or checked when it
// runs.

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace gcompile::ir {

/// All numbers from low to high, both included.
struct Bounds {
  std::int64_t low = 1;
  std::int64_t high = 1;
  bool contains(std::int64_t number) const { return low <= number && number <= high; }
  bool operator==(const Bounds&) const = default;
};

enum class Truth : std::uint8_t { kNo, kYes, kUnknown };

struct SizeSymbol {
  std::string name;
  Bounds bounds;
  std::int64_t typical = 1;
};

/// What a run has to check before anything else.
struct SizeCheck {
  Dim a, b;  // that are equal
};

class Sizes {
 public:
  int add_symbol(SizeSymbol symbol);
  /// What is known of a form beyond its symbols' bounds: that the past and the new rows fit a cache.
  void add_fact(const Dim& form, Bounds bounds);

  const std::vector<SizeSymbol>& symbols() const { return symbols_; }
  const std::vector<SizeCheck>& checks() const { return checks_; }

  /// Without the symbols that equalities have been solved for.
  Dim resolved(const Dim& dim) const;
  /// Bounds of all values that it takes; not always the tightest. Numbers beyond kDimLimit count as that.
  Bounds bounds(const Dim& dim) const;
  std::int64_t at_typical(const Dim& dim) const;

  Truth equal(const Dim& a, const Dim& b) const;
  Truth less_equal(const Dim& a, const Dim& b) const;
  /// From now on they are equal: by solving for a symbol that stands alone in their difference, or by a
  /// check. False: they never are.
  bool assume_equal(const Dim& a, const Dim& b);

 private:
  struct Fact {
    Dim form;
    Bounds bounds;
  };
  std::vector<SizeSymbol> symbols_;
  std::vector<Dim> solved_;  // of each symbol; itself: it is free
  std::vector<Fact> facts_;
  std::vector<SizeCheck> checks_;
};

}  // namespace gcompile::ir
