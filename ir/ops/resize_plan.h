#pragma once
// Where each output position of a resized axis reads. What is nearest jumps, and is computed in float32 as
// ONNX Runtime does; positions and weights of sums are computed in double at compile time after ONNX's
// reference (onnx/reference/ops/op_resize.py).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/loops/expression.h"

namespace gcompile::ir {

/// One resized axis.
struct ResizeAxis {
  Dim in = 1;
  Dim out = 1;
  /// nullopt where only a run knows the sizes and it is no number: then it is out / in.
  std::optional<double> scale = 1;
  /// `out` follows from the scale, not the scale from it.
  bool is_scaled = false;
  /// Ends of the region of interest, in units of the axis (tf_crop_and_resize).
  double roi_begin = 0;
  double roi_end = 1;
  /// The elements of operand 1 that a run reads them from instead; -1: none.
  int begin_element = -1, end_element = -1;
  /// The element of operand 2 that a run reads the scale from; -1: none.
  int scale_element = -1;
  /// Only a run knows its sizes.
  bool is_open() const { return !in.is_constant() || !out.is_constant(); }
};

struct ResizeMethod {
  std::string mode = "nearest";  // nearest, linear, cubic
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";  // or "simple": floor enlarging, ceil shrinking (Resize-10)
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

/// Operands of Resize.
inline constexpr int kRegion = 1, kScales = 2;

/// Whether the axis stays as it is.
bool keeps(const ResizeAxis& axis, const ResizeMethod& method);
/// Whether every element of the axis is one of the operand's.
bool copies(const ResizeAxis& axis, const ResizeMethod& method);

/// An element that is copied: its position on the operand's axis, int64, and whether it lies outside the
/// region of interest, bool; -1: none does.
struct NearestElement {
  int position = 0;
  int is_outside = -1;
};
/// The input element nearest to output position `at`, int64.
NearestElement nearest_element(Dag& dag, const ResizeAxis& axis, const ResizeMethod& method, int at);

/// An element of a sum: its position on the operand's axis, int64, and its weight, float64.
struct WeighedElement {
  int position = 0;
  int weight = 0;
};
/// Whether a run can compute them at any size: the elements of linear and cubic whose number no factor changes.
bool sums_anywhere(const ResizeMethod& method);
/// How many there are along an axis whose scale a run reads. With antialias its sizes are numbers.
int taps_at_any_scale(const ResizeAxis& axis, const ResizeMethod& method);
/// The input elements that output position `at`, int64, is a sum of, with their weights.
struct WeighedElements {
  std::vector<WeighedElement> elements;
  int is_outside = -1;  // of the region of interest, bool; -1: none is
};
WeighedElements weighed_elements(Dag& dag, const ResizeAxis& axis, const ResizeMethod& method, int at);

/// Row i of both tables belongs to output position `begin + i`; positions before and after the rows lie
/// outside the region of interest. Weights are empty for one tap.
struct AxisTable {
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  int taps = 1;
  std::vector<std::int64_t> positions;  // rows * taps
  std::vector<double> weights;          // rows * taps, or empty
};

/// The table of an axis whose sizes are numbers.
AxisTable axis_table(const ResizeAxis& axis, const ResizeMethod& method);

/// position(i) = floor((multiplier * i + offset) / divisor).
struct AxisFormula {
  std::int64_t multiplier = 1;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;
  bool operator==(const AxisFormula&) const = default;
};

/// The formula of a table of one tap, if a simple one fits.
std::optional<AxisFormula> formula_of(const AxisTable& table);
/// The one that fits an axis that copies at every size that it may have. nullopt: there is none, or so many
/// sizes that not all are tried.
std::optional<AxisFormula> formula_of_all_sizes(const ResizeAxis& axis, const ResizeMethod& method);

/// A scale as a fraction of small numbers.
struct Fraction {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};
/// The one that is this number in float32.
std::optional<Fraction> fraction_of(double scale);
/// The one that out / in always is.
std::optional<Fraction> fraction_of(Dim out, Dim in);

/// Weights that repeat themselves: output position `scale.numerator * k + row` reads as `row` does,
/// scale.denominator * k further. Positions of the table are where no edge is near: any, also negative.
/// Throws OperatorError where that is not so at every size.
struct AxisPhases {
  Fraction scale;
  AxisTable table;
};
AxisPhases axis_phases(const ResizeAxis& axis, const ResizeMethod& method);
/// Whether they do not throw.
bool has_phases(const ResizeAxis& axis, const ResizeMethod& method);

/// The size of a result whose axis only a run knows. ONNX rounds the product to float32 before it is rounded
/// down: a formula is right where it gives the same at every size.
Dim scaled_size(Dim in, double scale);

}  // namespace gcompile::ir
