// Elements of 8, 4 and 2 bits that nothing computes in: codes, packing, and the conversions of Cast and
// QuantizeLinear by their forms against those of tensors.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "ir/forms/form.h"
#include "ir/ops/narrow.h"
#include "ir/ops/support.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr ElementType kFloats[] = {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                   ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ,
                                   ElementType::kFloat4E2M1};

std::vector<double> values_of(ElementType type) {
  std::set<double> values;
  for (int code = 0; code < 1 << ir::bits_of(type); ++code) {
    const double value = ir::small_float_value(type, static_cast<std::uint8_t>(code));
    if (std::isfinite(value)) values.insert(value);
  }
  return {values.begin(), values.end()};
}

/// All values, all halves between them and their neighbours, and what is beyond.
Tensor numbers_of(ElementType type) {
  std::vector<float> numbers = {0.0f, -0.0f, 1e-30f, 1e6f, -1e6f, INFINITY, -INFINITY, NAN};
  const std::vector<double> values = values_of(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    numbers.push_back(static_cast<float>(values[i]));
    if (i == 0) continue;
    const float half = static_cast<float>((values[i] + values[i - 1]) / 2);
    numbers.insert(numbers.end(), {half, std::nextafter(half, 1e9f), std::nextafter(half, -1e9f)});
  }
  return Tensor::of_floats(numbers, {static_cast<std::int64_t>(numbers.size())});
}

Tensor cast_to(const Tensor& x, ElementType to, std::int64_t saturate = 1, const std::string& mode = "up") {
  OneNode node{.op = "Cast", .operands = {&x}};
  node.attributes.set("to", ir::onnx_number_of(to));
  node.attributes.set("saturate", saturate);
  node.attributes.set("round_mode", mode);
  return run(node)[0];
}

bool is_same(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

TEST(SmallFloats, EveryCodeIsItsValues) {
  for (const ElementType type : kFloats) {
    for (int code = 0; code < 1 << ir::bits_of(type); ++code) {
      const double value = ir::small_float_value(type, static_cast<std::uint8_t>(code));
      if (std::isnan(value)) continue;
      EXPECT_EQ(ir::small_float_code(type, value), code) << name_of(type);
    }
  }
  EXPECT_EQ(ir::largest_of(ElementType::kFloat8E4M3FN), 448);
  EXPECT_EQ(ir::largest_of(ElementType::kFloat8E4M3FNUZ), 240);
  EXPECT_EQ(ir::largest_of(ElementType::kFloat8E5M2), 57344);
  EXPECT_EQ(ir::largest_of(ElementType::kFloat8E5M2FNUZ), 57344);
  EXPECT_EQ(ir::largest_of(ElementType::kFloat4E2M1), 6);
  EXPECT_EQ(ir::small_float_value(ElementType::kFloat8E5M2, 0xfc), -kInfinity);
}

/// The expression of Cast and the conversion of one element are written apart.
TEST(SmallFloats, CastRoundsAndSaturates) {
  for (const ElementType type : kFloats) {
    const Tensor x = numbers_of(type);
    const double largest = ir::largest_of(type);
    for (const std::int64_t saturate : {1, 0}) {
      const Tensor y = cast_to(x, type, saturate);
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const double given = x.real_at(i);
        const double inside = std::abs(given) > largest && saturate ? std::copysign(largest, given) : given;
        const double want = ir::round_to(type, inside);
        EXPECT_TRUE(is_same(y.real_at(i), want))
            << name_of(type) << ": " << given << " is " << y.real_at(i) << ", not " << want;
      }
    }
  }
}

TEST(SmallFloats, DoublesAreRoundedOnce) {
  Tensor x({ElementType::kFloat64, {2}});
  x.set(0, ir::Scalar::of_real(ElementType::kFloat64, 1.0625 + 1e-12));
  x.set(1, ir::Scalar::of_real(ElementType::kFloat64, 1.0625));
  EXPECT_EQ(reals(cast_to(x, ElementType::kFloat8E4M3FN)), (std::vector<double>{1.125, 1}));
}

TEST(SmallFloats, PowersOfTwoRoundAsTheModeSays) {
  const ElementType type = ElementType::kFloat8E8M0;
  const double least = std::ldexp(1.0, -127), largest = std::ldexp(1.0, 127);
  const Tensor x = Tensor::of_floats(
      std::vector<float>{1, 1.25f, 1.5f, 3, 0.1f, 0, 1e-40f, static_cast<float>(least), INFINITY, 3e38f},
      {10});
  EXPECT_EQ(reals(cast_to(x, type, 1, "up")),
            (std::vector<double>{1, 2, 2, 4, 0.125, least, least, least, largest, largest}));
  EXPECT_EQ(reals(cast_to(x, type, 1, "down")),
            (std::vector<double>{1, 1, 1, 2, 0.0625, least, least, least, largest, largest}));
  EXPECT_EQ(reals(cast_to(x, type, 1, "nearest")),
            (std::vector<double>{1, 1, 2, 4, 0.125, least, least, least, largest, largest}));
  const std::vector<double> open = reals(cast_to(x, type, 0, "nearest"));
  for (const std::size_t i : {5, 6, 8, 9}) EXPECT_TRUE(std::isnan(open[i])) << i;
  EXPECT_EQ(open[7], least);
  const Tensor none = Tensor::of_floats(std::vector<float>{NAN, -2}, {2});
  EXPECT_TRUE(std::isnan(cast_to(none, type).real_at(0)));
  EXPECT_EQ(cast_to(none, type).real_at(1), least);
  EXPECT_EQ(error_of([&] { cast_to(x, type, 1, "even"); }),
            "attribute 'round_mode' is 'even', which is not known");
}

TEST(SmallIntegers, CastKeepsTheLowBits) {
  const Tensor x = floats({-9, -8.7f, -1, 0, 7.9f, 8, 15, 17}, {8});
  EXPECT_EQ(cast_to(x, ElementType::kInt4).ints(), (std::vector<std::int64_t>{7, -8, -1, 0, 7, -8, -1, 1}));
  EXPECT_EQ(cast_to(x, ElementType::kUInt4).ints(), (std::vector<std::int64_t>{7, 8, 15, 0, 7, 8, 15, 1}));
  EXPECT_EQ(cast_to(x, ElementType::kInt2).ints(), (std::vector<std::int64_t>{-1, 0, -1, 0, -1, 0, -1, 1}));
  EXPECT_EQ(cast_to(x, ElementType::kUInt2).ints(), (std::vector<std::int64_t>{3, 0, 3, 0, 3, 0, 3, 1}));
  const Tensor wide = ints({200, -200, 0x100000001}, {3});
  EXPECT_EQ(cast_to(wide, ElementType::kInt4).ints(), (std::vector<std::int64_t>{-8, -8, 1}));
  EXPECT_EQ(reals(cast_to(cast_to(wide, ElementType::kInt2), ElementType::kFloat32)),
            (std::vector<double>{0, 0, 1}));
}

TEST(SmallIntegers, LieInBytesFromTheLowestBits) {
  const Tensor y = cast_to(ints({1, 2, 3, -1, 1}, {5}), ElementType::kInt2);
  ASSERT_EQ(y.bytes().size(), 2u);
  EXPECT_EQ(std::to_integer<int>(y.bytes()[0]), 0b11'11'10'01);
  EXPECT_EQ(std::to_integer<int>(y.bytes()[1]), 0b01);
  const Tensor filled =
      Tensor::filled({ElementType::kUInt4, {3}}, ir::Scalar::of_integer(ElementType::kUInt4, 9));
  EXPECT_EQ(filled.ints(), (std::vector<std::int64_t>{9, 9, 9}));
}

Tensor quantised(const Tensor& x, float scale, const Tensor& zero) {
  const Tensor by = floats({scale}, {});
  return run({.op = "QuantizeLinear", .operands = {&x, &by, &zero}})[0];
}

TEST(SmallElements, QuantizeLinearSaturates) {
  const Tensor x = floats({-100, -3, 0.5f, 1.5f, 2.5f, 100, NAN}, {7});
  const Tensor four = cast_to(ints({1}, {}), ElementType::kInt4),
               two = cast_to(ints({1}, {}), ElementType::kUInt2);
  EXPECT_EQ(quantised(x, 1, four).ints(), (std::vector<std::int64_t>{-8, -2, 1, 3, 3, 7, 0}));
  EXPECT_EQ(quantised(x, 1, two).ints(), (std::vector<std::int64_t>{0, 0, 1, 3, 3, 3, 0}));
  const Tensor real = cast_to(floats({0}, {}), ElementType::kFloat8E4M3FN);
  EXPECT_EQ(quantised(floats({1e5f, 200}, {2}), 2, real).real_at(0), 448);
  EXPECT_EQ(quantised(floats({1e5f, 200}, {2}), 2, real).real_at(1), 96);
  const Tensor power = cast_to(floats({1}, {}), ElementType::kFloat8E8M0);
  EXPECT_EQ(error_of([&] { quantised(x, 1, power); }), "quantising to float8e8m0 is not supported");
}

/// UnpackBits undoes PackBits, of every value.
TEST(SmallElements, BitsArePackedAndUnpacked) {
  for (const ElementType type : {ElementType::kInt4, ElementType::kUInt4, ElementType::kInt2,
                                 ElementType::kUInt2, ElementType::kFloat4E2M1}) {
    const std::int64_t count = 1 << ir::bits_of(type), more = 8 / ir::bits_of(type) - 1;
    Tensor packed({type, {count - 1}}), wide({ir::byte_type(type), {count - 1 + more}});
    for (std::int64_t i = 0; i < count - 1; ++i) {
      const ir::Scalar value =
          is_float(type)
              ? ir::Scalar::of_real(type, ir::small_float_value(type, static_cast<std::uint8_t>(i + 1)))
              : ir::Scalar::of_integer(type, i + 1);
      packed.set(i, value);
      wide.set(i, ir::cast(value, ir::byte_type(type)));
    }
    OneNode pack{.op = "PackBits", .operands = {&wide}, .domain = "gcompile"};
    pack.attributes.set("to", ir::onnx_number_of(type));
    const Tensor bytes = run(pack)[0];
    ASSERT_EQ(bytes.bytes().size(), packed.bytes().size());
    for (std::size_t i = 0; i < bytes.bytes().size(); ++i) EXPECT_EQ(bytes.bytes()[i], packed.bytes()[i]);
    const Tensor shape = ints({count - 1}, {1});
    OneNode unpack{.op = "UnpackBits", .operands = {&bytes, &shape}, .domain = "gcompile", .known = true};
    unpack.attributes.set("to", ir::onnx_number_of(type));
    const Tensor back = run(unpack)[0];
    for (std::int64_t i = 0; i < count - 1; ++i) {
      EXPECT_TRUE(is_same(back.real_at(i), wide.real_at(i))) << name_of(type) << " " << i;
    }
  }
}

TEST(SmallElements, NothingComputesInThem) {
  for (const ElementType type : {ElementType::kInt4, ElementType::kFloat8E5M2, ElementType::kFloat4E2M1}) {
    const Tensor x = cast_to(floats({1, 2}, {2}), type);
    EXPECT_EQ(error_of([&] {
                run({.op = "Add", .operands = {&x, &x}});
              }),
              "input 0 has type " + std::string(name_of(type)) + ", in which nothing computes");
    const Tensor condition = cast_to(ints({1, 0}, {2}), ElementType::kBool);
    EXPECT_TRUE(run({.op = "Where", .operands = {&condition, &x, &x}})[0].identical(x));
  }
}

}  // namespace
}  // namespace gcompile::testing
