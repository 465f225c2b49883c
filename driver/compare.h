#pragma once
// "What right means" (README.md): how far an output may be from its reference.

#include <cstdint>
#include <string>

#include "codegen/precision.h"
#include "ir/tensor.h"

namespace gcompile {

struct Comparison {
  bool same = true;
  std::string mismatch;     // why elements could not be compared: types or shapes differ
  std::int64_t wrong = 0;   // elements outside the tolerance
  std::int64_t worst = -1;  // element with the largest error in units of its tolerance; -1: all equal
  double worst_ratio = 0;   // that error; infinite where one side is NaN or infinite and the other not
  double expected = 0, actual = 0;  // of the worst element
};

/// How far an element may be from `ref`, in an output whose finite elements have the root mean square `rms`:
/// relative |ref| + absolute max(1, rms) + product (|ref| + rms).
struct Tolerance {
  double relative = 0, absolute = 0;
  double product = 0;  // product_tolerance of the precision

  double allowed(double ref, double rms) const;
};

/// float32 and float64: 1e-4 and 1e-5; float16: 1e-2 and 1e-3; bfloat16, with three bits less, 8e-2 and 8e-3;
/// all other types bit for bit.
Tolerance tolerance_of(ir::ElementType type, Precision precision);

/// Of the finite elements.
double root_mean_square(const ir::Tensor& tensor);

/// `quantised`: integers may be off by one in at most 0.1 % of the elements. `precision`: of the products of
/// the program.
Comparison compare(const ir::Tensor& expected, const ir::Tensor& actual, bool quantised = false,
                   Precision precision = Precision::kFp32);

/// "[0, 3, 17]" of a linear element index.
std::string position_text(const ir::Shape& shape, std::int64_t index);

}  // namespace gcompile
