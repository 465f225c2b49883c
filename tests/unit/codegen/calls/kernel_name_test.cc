// Names of functions: by what they compute.
#include "codegen/calls/kernel_name.h"

#include <gtest/gtest.h>

#include "codegen/memory/storage.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

using ir::ElementType;
using Words = std::vector<std::string>;

constexpr ElementType kFloat = ElementType::kFloat32;

TEST(CopyName, SaysWhichAxesTurn) {
  const ir::Shape shape = {1, 16, 4, 5};
  EXPECT_EQ(copy_name(shape, {320, 20, 5, 1}, {640, 40, 10, 1}).base, "copy_16x4x5");
  const KernelName turned = copy_name(shape, {320, 20, 5, 1}, {320, 1, 80, 16});
  EXPECT_EQ(turned.base, "reorder_16x4x5");
  EXPECT_EQ(turned.details, (Words{"123_to_231"}));
}

TEST(CopyName, KeepsTheNamesOfSizesWhole) {
  ir::Sizes sizes;
  const ir::Dim batch = ir::Dim::symbol(sizes.add_symbol({"Batch.Size", {1, 4}, 1}));
  const ir::Dim rows = ir::Dim::symbol(sizes.add_symbol({"max_seq_len_in_batch", {1, 9}, 1}));
  const ir::Dim height = ir::Dim::symbol(sizes.add_symbol({"height", {1, 10}, 1, 32})) * 32;
  const ir::SizesScope scope(&sizes);
  const auto name = [](const ir::Shape& shape) {
    const ir::Shape strides = ir::row_major_strides(shape);
    return copy_name(shape, strides, strides).base;
  };
  EXPECT_EQ(name({rows, 32}), "copy_max_seq_len_in_batch_x32");
  EXPECT_EQ(name({1, batch, rows}), "copy_batch_size_x_max_seq_len_in_batch");
  EXPECT_EQ(name({3, height}), "copy_3x_height");
  EXPECT_EQ(name({floor_div(height, 8), 4, 5}), "copy_height_over_8_x4x5");
  EXPECT_EQ(name({batch * batch, batch * rows}), "copy_batch_size_times_batch_size_x_n");
}

TEST(SizeName, SaysTheFormula) {
  ir::Sizes sizes;
  const ir::Dim past = ir::Dim::symbol(sizes.add_symbol({"past", {0, 9}, 1}));
  const ir::Dim rows = ir::Dim::symbol(sizes.add_symbol({"rows", {1, 9}, 1}));
  const ir::Dim height = ir::Dim::symbol(sizes.add_symbol({"height", {1, 10}, 1, 32})) * 32;
  const ir::SizesScope scope(&sizes);
  EXPECT_EQ(size_name(past + rows), "past_plus_rows");
  EXPECT_EQ(size_name(past + rows * 3), "past_plus_rows_times_3");
  EXPECT_EQ(size_name(rows * past * 16), "past_times_rows_times_16");
  EXPECT_EQ(size_name(1 - past), "minus_past_plus_1");
  EXPECT_EQ(size_name(rows * -2), "minus_rows_times_2");
  EXPECT_EQ(size_name(floor_div(height, 8)), "height_over_8");
  EXPECT_EQ(size_name(floor_div(height, 64)), "floor_height_over_32_over_2");
  EXPECT_EQ(size_name(ir::max(past, 1)), "max_of_1_and_past");
  EXPECT_EQ(size_name(past * past + rows * rows * 16), "") << "many words";
  EXPECT_EQ(size_name(7), "");
}

TEST(LayoutText, SaysHowAxesLie) {
  const ir::TensorType image{kFloat, {1, 16, 4, 5}};
  EXPECT_EQ(layout_text(image, {320, 20, 5, 1}), "float32[1, 16, 4, 5]");
  EXPECT_EQ(layout_text(image, {320, 1, 80, 16}), "float32[1, 4, 5, 16] channels last");
  EXPECT_EQ(layout_text({kFloat, {3, 4}}, {1, 3}), "float32[4, 3] of axes 1, 0");
  EXPECT_EQ(layout_text({kFloat, {1, 4}}, {1, 1}), "float32[1, 4]");
  EXPECT_EQ(layout_text({kFloat, {}}, {}), "float32[]");
}

}  // namespace
}  // namespace gcompile
