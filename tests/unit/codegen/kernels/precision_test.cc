#include "codegen/choice/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/packing/weights.h"
#include "ir/graph/problem.h"

namespace gcompile {
using ir::fits_float16;
namespace {

ir::Tensor floats(const std::vector<double>& values) {
  ir::Tensor tensor(ir::TensorType{ir::ElementType::kFloat32, {static_cast<std::int64_t>(values.size())}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), ir::Scalar::of_real(ir::ElementType::kFloat32, values[i]));
  }
  return tensor;
}

std::vector<std::uint16_t> halves(const std::vector<float>& values, ir::ElementType type) {
  WeightBlob blob;
  blob.add_halves(values, type, "w", "");
  const ZeroedMemory bytes = blob.finish();
  std::vector<std::uint16_t> words(values.size());
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(words[0]));
  return words;
}

TEST(Precision, NamesAreThoseOfTheCommandLine) {
  for (const PrecisionFacts& facts : kPrecisions) {
    EXPECT_EQ(precision_from_name(facts.name), facts.precision);
    EXPECT_STREQ(facts_of(facts.precision).name, facts.name);
  }
  EXPECT_EQ(precision_from_name("fp64"), std::nullopt);
}

TEST(Precision, WeightsAreRoundedToNearestEven) {
  const float step = std::ldexp(1.0f, -10);  // of float16 above 1
  EXPECT_EQ(halves({1, 1 + step / 2, 1 + step * 1.5f, 1 + step * 0.51f, -2}, ir::ElementType::kFloat16),
            (std::vector<std::uint16_t>{0x3c00, 0x3c00, 0x3c02, 0x3c01, 0xc000}));
  const float coarse = std::ldexp(1.0f, -7);
  EXPECT_EQ(
      halves({1, 1 + coarse / 2, 1 + coarse * 1.5f, 1 + coarse * 0.51f, -2}, ir::ElementType::kBFloat16),
      (std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xc000}));
  // The smallest float16 are kept: tensor cores multiply them.
  EXPECT_EQ(halves({std::ldexp(1.0f, -24)}, ir::ElementType::kFloat16), std::vector<std::uint16_t>{1});
}

TEST(Precision, TheRangeOfFloat16) {
  EXPECT_TRUE(fits_float16(floats({0, 0})));
  EXPECT_TRUE(fits_float16(floats({-65504, 1e-30})));
  EXPECT_TRUE(fits_float16(floats({65519.99})));  // rounds to 65504
  EXPECT_FALSE(fits_float16(floats({1, -65520})));
  EXPECT_FALSE(fits_float16(floats({1e5})));
  EXPECT_TRUE(fits_float16(floats({std::ldexp(1.0, -14)})));
  EXPECT_FALSE(fits_float16(floats({std::ldexp(0.99, -14), 1e-7})));
  EXPECT_TRUE(fits_float16(floats({std::numeric_limits<double>::infinity(), 1})));  // it has infinities
}

TEST(Precision, TolerancesFollowTheSignificantBits) {
  EXPECT_EQ(product_tolerance(Precision::kFp32), 0);
  EXPECT_EQ(product_tolerance(Precision::kTf32), 16.0 / 2048);
  EXPECT_EQ(product_tolerance(Precision::kFp16), 16.0 / 2048);
  EXPECT_EQ(product_tolerance(Precision::kBf16), 16.0 / 256);
  EXPECT_EQ(product_tolerance(Precision::kBf16x3), 16.0 / 65536);
  EXPECT_EQ(product_tolerance(Precision::kBf16x6), 0);
}

}  // namespace
}  // namespace gcompile
