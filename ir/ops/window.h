#pragma once
// Attributes of sliding windows (convolutions and pools) in one normal form.

#include <functional>
#include <optional>

#include "ir/forms/work.h"
#include "ir/ops/support.h"

namespace gcompile::ir {

/// Fills kernel_shape (from `kernel` when not given), strides, dilations and pads, and resolves auto_pad
/// (SAME_UPPER, SAME_LOWER, VALID) with the shape of operand 0, so that later stages read plain numbers.
/// auto_pad is erased. Throws OperatorError for lists of wrong length or values out of range.
void normalise_window(RewriteContext& context, std::vector<std::int64_t> kernel);
/// Where the padding of auto_pad depends on sizes that only a run knows, operand 0 is padded, with zeros or
/// with the scalar that `border` makes, and auto_pad is VALID. Before normalise_window().
void pad_open_axes(RewriteContext& context, const std::vector<std::int64_t>& kernel,
                   const std::function<ValueId()>& border = {});
/// What pad_open_axes() puts around a spatial axis of operand 0: along all axes, before and then behind.
/// Nothing where auto_pad says otherwise, or where that is known.
std::optional<Shape> open_padding(const RewriteContext& context, const std::vector<std::int64_t>& kernel);
Window window_of(const Attributes& attributes);
/// floor or ceil((in + pads - span) / stride) + 1;
/// with ceil_mode, windows that start in the end padding are dropped.
Dim window_count(const Window& window, int i, Dim input, bool ceil_mode);

/// Refuses an attribute that has not `count` values from `lowest` to 2^30.
void check_sizes(const char* name, const std::vector<std::int64_t>& values, std::size_t count,
                 std::int64_t lowest);

/// Specs of the five window attributes, for records.
std::vector<AttributeSpec> window_attributes();

}  // namespace gcompile::ir
