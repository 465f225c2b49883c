#pragma once
// What a call does in a run, for programs that time it.

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/operator_error.h"
#include "ir/sizes/dim.h"

namespace gcompile {

/// Figures of a call, as formulas of the sizes of the run.
struct RunFigures {
  ir::Dim multiply_adds = 0;
  ir::Dim bytes = 0;  // read and written, weights apart
  ir::Dim weight_bytes = 0;
};

/// What `formula` returns; where that grows beyond what a Dim may be, the number at the largest sizes.
template <class F>
ir::Dim figure(std::int64_t at_largest, const F& formula) {
  try {
    return formula();
  } catch (const OperatorError&) {
    return at_largest;
  }
}

inline ir::Dim sum_of(const std::vector<ir::Dim>& figures, std::int64_t at_largest) {
  return figure(at_largest, [&] { return std::accumulate(figures.begin(), figures.end(), ir::Dim(0)); });
}

}  // namespace gcompile
