// What the programs of a project do with tensors: files, random values, and the comparison of the self test.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gcrt/app/run.h"
#include "gcrt/app/selftest.h"

namespace GCRT_NAMESPACE {
namespace {

struct Entry {
  const char* name;
  const char* c_name;
  const char* element;
  std::size_t element_bytes, bytes, offset;
  int rank;
  std::int64_t shape[2];
};

Tensor tensor_of(const char* element, std::size_t element_bytes, std::int64_t count) {
  Tensor out(Entry{
      "x", "x", element, element_bytes, element_bytes * static_cast<std::size_t>(count), 0, 1, {count, 0}});
  // Several elements lie in a byte, and the last byte may have room for more.
  if (out.packed_bits() > 0) out.size = static_cast<std::size_t>(count * out.packed_bits() + 7) / 8;
  return out;
}

std::string temporary_path() {
  return ::testing::TempDir() + "app_test_" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".npy";
}

TEST(AppTensor, ComesBackFromAFileInEveryElementType) {
  for (const ElementInFiles& known : kElementsInFiles) {
    const std::string element = known.element;
    const std::size_t bytes = element == "bfloat16" ? 2 : npy_type_name(known.type).bytes;
    Tensor tensor = tensor_of(known.element, bytes, 5);
    std::uint64_t random = 1;
    tensor.fill(&random);
    tensor.write(temporary_path());
    Tensor back = tensor_of(known.element, bytes, 5);
    back.read(temporary_path());
    // Nothing is said of the bits behind the last element.
    if (tensor.packed_bits() > 0) {
      EXPECT_EQ(back.unpacked(), tensor.unpacked()) << element;
    } else {
      EXPECT_EQ(back.bytes, tensor.bytes) << element;
    }
    EXPECT_EQ(tensor.text(), element + "[5]");
  }
}

TEST(AppTensor, RefusesAnotherShapeOrType) {
  tensor_of("float32", 4, 5).write(temporary_path());
  Tensor other = tensor_of("float32", 4, 6);
  EXPECT_EXIT(other.read(temporary_path()), ::testing::ExitedWithCode(1),
              "is not float32\\[6\\], as 'x' must be");
  Tensor integers = tensor_of("int32", 4, 5);
  EXPECT_EXIT(integers.read(temporary_path()), ::testing::ExitedWithCode(1), "is not int32");
  EXPECT_EXIT(npy_type_of("string"), ::testing::ExitedWithCode(1), "no form in files");
}

TEST(AppTensor, RoundsToBfloat16) {
  EXPECT_EQ(bfloat16_of(0x3f808000u), 0x3f80u);  // half way: to even
  EXPECT_EQ(bfloat16_of(0x3f818000u), 0x3f82u);
  EXPECT_EQ(bfloat16_of(0x7f800001u), 0x7fc0u) << "a NaN stays one";
  EXPECT_EQ(bfloat16_of(0xff800000u), 0xff80u);
}

TEST(AppTensor, FillsFloatsBelowOne) {
  for (const char* element : {"float16", "bfloat16", "float32", "float64"}) {
    Tensor tensor = tensor_of(element,
                              element == std::string("float32")   ? 4
                              : element == std::string("float64") ? 8
                                                                  : 2,
                              500);
    std::uint64_t random = 3;
    tensor.fill(&random);
    double least = 1, most = -1;
    for (std::size_t i = 0; i < 500; ++i) {
      const double value = float_at(element, tensor.bytes.data() + i * tensor.element_bytes);
      ASSERT_LE(std::fabs(value), 1.0) << element;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    EXPECT_LT(least, -0.5) << element;
    EXPECT_GT(most, 0.5) << element;
  }
}

/// Wrong elements of one float32 tensor whose values are `actual`.
std::size_t wrong(const std::vector<float>& expected, const std::vector<float>& actual,
                  const Tolerance& tolerance) {
  Tensor tensor = tensor_of("float32", 4, static_cast<std::int64_t>(actual.size()));
  std::memcpy(tensor.bytes.data(), actual.data(), tensor.size);
  std::vector<unsigned char> bytes(tensor.size);
  std::memcpy(bytes.data(), expected.data(), tensor.size);
  return wrong_floats(tensor, bytes.data(), tolerance);
}

TEST(SelfTest, TakesTheRoundingOfFloatsAndNoMore) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(wrong({1, 1}, {1.0001f, 0.9999f}, {}), 0u);
  EXPECT_EQ(wrong({1, 1}, {1.0002f, 1}, {}), 1u);
  EXPECT_EQ(wrong({0, 1}, {9e-6f, 1}, {}), 0u);
  EXPECT_EQ(wrong({nan, infinity}, {nan, infinity}, {}), 0u);
  EXPECT_EQ(wrong({nan, infinity, 1}, {1, -infinity, nan}, {}), 3u);
}

TEST(SelfTest, AllowsShorterFactorsMoreButNotEverywhere) {
  const Tolerance tolerance = {false, 1e-2, 1.0 / 16};
  const std::vector<float> ones(100, 1.0f);
  std::vector<float> actual = ones;
  actual[3] = 1.05f;
  EXPECT_EQ(wrong(ones, actual, tolerance), 0u);
  EXPECT_EQ(wrong(ones, actual, {}), 1u);
  EXPECT_EQ(wrong(ones, std::vector<float>(100, 1.05f), tolerance), 100u)
      << "all are off by more than is typical";
}

TEST(SelfTest, ComparesIntegersBitForBitButForOneInAThousand) {
  Tensor tensor = tensor_of("uint8", 1, 2000);
  std::vector<unsigned char> expected(2000);
  tensor.bytes[7] = 1;
  EXPECT_EQ(wrong_integers(tensor, expected.data(), {}), 1u);
  EXPECT_EQ(wrong_integers(tensor, expected.data(), {true, 0, 0}), 0u);
  tensor.bytes[8] = 2;
  EXPECT_EQ(wrong_integers(tensor, expected.data(), {true, 0, 0}), 1u) << "off by two";
  tensor.bytes[8] = tensor.bytes[9] = 1;
  EXPECT_EQ(wrong_integers(tensor, expected.data(), {true, 0, 0}), 3u) << "three of two thousand";
}

}  // namespace
}  // namespace GCRT_NAMESPACE
