#pragma once
// How far rounding alone moves what a model computes: the yardstick for models that no tolerance fits.
//
// A float kernel rounds as often as it adds, each time by at most half a unit in the last place. Whether that
// stays small is a matter of the model: after a cancellation little is left but rounding. So the evaluator is
// run again with every operator's result moved by about what a kernel may round, and what that does to a
// value is the value's noise. A program whose error is of that size is as right as float32 allows.

#include <cstdint>

#include "driver/compare.h"
#include "ir/graph.h"

namespace gcompile {

/// Half a unit in the last place of 1: the largest relative error of one rounding. 0 where nothing is
/// rounded.
double unit_roundoff(ir::ElementType type);

/// How much more than one rounding meets in an element of the node's results: sums of n terms, added one by
/// one, err like a random walk, by 1 + sqrt(n / 2) times that of their sum. n is estimated from the numbers
/// of elements of operands and result: exact for a product of two matrices.
double roundings(const ir::Graph& graph, ir::NodeId id);

/// Every float moved by a random part, equally distributed, of at most `units` times its own unit roundoff.
/// Zeros, and numbers of up to 12 significant bits, stay: they are exact more likely than rounded, and what a
/// model decides by them (a position, a size) must not flip. Deterministic in `seed`.
ir::Tensor moved(const ir::Tensor& tensor, double units, std::uint64_t seed);

/// The noise of one value: the largest differences that rounding has made in some runs.
struct Noise {
  double worst_ratio = 0;  // of an element, in units of its tolerance
  double rms = 0;          // root mean square of the differences
  std::int64_t wrong = 0;  // elements that left their tolerance

  void include(const Comparison& run);
};

/// Runs with moved roundings from which the noise of a model is taken, and how many times that noise an error
/// may be: the noise is a sample, and kernels round in ways of their own (exp within some units, divisions by
/// reciprocals).
constexpr int kNoiseRuns = 3;
constexpr double kNoiseMargin = 4;

/// Whether an error is no larger than what rounding does anyway. Never for shapes or types that differ.
bool is_noise(const Comparison& comparison, const Noise& noise);

}  // namespace gcompile
