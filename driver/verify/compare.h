#pragma once
// "What right means" (README.md): how far an output may be from its reference.

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/choice/precision.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

struct Comparison {
  bool same = true;
  std::string mismatch;     // why elements could not be compared: types or shapes differ
  std::int64_t wrong = 0;   // elements outside the tolerance
  std::int64_t worst = -1;  // element with the largest error in units of its tolerance; -1: all equal
  double worst_ratio = 0;   // that error; infinite where one side is NaN or infinite and the other not
  double expected = 0, actual = 0;  // of the worst element
  double rms_error = 0;             // root mean square of the errors of floats that are finite on both sides
  std::vector<float> ratios;        // of floats, the error of each element in units of its tolerance
  std::int64_t line = 1;            // of so many neighbours in memory the errors are alike
  double rms_ratio = 0;             // the same in units of what is typical; products of float32: 0
};

/// How far an output may be from its reference, whose finite elements have the root mean square `rms`.
/// Rounded factors let single elements move further than all of them together, so there are two bounds.
struct Tolerance {
  double relative = 0, absolute = 0;
  double product = 0;  // product_tolerance of the precision

  /// relative |ref| + absolute max(1, rms) + product max(1/16, rms): at `rms` the bound of the error's root
  /// mean square.
  double typical(double ref, double rms) const;
  /// The largest noise of one element: four times the product's share, and as much again of the element.
  double largest(double ref, double rms) const;
};

/// float32 and float64: 1e-4 and 1e-5; float16: 1e-2 and 1e-3; bfloat16, with three bits less, 8e-2 and 8e-3;
/// all other types bit for bit.
Tolerance tolerance_of(ir::ElementType type, Precision precision);

/// The root mean square of the finite elements.
double root_mean_square(const ir::Tensor& tensor);

/// `quantised`: integers may be off by one in at most 0.1 % of the elements. `precision`: of the products of
/// the program.
Comparison compare(const ir::Tensor& expected, const ir::Tensor& actual, bool quantised = false,
                   Precision precision = Precision::kFp32);

/// "[0, 3, 17]" of a linear element index.
std::string position_text(const ir::Shape& shape, std::int64_t index);

}  // namespace gcompile
