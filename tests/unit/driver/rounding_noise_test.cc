// The noise of rounding: what is moved and how far, and what passes for noise.
#include "driver/verify/rounding_noise.h"

#include <cmath>
#include <limits>

#include "driver/verify/verify_reference.h"
#include "gtest/gtest.h"
#include "ir/graph/operator.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile {
namespace {

using ir::ElementType;
using testing::floats;

TEST(Moved, ByAtMostTheUnitsAskedForAndTheSameForTheSameSeed) {
  const ir::Tensor x = floats({0.1f, -3.3f, 1e30f, 7e-20f}, {4});
  const ir::Tensor y = moved(x, 100, 7);
  EXPECT_TRUE(y.identical(moved(x, 100, 7)));
  EXPECT_FALSE(y.identical(moved(x, 100, 8)));
  for (std::int64_t i = 0; i < 4; ++i) {
    const double relative = std::fabs(y.real_at(i) / x.real_at(i) - 1);
    EXPECT_GT(relative, 0);
    EXPECT_LE(relative, 101 * 0x1p-24);
  }
}

TEST(Moved, NotWhatIsExactNorWhatIsNoFloat) {
  const float infinity = std::numeric_limits<float>::infinity();
  const ir::Tensor x = floats({0, -0.0f, 1, 0.5f, -1280, 4095, infinity}, {7});
  EXPECT_TRUE(moved(x, 1000, 1).identical(x));
  ir::Tensor integers(ir::TensorType{ElementType::kInt64, {2}});
  integers.set(0, ir::Scalar::of_integer(ElementType::kInt64, 123456789));
  EXPECT_TRUE(moved(integers, 1000, 1).identical(integers));
}

/// y = x * w, x [4, K], w [K, 8].
ir::Graph product(std::int64_t depth) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_input("x", {ElementType::kFloat32, {4, depth}});
  const ir::ValueId w = graph.add_input("w", {ElementType::kFloat32, {depth, 8}});
  const ir::NodeId id = graph.add_node(ir::operator_named("MatMul"), {x, w}, {}, 1, "product");
  ir::infer_node(graph, id);
  graph.add_output(graph.node(id).results[0], "y");
  return graph;
}

TEST(Roundings, GrowWithTheRootOfTheTermsOfASum) {
  for (const std::int64_t depth : {2, 32, 2048}) {
    const ir::Graph graph = product(depth);
    EXPECT_DOUBLE_EQ(ir::roundings(graph, graph.nodes()[0]), 1 + std::sqrt(static_cast<double>(depth) / 2));
  }
}

TEST(IsNoise, WithinFourTimesTheNoiseAndNeverForOtherShapes) {
  Noise noise;
  noise.worst_ratio = 2;
  noise.rms = 1e-4;
  noise.near = 10;
  Comparison c;
  c.same = false;
  c.worst_ratio = 7.9;
  c.rms_error = 3.9e-4;
  c.wrong = 40;
  EXPECT_TRUE(is_noise(c, noise));
  for (const auto spoil :
       {+[](Comparison& d) { d.worst_ratio = 8.1; }, +[](Comparison& d) { d.rms_error = 4.1e-4; },
        +[](Comparison& d) { d.wrong = 41; }, +[](Comparison& d) { d.mismatch = "types differ"; }}) {
    Comparison other = c;
    spoil(other);
    EXPECT_FALSE(is_noise(other, noise));
  }
  EXPECT_FALSE(is_noise(c, Noise{}));
}

/// Terms that cancel are noisy, the same terms without their opposites are not.
TEST(ReferenceNoise, TellsCancellationFromSums) {
  for (const bool cancels : {false, true}) {
    ir::Graph graph;
    const ir::TensorType type{ElementType::kFloat32, {64}};
    const ir::ValueId x = graph.add_input("x", type), y = graph.add_input("y", type);
    const auto emit = [&](const char* op, ir::ValueId a, ir::ValueId b) {
      const ir::NodeId id = graph.add_node(ir::operator_named(op), {a, b}, {}, 1, op);
      ir::infer_node(graph, id);
      return graph.node(id).results[0];
    };
    const ir::ValueId square = emit("Mul", x, x), other = emit("Mul", y, y);
    graph.add_output(emit(cancels ? "Sub" : "Add", square, other), "z");
    std::vector<float> a, b;
    for (int i = 0; i < 64; ++i) {
      a.push_back(100.1f + static_cast<float>(i) * 0.37f);
      b.push_back(a.back() + 0.001f);
    }
    const std::map<std::string, ir::Tensor> inputs = {{"x", floats(a, {64})}, {"y", floats(b, {64})}};
    const Reference reference(graph);
    const CaseReference values(reference, inputs, Precision::kFp32);
    const Noise& noise = values.noise().outputs[0];
    EXPECT_EQ(noise.worst_ratio > 1, cancels) << noise.worst_ratio;
  }
}

}  // namespace
}  // namespace gcompile
