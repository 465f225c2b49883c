#pragma once
// Which numbers in kernels training changes: they are read from the weights, so that a model that is trained
// further has the same code (DESIGN law 23).

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/loops/scalar_op.h"

namespace gcompile {

class TrainedNumbers {
 public:
  TrainedNumbers() = default;
  /// Floats of one element by value: initialisers with axes, those without, and the numbers of Constant nodes;
  /// whether the model has floats of 16 bits, whose numbers kernels for the CPU have as float32.
  TrainedNumbers(std::map<double, std::string> with_axes, std::map<double, std::string> without_axes,
                 std::set<double> written, bool has_16_bits = false);

  /// The name of the number where training may change it. Whole numbers are not changed, nor what is not
  /// finite, an epsilon, a sixth or the root of two. Of others, an initialiser with axes is a weight, the
  /// slope of a PRelu for one; one without axes may be a scale or a constant of a formula, as may be what
  /// passes computed: such a number is trained where nobody would have written it. In 16 bits many numbers look
  /// like a sixth, so that it lies among the weights. What passes computed has an empty name.
  std::optional<std::string> name_of(const ir::Scalar& value) const;

 private:
  /// The type of the model that has numbers like this one; none that training changes where it is empty.
  std::optional<ir::ElementType> type_of_numbers_like(const ir::Scalar& value) const;

  std::map<double, std::string> with_axes_, without_axes_;
  std::set<double> written_;
  bool has_16_bits_ = false;
};

}  // namespace gcompile
