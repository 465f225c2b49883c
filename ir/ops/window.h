#pragma once
// Attributes of sliding windows (convolutions and pools) in one normal form.

#include "ir/ops/support.h"

namespace gcompile::ir {

/// One entry per spatial axis. pads: begin values, then end values (ONNX order).
struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  int spatial() const { return static_cast<int>(kernel.size()); }
  std::int64_t begin(int i) const { return pads[static_cast<std::size_t>(i)]; }
  std::int64_t end(int i) const { return pads[static_cast<std::size_t>(i + spatial())]; }
  /// Distance between the first and last tap, plus one.
  std::int64_t span(int i) const {
    return (kernel[static_cast<std::size_t>(i)] - 1) * dilations[static_cast<std::size_t>(i)] + 1;
  }
};

/// Fills kernel_shape (from `kernel` when not given), strides, dilations and pads, and resolves auto_pad
/// (SAME_UPPER, SAME_LOWER, VALID) with the shape of operand 0, so that later stages read plain numbers.
/// auto_pad is erased. Throws OperatorError for lists of wrong length or values out of range.
void normalise_window(RewriteContext& context, std::vector<std::int64_t> kernel);
Window window_of(const Attributes& attributes);
/// floor or ceil((in + pads - span) / stride) + 1; with ceil_mode, windows that start in the end padding are
/// dropped.
std::int64_t window_count(const Window& window, int i, std::int64_t input, bool ceil_mode);

/// Specs of the five window attributes, for records.
std::vector<AttributeSpec> window_attributes();

}  // namespace gcompile::ir
