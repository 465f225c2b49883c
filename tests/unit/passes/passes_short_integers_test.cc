// Products of 16-bit integers: what is proven to fit into int32, at once or in parts of the channels, and
// what is not and stays in floats.

#include "passes/rules/integer_parts.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using passes::channels_of_exact_sums;
using passes::FactorRange;
using passes::WeightAxes;

constexpr FactorRange kSigned = {-32768, 32767}, kUnsigned = {0, 65535};

/// int8 [columns][channels], all of them `weight`.
std::int64_t exact_part(int weight, std::int64_t columns, std::int64_t channels, const FactorRange& range) {
  const ir::TensorType type{ir::ElementType::kInt8, {columns, channels}};
  const auto w = ir::Tensor::filled(type, ir::Scalar::of_integer(ir::ElementType::kInt8, weight));
  return channels_of_exact_sums(w, {}, {columns, channels, channels, 1, 1}, range);
}

TEST(ExactSums, EndWhereTheProofDoes) {
  // 32768 * 127 * 451 < 2^31 - 2^28 <= 32768 * 127 * 452.
  EXPECT_EQ(exact_part(127, 3, 451, kSigned), 451);
  EXPECT_EQ(exact_part(127, 3, 452, kSigned), 240);
  EXPECT_EQ(exact_part(-127, 3, 451, kSigned), 451);
  EXPECT_EQ(exact_part(127, 1, 225, kUnsigned), 225);
  EXPECT_EQ(exact_part(127, 1, 226, kUnsigned), 128);
  EXPECT_EQ(exact_part(-127, 1, 226, kUnsigned), 128);
  EXPECT_EQ(exact_part(127, 1, 8 * 448, kSigned), 448);
  EXPECT_EQ(exact_part(127, 1, 8 * 448 + 1, kSigned), 0);
  EXPECT_EQ(exact_part(0, 2, 1 << 20, kUnsigned), 1 << 20);
}

TEST(ExactSums, CountProductsOfEitherSignApart) {
  // 400 products of each sign: no sum has more than those of one sign where factors are not negative.
  ir::Tensor w(ir::TensorType{ir::ElementType::kInt8, {1, 400}});
  for (int i = 0; i < 400; ++i)
    w.set(i, ir::Scalar::of_integer(ir::ElementType::kInt8, i % 2 == 0 ? 127 : -127));
  const WeightAxes axes{1, 400, 400, 1, 1};
  EXPECT_EQ(channels_of_exact_sums(w, {}, axes, kUnsigned), 400);
  EXPECT_EQ(channels_of_exact_sums(w, {}, axes, {-65535, 65535}), 208);
  // A zero point makes all of one sign, and twice as large.
  const std::vector<std::int64_t> zeros = {-127};
  EXPECT_EQ(channels_of_exact_sums(w, zeros, axes, kUnsigned), 208);
}

TEST(ExactSums, PartsAreCutOutOfEveryLine) {
  const ir::Tensor w =
      ir::Tensor::of_ints(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 3, 2});
  EXPECT_EQ(passes::part_along(w, 1, 1, 3).ints(), (std::vector<std::int64_t>{2, 3, 4, 5, 8, 9, 10, 11}));
  EXPECT_EQ(passes::part_along(w, 0, 1, 2).ints(), (std::vector<std::int64_t>{6, 7, 8, 9, 10, 11}));
}

const char kParameters[] =
    "float sx = {0.0005}, float sw = {0.25}, float sb = {0.000125}, uint16 ux = {40000}, int16 zx = {-7},"
    " int8 zw = {5}, int8 far = {-120}, int16 farther = {-30000}, float[6] swn = {0.5, 0.25, 0.125, 0.5, "
    "0.75, 1.0}, int32[6] huge = {0, 1, 2, 3, "
    "400000000, 5}";

std::string graph(const std::string& inputs, const std::string& outputs, const std::string& nodes) {
  return "g (" + inputs + ") => (" + outputs + ") <" + kParameters + "> { " + nodes + " }";
}

TEST(ShortIntegers, ConvolutionsOfEitherSign) {
  const std::string tail = "y = Conv<pads = [1,1,1,1]>(dx, dw)";
  const auto conv = [&](const std::string& element, const std::string& zero, const std::string& weights) {
    return graph(element + "[1,4,6,5] x, int8[6,4,3,3] w_w", "float[1,6,6,5] y",
                 "dx = DequantizeLinear(x, sx" + zero + ")\n dw = DequantizeLinear" + weights + "\n" + tail);
  };
  for (const char* weights : {"(w_w, sw)", "(w_w, sw, zw)", "<axis = 0>(w_w, swn)"}) {
    expect_fires("conv-of-integers", conv("uint16", ", ux", weights), "ConvInteger DequantizeLinear");
    expect_fires("conv-of-integers", conv("int16", ", zx", weights), "ConvInteger DequantizeLinear");
    expect_fires("conv-of-integers", conv("uint16", "", weights), "ConvInteger DequantizeLinear");
  }
}

TEST(ShortIntegers, DepthwiseAndTransposed) {
  expect_fires("conv-of-integers",
               graph("uint16[2,6,5] x, int8[6,1,3] w_w", "float[2,6,3] y",
                     "dx = DequantizeLinear(x, sx, ux)\n dw = DequantizeLinear<axis = 0>(w_w, swn)\n"
                     " y = Conv<group = 6>(dx, dw)"),
               "ConvInteger DequantizeLinear");
  expect_fires("conv-transpose-of-integers",
               graph("int16[1,4,5,3] x, int8[4,6,2,3] w_w", "float[1,6,10,7] y",
                     "dx = DequantizeLinear(x, sx, zx)\n dw = DequantizeLinear(w_w, sw)\n"
                     " y = ConvTranspose<strides = [2,2]>(dx, dw)"),
               "ConvTransposeInteger DequantizeLinear");
}

TEST(ShortIntegers, LongSumsAreMadeInParts) {
  const auto product = [](const std::string& depth) {
    return graph(
        "uint16[3," + depth + "] x, int8[" + depth + ",5] w_w", "float[3,5] y",
        "dx = DequantizeLinear(x, sx, ux)\n dw = DequantizeLinear(w_w, sw, far)\n y = MatMul(dx, dw)");
  };
  expect_fires("matmul-of-integers", product("300"), "MatMulInteger DequantizeLinear");
  expect_fires("matmul-of-integers", product("700"),
               "Slice MatMulInteger Slice MatMulInteger DequantizeLinear DequantizeLinear Add");
  expect_fires(
      "conv-of-integers",
      graph("int16[1,80,4,3] x, int8[6,80,3,3] w_w, int32[6] w_b", "float[1,6,2,1] y",
            "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw, far)\n"
            " db = DequantizeLinear(w_b, sb)\n y = Conv(dx, dw, db)"),
      "DequantizeLinear Slice ConvInteger Slice ConvInteger Add DequantizeLinear DequantizeLinear Add");
}

TEST(ShortIntegers, WhatIsNotProvenStaysInFloats) {
  const auto conv = [](const std::string& inputs, const std::string& zero, const std::string& more = "") {
    return graph(inputs, "float[1,6,4,3] y",
                 "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw, " + zero + ")\n y = Conv" +
                     more + "(dx, dw)");
  };
  expect_refuses("conv-of-integers", conv("uint16[1,4,6,5] x, int16[6,4,3,3] w_w", "farther"), "int32");
  expect_refuses("conv-of-integers", conv("int16[1,120,6,5] x, int8[6,60,3,3] w_w", "far", "<group = 2>"),
                 "int32");
  expect_refuses("conv-of-integers", conv("int16[1,900,6,5] x, int8[6,900,3,3] w_w", "far"), "int32");
  const std::string product =
      "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w, sw)\n y = MatMul(dx, dw)";
  expect_refuses("matmul-of-integers", graph("uint16[3,4] x, int8[4,5] w", "float[3,5] y", product),
                 "only the run knows");
  expect_refuses("conv-transpose-of-integers",
                 graph("int16[1,4,5,3] x, int8[4,6,2,3] w_w", "float[1,12,6,5] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw)\n"
                       " y = ConvTranspose<group = 2>(dx, dw)"),
                 "groups");
}

TEST(ShortIntegers, ABiasThatMayNotFitIsAddedInFloats) {
  const auto conv = [](const std::string& bias) {
    return graph("int16[1,4,6,5] x, int8[6,4,3,3] w_w, int32[6] w_b", "float[1,6,4,3] y",
                 "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw)\n db = DequantizeLinear(" +
                     bias + ", sb)\n y = Conv(dx, dw, db)");
  };
  expect_fires("conv-of-integers", conv("w_b"), "DequantizeLinear ConvInteger Add DequantizeLinear");
  expect_fires("conv-of-integers", conv("huge"), "DequantizeLinear ConvInteger Reshape DequantizeLinear Add");
  const auto sums = [](const std::string& element) {
    return graph(
        element + "[3,4] x, int8[4,6] w_w", "float[3,6] y",
        "p = MatMulInteger(x, w_w)\n dp = DequantizeLinear(p, sb)\n db = DequantizeLinear(huge, sb)\n"
        " y = Add(dp, db)");
  };
  expect_fires("bias-of-integers", sums("int8"), "MatMulInteger Add DequantizeLinear");
  expect_refuses("bias-of-integers", sums("int16"), "may not fit");
}

TEST(ShortIntegers, MaximaOfThemMove) {
  expect_fires("dequantize-after-movement",
               graph("uint16[1,2,4,4] x", "float[1,2,2,2] y",
                     "dx = DequantizeLinear(x, sx, ux)\n"
                     " y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(dx)"),
               "MaxPool DequantizeLinear");
}

}  // namespace
}  // namespace gcompile::testing
