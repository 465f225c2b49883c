// Names of functions: by what they compute.
#include "codegen/calls/kernel_name.h"

#include <gtest/gtest.h>

#include "codegen/memory/storage.h"

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
