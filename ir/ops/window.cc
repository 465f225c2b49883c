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

/// The padding of SAME_UPPER and SAME_LOWER: as many windows as strides begin on the axis.
Dim same_padding(Dim input, std::int64_t stride, std::int64_t span) {
  const Dim total = (ceil_div(input, stride) - 1) * stride + span - input;
  // It is span - stride at least, and less than span.
  if (span >= stride) return total;
  return span == 1 ? Dim(0) : max(0, total);
}

bool is_same(const std::string& mode) { return mode == "SAME_UPPER" || mode == "SAME_LOWER"; }

}  // namespace

std::optional<Shape> open_padding(const RewriteContext& context, const std::vector<std::int64_t>& kernel) {
  const Attributes& attributes = context.attributes();
  const Shape& shape = context.shape(0);
  const std::string mode = attributes.has("auto_pad") ? attributes.string_of("auto_pad") : "NOTSET";
  if (!is_same(mode) || are_constant(shape) || shape.size() != kernel.size() + 2) return std::nullopt;
  Attributes numbers;
  numbers.set("kernel_shape", attributes.has("kernel_shape") ? attributes.ints_of("kernel_shape") : kernel);
  for (const char* name : {"strides", "dilations"}) {
    if (attributes.has(name)) numbers.set(name, attributes.ints_of(name));
    fill(numbers, name, kernel.size(), 1, 1);
  }
  fill(numbers, "pads", 2 * kernel.size(), 0, 0);
  check_sizes("kernel_shape", numbers.ints_of("kernel_shape"), kernel.size(), 1);
  const Window window = window_of(numbers);
  Shape before(2), behind(2);
  for (int i = 0; i < window.spatial(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Dim total = same_padding(shape[at + 2], window.strides[at], window.span(i));
    const Dim small = floor_div(total, 2);
    before.push_back(mode == "SAME_UPPER" ? small : total - small);
    behind.push_back(total - before.back());
  }
  before.insert(before.end(), behind.begin(), behind.end());
  return are_constant(before) ? std::nullopt : std::optional(std::move(before));
}

void pad_open_axes(RewriteContext& context, const std::vector<std::int64_t>& kernel,
                   const std::function<ValueId()>& border) {
  const auto pads = open_padding(context, kernel);
  if (!pads) return;
  std::vector<ValueId> operands = {context.operand_id(0), context.constant_ints(*pads)};
  if (border) operands.push_back(border());
  context.set_operand(0, context.emit("Pad", std::move(operands)));
  context.mutable_attributes().set("auto_pad", std::string("VALID"));
}

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
  if (!is_same(mode)) {
    operator_error(fmt::format("auto_pad '{}' is not known", printable(mode)));
  }
  Window window = window_of(attributes);
  for (int i = 0; i < window.spatial(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Dim input = shape[at + 2];
    const Dim padding = same_padding(input, window.strides[at], window.span(i));
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
  // Where the last window would begin a stride before the first there is none, and the result is empty.
  if (!always_less_equal(0, room + (room.is_constant() ? window.strides[at] : 0))) {
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
