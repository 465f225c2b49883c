// Images as kernels take them: 1-D ones, and those that are one pixel wide, are one row.

#include "codegen/calls/image_shape.h"

#include <gtest/gtest.h>

namespace gcompile {
namespace {

std::string text_of(const ImageShape& shape) {
  SizeParameters sizes;
  return shape.text("s", sizes);
}

/// Channels lie last.
const ir::Shape kFlat = {2, 3, 9}, kFlatStrides = {27, 1, 3}, kFlatResult = {2, 5, 4};
const ir::Window kFlatWindow = {{3}, {2}, {2}, {1, 2}};

TEST(ImageShape, AFlatImageIsOneRow) {
  const ImageShape s = image_shape(kFlat, kFlatStrides, kFlatResult, kFlatWindow, 1);
  EXPECT_EQ(s.in_h, 1);
  EXPECT_EQ(s.in_w, 9);
  EXPECT_EQ(s.out_h, 1);
  EXPECT_EQ(s.out_w, 4);
  EXPECT_EQ(s.kernel_h, 1);
  EXPECT_EQ(s.kernel_w, 3);
  EXPECT_EQ(s.stride_w, 2);
  EXPECT_EQ(s.dilation_w, 2);
  EXPECT_EQ(s.pad_top, 0);
  EXPECT_EQ(s.pad_left, 1);
  EXPECT_EQ(s.pad_bottom, 0);
  EXPECT_EQ(s.pad_right, 2);
  EXPECT_EQ(s.pixel, 3);
  EXPECT_EQ(s.row, 27);
  EXPECT_EQ(s.image, 27);
}

TEST(ImageShape, AnImageOnePixelWideIsTheSameRow) {
  const ir::Window window = {{3, 1}, {2, 1}, {2, 1}, {1, 0, 2, 0}};
  const ImageShape flat = image_shape(kFlat, kFlatStrides, kFlatResult, kFlatWindow, 1);
  const ImageShape s = image_shape({2, 3, 9, 1}, {27, 1, 3, 3}, {2, 5, 4, 1}, window, 1);
  EXPECT_EQ(text_of(s), text_of(flat));
  EXPECT_EQ(s.pad_bottom, 0);
  EXPECT_EQ(s.pad_right, 2);
}

// Columns that the window reads beside the image are no row's.
TEST(ImageShape, AWindowWiderThanTheImageStaysOne) {
  const ir::Window window = {{3, 3}, {2, 1}, {2, 1}, {1, 1, 2, 1}};
  const ImageShape s = image_shape({2, 3, 9, 1}, {27, 1, 3, 3}, {2, 5, 4, 1}, window, 1);
  EXPECT_EQ(s.in_h, 9);
  EXPECT_EQ(s.in_w, 1);
  EXPECT_EQ(s.kernel_w, 3);
  EXPECT_EQ(s.pad_left, 1);
}

}  // namespace
}  // namespace gcompile
