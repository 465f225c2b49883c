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
  EXPECT_EQ(numbers.name_of(number(0.018658449f * 3)), "number");
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

}  // namespace
}  // namespace gcompile
