#pragma once
// How far rounding alone moves what a model computes: the yardstick for models that no tolerance fits.
//
// A float kernel rounds as often as it adds, each time by at most half a unit in the last place. Whether that
// stays small is a matter of the model: after a cancellation little is left but rounding. So the evaluator is
// run again with every operator's result moved by about what a kernel may round, and what that does to a
// value is the value's noise. A program whose error is of that size is as right as float32 allows.

#include <cstdint>
#include <vector>

#include "driver/data/random_inputs.h"
#include "driver/verify/compare.h"
#include "ir/forms/rounding.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// Half a unit in the last place of 1: the largest relative error of one rounding.
/// 0 where nothing is rounded.
double unit_roundoff(ir::ElementType type);

/// Every float moved by a random part, equally distributed, of at most `units` times its own unit roundoff.
/// Zeros, and numbers of up to 12 significant bits, stay: they are exact more likely than rounded, and what a
/// model decides by them (a position, a size) must not flip. Deterministic in `seed`.
ir::Tensor moved(const ir::Tensor& tensor, double units, std::uint64_t seed);

/// Moves what is rounded, inside of operators and at their edges. Deterministic in `seed`.
class MovedRounding final : public ir::Rounding {
 public:
  explicit MovedRounding(std::uint64_t seed) : seed_(seed), random_(seed) {}
  double inside(double value, ir::ElementType type, double count) override;
  ir::Tensor result(const ir::Tensor& tensor, double count) override;

 private:
  const std::uint64_t seed_;
  std::uint64_t results_ = 0;
  RandomInputs random_;
};

/// The noise of one value: the largest differences that rounding has made in some runs.
struct Noise {
  double worst_ratio = 0;       // of an element, in units of its tolerance
  double rms = 0;               // root mean square of the differences
  std::int64_t near = 0;        // elements that kNoiseMargin times as much would take out of their tolerance
  std::int64_t line = 1;        // of so many neighbours the noise is alike
  std::vector<float> elements;  // the difference of each in units of its tolerance; empty: not known

  void include(const Comparison& run);
};

/// Runs with moved roundings from which the noise of a model is taken, and how many times that noise an error
/// may be: the noise is a sample, and kernels round in ways of their own (exp within some units,
/// divisions by reciprocals).
constexpr int kNoiseRuns = 5;
constexpr double kNoiseMargin = 4;
constexpr std::int64_t kOddElements = 32;

/// Whether an error is no larger than what rounding does anyway: as a whole, and in the elements that are out
/// of their tolerance, of which one in kOddElements may be beyond its own noise, for that is a sample. So a
/// plane that is wrong is not excused by another one that is noisy. Never for shapes or types that differ.
bool is_noise(const Comparison& comparison, const Noise& noise);

}  // namespace gcompile
