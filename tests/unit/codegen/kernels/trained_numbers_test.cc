// Which numbers lie in the weights because training changes them.
#include "codegen/choice/trained_numbers.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "gtest/gtest.h"

namespace gcompile {
namespace {

ir::Scalar number(float value) { return ir::Scalar::of_real(ir::ElementType::kFloat32, value); }

TEST(TrainedNumbers, AnInitialiserWithAxesIsAWeightHoweverItLooks) {
  const TrainedNumbers numbers({{0.25, "slope"}}, {}, {0.25});
  EXPECT_EQ(numbers.name_of(number(0.25f)), "slope");
  EXPECT_EQ(numbers.name_of(number(0.5f)), std::nullopt);
}

TEST(TrainedNumbers, OthersAreWhereTheyLookComputed) {
  const TrainedNumbers numbers({}, {{0.5f, "half"}, {0.018658448f, "scale"}}, {0.7978846f});
  EXPECT_EQ(numbers.name_of(number(0.5f)), std::nullopt);
  EXPECT_EQ(numbers.name_of(number(0.018658448f)), "scale");
  EXPECT_EQ(numbers.name_of(number(0.018658449f * 3)), "");
  EXPECT_EQ(numbers.name_of(number(0.7978846f)), std::nullopt);
}

TEST(TrainedNumbers, EpsilonsAndRootsAreNotWhateverTheirAxes) {
  const float root = std::numbers::sqrt2_v<float>;
  const TrainedNumbers numbers({{1e-5f, "epsilon"}, {root, "root"}, {0.1f, "tenth"}}, {}, {});
  EXPECT_EQ(numbers.name_of(number(1e-5f)), std::nullopt);
  EXPECT_EQ(numbers.name_of(number(root)), std::nullopt);
  EXPECT_EQ(numbers.name_of(number(0.1f)), "tenth");
}

TEST(TrainedNumbers, ConstantsOfFormulasAreNot) {
  const TrainedNumbers numbers;
  const float root = std::numbers::sqrt2_v<float>;
  for (const float value : {1e-5f, 9.99999996e-13f, 0.044715f, 1.0f / 6, -1.0f / 6, 1.0f / 512, root,
                            1 / root, std::sqrt(3.0f), 1 / std::sqrt(96.0f), 3.0f, 1e-42f,
                            std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(numbers.name_of(number(value)), std::nullopt) << value;
}

TEST(TrainedNumbers, FewOfThoseThatTrainingMakesAreTakenForSuch) {
  std::mt19937 random(1);
  std::normal_distribution<float> values(0, 0.3f);
  const TrainedNumbers numbers;
  int missed = 0;
  for (int i = 0; i < 10000; ++i) missed += numbers.name_of(number(values(random))) == std::nullopt;
  EXPECT_LT(missed, 500);
}

TEST(TrainedNumbers, NumbersOf16BitsAreJudgedByTheDigitsOfTheirType) {
  for (const ir::ElementType type : {ir::ElementType::kFloat16, ir::ElementType::kBFloat16}) {
    const auto of = [type](double value) { return ir::Scalar::of_real(type, value); };
    const TrainedNumbers numbers({{of(0.25).real, "slope"}, {of(0.1).real, "tenth"}},
                                 {{of(0.317).real, "scale"}}, {of(0.7978846).real});
    EXPECT_EQ(numbers.name_of(of(0.25)), "slope");
    EXPECT_EQ(numbers.name_of(of(0.1)), "tenth");
    EXPECT_EQ(numbers.name_of(of(0.317)), "scale");
    int missed = 0;
    for (int i = 1; i < 1000; ++i) missed += numbers.name_of(of(0.7 + 0.000317 * i)) == std::nullopt;
    EXPECT_LT(missed, 100);
    // Kernels for the CPU have them as floats, which have few digits.
    const TrainedNumbers of_floats({}, {}, {}, true);
    const float widened = static_cast<float>(of(0.4437).real);
    EXPECT_EQ(of_floats.name_of(number(widened)), "");
    EXPECT_EQ(of_floats.name_of(number(0.5f)), std::nullopt);
    for (const double value : {0.5, 0.2, -0.7, 3.0, 1e-5, 0.7978846, 1e-42})
      EXPECT_EQ(numbers.name_of(of(value)), std::nullopt) << value;
  }
}

TEST(TrainedNumbers, NumbersOf64BitsAreJudgedByTheirDigits) {
  const auto of = [](double value) { return ir::Scalar::of_real(ir::ElementType::kFloat64, value); };
  const TrainedNumbers numbers({{0.25, "slope"}}, {}, {std::numbers::pi / 4});
  EXPECT_EQ(numbers.name_of(of(0.25)), "slope");
  for (const double value : {0.5, 0.2, -0.7, 1.0 / 6, std::numbers::sqrt2, 1 / std::sqrt(96.0), 1e-5, 3.0,
                             0.044715, std::numbers::pi / 4})
    EXPECT_EQ(numbers.name_of(of(value)), std::nullopt) << value;
  std::mt19937 random(1);
  std::normal_distribution<double> values(0, 0.3);
  int missed = 0;
  for (int i = 0; i < 10000; ++i) missed += numbers.name_of(of(values(random))) == std::nullopt;
  EXPECT_LT(missed, 500);
}

}  // namespace
}  // namespace gcompile
