#pragma once
// Which symbols the values of formulas tell: how tensors say at what sizes they are.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ir/sizes/dim.h"

namespace gcompile::ir {

/// A symbol that the value of a formula tells: (value - rest) / factor; or that is `rest`, by an equality.
struct SolvedSymbol {
  int symbol = 0;
  std::optional<std::size_t> formula;
  Dim factor, rest;  // of symbols that are told or stand before it; no factor is negative
};

struct SolvedSymbols {
  std::vector<int> told;  // that no formula gives, so that somebody has to tell them; ascending
  std::vector<SolvedSymbol> solved;
};

/// The values of the symbols 0 to count - 1. Each is taken from the first formula in which it is the only
/// unknown and that grows with it evenly; where there is no such formula, from the equalities in force
/// (SizesScope), as of two axes that have names of their own and one size; where there is none, the first
/// unknown symbol has to be told.
SolvedSymbols solve_symbols(std::span<const Dim> formulas, int count);

}  // namespace gcompile::ir
