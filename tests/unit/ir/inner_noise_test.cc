// The noise of rounding inside of operators: programs of floats that are right are not held to be wrong, and
// the same programs with an error planted are.

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "driver/verify/verify_reference.h"
#include "gtest/gtest.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using Floats = std::vector<float>;

ir::Tensor tensor_of(const Floats& values, const ir::Shape& shape) {
  ir::Tensor out({ir::ElementType::kFloat32, shape});
  for (std::int64_t i = 0; i < out.count(); ++i)
    out.set(i, ir::Scalar::of_real(ir::ElementType::kFloat32,
                                   static_cast<double>(values[static_cast<std::size_t>(i)])));
  return out;
}

Floats random_floats(std::int64_t count, double scale, std::uint64_t seed) {
  Numbers numbers(seed);
  Floats out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(scale * numbers.real() * 0.7071 + 1e-3 * numbers.real()));
  return out;
}

/// Whether the first output of the model is right as verify has it; `same`:
/// whether the tolerance alone says so.
struct Judgement {
  bool right = false, same = false;
};

Judgement judge(const ir::Graph& graph, const std::map<std::string, ir::Tensor>& inputs,
                const ir::Tensor& actual) {
  const Reference reference(graph);
  const CaseReference values(reference, inputs, Precision::kFp32);
  const Comparison comparison = compare(values.get().outputs[0], actual);
  if (comparison.same) return {true, true};
  return {is_noise(comparison, values.noise().outputs[0]), false};
}

// Recurrences ----------------------------------------------------------------------------------------------

constexpr std::size_t kSteps = 60, kHidden = 24, kInputs = 4;

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

/// One row of one direction as a kernel of floats computes it.
/// `planted`: what is added to a state at one step.
struct Recurrence {
  std::size_t gates;
  Floats x, w, r, b;
  float planted = 0;
  std::size_t planted_step = 0;

  float from(std::size_t gate, std::size_t j, std::size_t step, const Floats& h,
             bool with_state = true) const {
    const std::size_t row = gate * kHidden + j;
    float sum = b[row] + b[gates * kHidden + row];
    for (std::size_t k = 0; k < kInputs; ++k) sum += w[row * kInputs + k] * x[step * kInputs + k];
    for (std::size_t k = 0; with_state && k < kHidden; ++k) sum += r[row * kHidden + k] * h[k];
    return sum;
  }

  Floats run() const {
    Floats h(kHidden), c(kHidden), y;
    for (std::size_t step = 0; step < kSteps; ++step) {
      const Floats before = h;
      Floats scaled(kHidden);
      for (std::size_t j = 0; j < kHidden && gates == 3; ++j)
        scaled[j] = sigmoid(from(1, j, step, before)) * before[j];
      for (std::size_t j = 0; j < kHidden; ++j) {
        if (gates == 1) h[j] = std::tanh(from(0, j, step, before));
        if (gates == 3) {
          const float update = sigmoid(from(0, j, step, before));
          h[j] = (1 - update) * std::tanh(from(2, j, step, scaled)) + update * before[j];
        }
        if (gates == 4) {
          c[j] = sigmoid(from(2, j, step, before)) * c[j] +
                 sigmoid(from(0, j, step, before)) * std::tanh(from(3, j, step, before));
          h[j] = sigmoid(from(1, j, step, before)) * std::tanh(c[j]);
        }
      }
      if (step == planted_step) h[3] += planted;
      y.insert(y.end(), h.begin(), h.end());
    }
    return y;
  }
};

class Recurrent : public ::testing::TestWithParam<std::pair<const char*, std::size_t>> {};

/// Large weights make a state that forgets nothing and grows every error by some tens of per cent a step.
TEST_P(Recurrent, ErrorsThatGrowAreNoiseAndPlantedOnesAreNot) {
  const auto [name, gates] = GetParam();
  const std::string text = fmt::format(
      "m (float[60, 1, 4] x, float[1, {0}, 4] w, float[1, {0}, 24] r, float[1, {1}] b) => (y) {{\n"
      "  y = {2} <hidden_size = 24> (x, w, r, b)\n}}",
      gates * kHidden, 2 * gates * kHidden, name);
  const ir::Graph graph = parse(text);
  const auto count = static_cast<std::int64_t>(gates * kHidden);
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Recurrence model{gates, random_floats(60 * 4, 1, seed), random_floats(count * 4, 0.3, seed + 10),
                     random_floats(count * 24,
                                   gates == 1   ? 0.7
                                   : gates == 3 ? 1.5
                                                : 3,
                                   seed + 20),
                     random_floats(2 * count, 0.1, seed + 30)};
    const std::map<std::string, ir::Tensor> inputs = {{"x", tensor_of(model.x, {60, 1, 4})},
                                                      {"w", tensor_of(model.w, {1, count, 4})},
                                                      {"r", tensor_of(model.r, {1, count, 24})},
                                                      {"b", tensor_of(model.b, {1, 2 * count})}};
    const auto judged = [&](float planted, std::size_t step) {
      model.planted = planted;
      model.planted_step = step;
      return judge(graph, inputs, tensor_of(model.run(), {60, 1, 1, 24}));
    };
    const Judgement sound = judged(0, 0);
    EXPECT_TRUE(sound.right) << "seed " << seed;
    beyond += sound.same ? 0 : 1;
    for (const std::size_t step : {std::size_t{0}, std::size_t{10}, kSteps - 1}) {
      if (step == kSteps - 1 && !sound.same) continue;  // what noise has made of it may be larger
      EXPECT_FALSE(judged(3e-3f, step).right) << "seed " << seed << ", step " << step;
    }
  }
  EXPECT_GE(beyond, 2) << "the weights are meant to be so large that the tolerance does not do";
}

INSTANTIATE_TEST_SUITE_P(Cells, Recurrent,
                         ::testing::Values(std::pair{"RNN", std::size_t{1}}, std::pair{"GRU", std::size_t{3}},
                                           std::pair{"LSTM", std::size_t{4}}),
                         [](const auto& info) { return std::string(info.param.first); });

// Normalisations of constant planes ------------------------------------------------------------------------

/// (x - mean) / sqrt(variance + epsilon) of each group of elements, added up as `lanes` partial sums.
Floats normalised(const Floats& x, std::size_t groups, std::size_t lanes) {
  const std::size_t size = x.size() / groups;
  Floats y(x.size());
  for (std::size_t g = 0; g < groups; ++g) {
    const auto mean_of = [&](const std::function<float(float)>& f) {
      Floats sums(lanes);
      for (std::size_t i = 0; i < size; ++i) sums[i % lanes] += f(x[g * size + i]);
      float sum = 0;
      for (const float each : sums) sum += each;
      return sum * (1.0f / static_cast<float>(size));
    };
    const float mean = mean_of([](float v) { return v; });
    const float variance = mean_of([&](float v) { return (v - mean) * (v - mean); });
    const float inverse = 1 / std::sqrt(variance + 1e-5f);
    for (std::size_t i = 0; i < size; ++i) y[g * size + i] = (x[g * size + i] - mean) * inverse;
  }
  return y;
}

struct Norm {
  const char* name;
  const char* text;
  ir::Shape shape;
  std::size_t groups;
};

class ConstantPlanes : public ::testing::TestWithParam<Norm> {};

TEST_P(ConstantPlanes, AreNoiseAndErrorsInOtherPlanesAreNot) {
  const Norm& norm = GetParam();
  const ir::Graph graph = parse(norm.text);
  const std::int64_t channels = norm.shape[1];
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Floats x = random_floats(ir::element_count(norm.shape), 1, seed);
    const std::size_t size = x.size() / norm.groups;
    for (std::size_t i = 0; i < size; ++i) x[2 * size + i] = 40 + 1.7f * static_cast<float>(seed);
    const std::map<std::string, ir::Tensor> inputs = {
        {"x", tensor_of(x, norm.shape)},
        {"s", tensor_of(Floats(static_cast<std::size_t>(channels), 1), {channels})},
        {"l", tensor_of(Floats(static_cast<std::size_t>(norm.shape.back()), 1), {norm.shape.back()})}};
    Floats y = normalised(x, norm.groups, seed % 2 == 0 ? 8 : 1);
    const Judgement sound = judge(graph, inputs, tensor_of(y, norm.shape));
    EXPECT_TRUE(sound.right) << "seed " << seed;
    beyond += sound.same ? 0 : 1;
    for (const std::size_t group : {std::size_t{0}, norm.groups - 1}) {
      Floats planted = y;
      for (std::size_t i = 0; i < size; ++i) planted[group * size + i] *= 1.002f;
      EXPECT_FALSE(judge(graph, inputs, tensor_of(planted, norm.shape)).right)
          << "seed " << seed << ", plane " << group;
    }
    for (std::size_t i = 0; i < size; ++i) y[2 * size + i] += 0.5f;
    EXPECT_FALSE(judge(graph, inputs, tensor_of(y, norm.shape)).right)
        << "seed " << seed << ", the plane itself";
  }
  EXPECT_GE(beyond, 3) << "the plane is meant to be beyond the tolerance";
}

INSTANTIATE_TEST_SUITE_P(
    Norms, ConstantPlanes,
    ::testing::Values(
        Norm{"Instance",
             "m (float[2, 3, 5, 7] x, float[3] s) => (y) <float[3] z = {0, 0, 0}>\n"
             "{ y = InstanceNormalization (x, s, z) }",
             {2, 3, 5, 7},
             6},
        Norm{"Group",
             "m (float[1, 8, 5, 5] x, float[8] s) => (y) <float[8] z = {0, 0, 0, 0, 0, 0, 0, 0}>\n"
             "{ y = GroupNormalization <num_groups = 4> (x, s, z) }",
             {1, 8, 5, 5},
             4},
        Norm{"Layer",
             "m (float[1, 6, 37] x, float[37] l) => (y) { y = LayerNormalization (x, l) }",
             {1, 6, 37},
             6},
        Norm{"SpelledOut",
             "m (float[1, 6, 37] x) => (y) <float epsilon = {0.00001}> {\n"
             "  axis = Constant <value = int64[1] {-1}> ()\n"
             "  mean = ReduceMean <keepdims = 1> (x, axis)\n"
             "  d = Sub (x, mean)\n  square = Mul (d, d)\n  variance = ReduceMean <keepdims = 1> (square, "
             "axis)\n"
             "  shifted = Add (variance, epsilon)\n  root = Sqrt (shifted)\n  y = Div (d, root)\n}",
             {1, 6, 37},
             6}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gcompile::testing
