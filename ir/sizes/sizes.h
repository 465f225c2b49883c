#pragma once
// The symbols of a model's sizes, what is known of them, and what follows (DESIGN law 13): legality uses
// proofs from bounds, cost the typical value, and an equality that a model needs is solved or
// checked when it runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/sizes/dim.h"

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
  /// The name stands for so many times the symbol: of a size that is always a multiple, for the size.
  std::int64_t unit = 1;
};

/// What a run has to check before anything else.
struct SizeCheck {
  Dim a, b;  // that are equal
};

/// Bounds of a formula that its symbols' own do not give.
struct SizeFact {
  Dim formula;
  Bounds bounds;
};

class Sizes {
 public:
  /// A symbol with equal bounds becomes a constant.
  int add_symbol(SizeSymbol symbol);
  /// What is known of a formula beyond its symbols' bounds: that the past and the new rows fit a cache.
  void add_fact(Dim formula, Bounds bounds);

  const std::vector<SizeSymbol>& symbols() const { return symbols_; }
  const std::vector<SizeCheck>& checks() const { return checks_; }
  const std::vector<SizeFact>& facts() const { return facts_; }
  /// How many symbols equalities have been solved for.
  std::size_t solved_count() const;

  /// Without the symbols that equalities have been solved for.
  Dim resolved(Dim dim) const;
  /// Bounds of all values that it takes; not always the tightest. Numbers beyond kDimLimit count as that.
  Bounds bounds(Dim dim) const;
  std::int64_t at_typical(Dim dim) const;

  Truth equal(Dim a, Dim b) const;
  Truth less_equal(Dim a, Dim b) const;
  /// From now on they are equal: by solving for a symbol that stands alone in their difference, or by a
  /// check. False: they never are.
  bool assume_equal(Dim a, Dim b);
  /// From now on a is at most b, by a check where that is not known. False: it never is.
  bool assume_less_equal(Dim a, Dim b);

 private:
  std::vector<SizeSymbol> symbols_;
  std::vector<Dim> solved_;  // of each symbol; itself: it is free
  std::vector<SizeFact> facts_;
  std::vector<SizeCheck> checks_;
};

/// While it lives, sizes are compared and named by these symbols.
class SizesScope {
 public:
  explicit SizesScope(Sizes* sizes) : outer_(in_force_) { in_force_ = sizes; }
  ~SizesScope() { in_force_ = outer_; }
  SizesScope(const SizesScope&) = delete;
  SizesScope& operator=(const SizesScope&) = delete;
  static Sizes* in_force() { return in_force_; }

 private:
  inline static Sizes* in_force_ = nullptr;
  Sizes* outer_;
};

/// By what is in force; of numbers without it.
Truth are_equal(Dim a, Dim b);
bool assume_equal(Dim a, Dim b);
bool assume_less_equal(Dim a, Dim b);
/// From now on `a` is a multiple of the divisor, above 0.
bool assume_multiple(Dim a, std::int64_t divisor);
bool assume_equal_shapes(std::span<const Dim> a, std::span<const Dim> b);  // of one rank
/// For costs and the like, never for what has to be right: of the typical values in force.
std::int64_t typical(Dim dim);
/// The most and the least that it can be by the bounds in force.
std::int64_t highest(Dim dim);
std::int64_t lowest(Dim dim);

}  // namespace gcompile::ir
