#pragma once
// Where each output position of a resized axis reads: positions and weights, computed in double at compile
// time after ONNX's reference (onnx/reference/ops/op_resize.py).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/index.h"

namespace gcompile::ir {

/// One resized axis.
struct ResizeAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  double scale = 1;
  /// Ends of the region of interest, in units of the axis (tf_crop_and_resize).
  double roi_begin = 0;
  double roi_end = 1;
  /// What `in` and `out` are a sample of, where only a run knows the size: then the scale is a whole number.
  std::optional<Dim> size = std::nullopt;
  /// Of the result.
  Dim out_size() const { return size ? *size * (out / in) : Dim(out); }
};

struct ResizeMethod {
  std::string mode = "nearest";  // nearest, linear, cubic
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";  // or "simple": floor enlarging, ceil shrinking (Resize-10)
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// Row i of both tables belongs to output position `begin + i`; positions before and after the rows lie
/// outside the region of interest. Weights are empty for one tap.
struct AxisTable {
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  int taps = 1;
  std::vector<std::int64_t> positions;  // rows * taps
  std::vector<double> weights;          // rows * taps, or empty
};

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
/// The one that fits an axis at every size: positions repeat themselves, shifted, with every step of the
/// input, so that few sizes show all there are, and both ends. nullopt: there is none.
std::optional<AxisFormula> formula_of_all_sizes(ResizeAxis axis, const ResizeMethod& method);

}  // namespace gcompile::ir
