#include "ir/ops/window.h"

#include <fmt/format.h>

namespace gcompile::ir {

void check_sizes(const char* name, const std::vector<std::int64_t>& values, std::size_t count,
                 std::int64_t lowest) {
  if (values.size() != count) {
    operator_error(fmt::format("attribute '{}' has {} values, {} expected", name, values.size(), count));
  }
  for (const std::int64_t v : values) {
    if (v < lowest || v > (1 << 30)) operator_error(fmt::format("attribute '{}' has the value {}", name, v));
  }
}

namespace {

void fill(Attributes& attributes, const char* name, std::size_t count, std::int64_t value,
          std::int64_t lowest) {
  if (!attributes.has(name)) attributes.set(name, std::vector<std::int64_t>(count, value));
  check_sizes(name, attributes.ints_of(name), count, lowest);
}

}  // namespace

void normalise_window(RewriteContext& context, std::vector<std::int64_t> kernel) {
  Attributes& attributes = context.mutable_attributes();
  const Shape shape = context.shape(0);
  if (shape.size() < 3)
    operator_error(fmt::format("input 0 must have spatial axes, its shape is {}", to_string(shape)));
  const std::size_t spatial = shape.size() - 2;
  if (!attributes.has("kernel_shape")) attributes.set("kernel_shape", std::move(kernel));
  fill(attributes, "kernel_shape", spatial, 1, 1);
  fill(attributes, "strides", spatial, 1, 1);
  fill(attributes, "dilations", spatial, 1, 1);
  const std::string mode = attributes.has("auto_pad") ? attributes.string_of("auto_pad") : "NOTSET";
  attributes.erase("auto_pad");
  if (mode != "NOTSET") attributes.erase("pads");
  fill(attributes, "pads", 2 * spatial, 0, 0);
  if (mode == "NOTSET" || mode == "VALID") return;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    operator_error(fmt::format("auto_pad '{}' is not known", printable(mode)));
  }
  Window window = window_of(attributes);
  for (int i = 0; i < window.spatial(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Dim input = shape[at + 2];
    const Dim output = ceil_div(input, window.strides[at]);
    const Dim padding = max(0, (output - 1) * window.strides[at] + window.span(i) - input);
    if (!padding.is_constant()) {
      operator_error(fmt::format("the padding by auto_pad depends on {}, the size of spatial axis {}",
                                 to_string(input), i),
                     fmt::format("a multiple of {} with --dim, as --dim NAME=LOW..HIGH:{}",
                                 window.strides[at], window.strides[at]));
    }
    const std::int64_t total = padding, small = total / 2;
    window.pads[at] = mode == "SAME_UPPER" ? small : total - small;
    window.pads[at + spatial] = total - window.pads[at];
  }
  attributes.set("pads", window.pads);
}

Window window_of(const Attributes& attributes) {
  return {attributes.ints_of("kernel_shape"), attributes.ints_of("strides"), attributes.ints_of("dilations"),
          attributes.ints_of("pads")};
}

Dim window_count(const Window& window, int i, Dim input, bool ceil_mode) {
  const auto at = static_cast<std::size_t>(i);
  const Dim room = input + window.begin(i) + window.end(i) - window.span(i);
  if (!always_less_equal(0, room)) {
    operator_error(fmt::format("a window of {} does not fit spatial axis {} of size {}", window.span(i), i,
                               to_string(input)));
  }
  const std::int64_t stride = window.strides[at];
  if (!ceil_mode) return floor_div(room, stride) + 1;
  const Dim count = ceil_div(room, stride) + 1;
  // The last one has to start before the end padding.
  return max(count - 1, min(count, ceil_div(input + window.begin(i), stride)));
}

std::vector<AttributeSpec> window_attributes() {
  return {{"auto_pad", AttributeKind::kString, std::nullopt},
          {"kernel_shape", AttributeKind::kInts, std::nullopt},
          {"strides", AttributeKind::kInts, std::nullopt},
          {"dilations", AttributeKind::kInts, std::nullopt},
          {"pads", AttributeKind::kInts, std::nullopt}};
}

}  // namespace gcompile::ir
