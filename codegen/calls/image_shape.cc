#include "codegen/calls/image_shape.h"

#include <fmt/format.h>

#include <utility>

namespace gcompile {

using ir::Shape;

std::string ImageShape::text(const std::string& name, SizeParameters& sizes) const {
  constexpr std::size_t kLineWidth = 110;
  const ir::Dim all[] = {batch, in_h, in_w, in_c, out_h, out_w, out_c, pixel, row, image};
  // Its members are ints, but for strides.
  const auto count = [&](ir::Dim size) { return sizes.as_int(size); };
  const std::string in[] = {count(batch), count(in_h), count(in_w), count(in_c)};
  const std::string out[] = {count(out_h), count(out_w), count(out_c)};
  const std::string steps[] = {sizes(pixel), sizes(row), sizes(image)};
  const std::string members[] = {
      fmt::format("/*batch*/ {},", in[0]),
      fmt::format("/*in h, w, c*/ {}, {}, {},", in[1], in[2], in[3]),
      fmt::format("/*out h, w, c*/ {}, {}, {},", out[0], out[1], out[2]),
      fmt::format("/*kernel*/ {}, {},", kernel_h, kernel_w),
      fmt::format("/*stride*/ {}, {},", stride_h, stride_w),
      fmt::format("/*pad top, left*/ {}, {},", pad_top, pad_left),
      fmt::format("/*dilation*/ {}, {},", dilation_h, dilation_w),
      fmt::format("/*groups*/ {},", groups),
      fmt::format("/*strides of pixel, row, image*/ {}, {}, {}}};", steps[0], steps[1], steps[2])};
  std::string text =
      fmt::format("  {} ConvShape {}{{\n", ir::are_constant(all) ? "static constexpr" : "const", name);
  std::string line(5, ' ');
  for (const std::string& member : members) {
    if (line.size() + 1 + member.size() > kLineWidth) text += std::exchange(line, std::string(5, ' ')) + "\n";
    line += " " + member;
  }
  return text + line + "\n";
}

namespace {

/// An image that is one pixel wide becomes one row: kernels go along rows.
void turn(ImageShape& s) {
  s.in_w = std::exchange(s.in_h, 1);
  s.out_w = std::exchange(s.out_h, 1);
  s.kernel_w = std::exchange(s.kernel_h, 1);
  s.stride_w = std::exchange(s.stride_h, 1);
  s.dilation_w = std::exchange(s.dilation_h, 1);
  s.pad_left = std::exchange(s.pad_top, 0);
  s.pad_right = std::exchange(s.pad_bottom, 0);
  s.pixel = s.row;
  s.row = s.pixel * s.in_w;
}

}  // namespace

ImageShape image_shape(const Shape& x, const ir::Shape& strides, const Shape& y, const ir::Window& window,
                       std::int64_t groups) {
  const bool flat = x.size() == 3;
  const std::size_t h = 2, w = flat ? 2 : 3;
  const auto of = [&](const std::vector<std::int64_t>& values, bool height) {
    return flat ? (height ? 1 : values[0]) : values[height ? 0 : 1];
  };
  ImageShape s{};
  s.batch = x[0];
  s.in_c = x[1];
  s.out_c = y[1];
  s.in_h = flat ? ir::Dim(1) : x[h];
  s.in_w = x[w];
  s.out_h = flat ? ir::Dim(1) : y[h];
  s.out_w = y[w];
  s.kernel_h = of(window.kernel, true);
  s.kernel_w = of(window.kernel, false);
  s.stride_h = of(window.strides, true);
  s.stride_w = of(window.strides, false);
  s.dilation_h = of(window.dilations, true);
  s.dilation_w = of(window.dilations, false);
  s.pad_top = flat ? 0 : window.begin(0);
  s.pad_left = window.begin(flat ? 0 : 1);
  s.pad_bottom = flat ? 0 : window.end(0);
  s.pad_right = window.end(flat ? 0 : 1);
  s.groups = groups;
  s.pixel = strides[w];
  s.row = flat ? s.pixel * s.in_w : strides[h];
  s.image = strides[0];
  if (s.in_w == 1 && s.out_w == 1 && s.kernel_w == 1 && s.pad_left == 0) turn(s);
  return s;
}

/// Result axes that count pixels, for an N, C, spatial... result.
std::vector<int> pixel_axes(std::size_t rank) {
  std::vector<int> rows = {0};
  for (std::size_t axis = 2; axis < rank; ++axis) rows.push_back(static_cast<int>(axis));
  return rows;
}

}  // namespace gcompile
