// Element-wise and data-movement records: histories, known operands and refusals, which the official cases do
// not reach (operators_official_test covers values).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/forms/form.h"
#include "ir/ops/support.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::Attributes;
using ir::ElementType;
using ir::Shape;
using ir::Tensor;

Attributes with_ints(const char* name, std::vector<std::int64_t> values) {
  Attributes attributes;
  attributes.set(name, std::move(values));
  return attributes;
}

/// Form of the only node of a graph whose operands are known where `known` says so.
ir::LoopForm loops_of(const ir::Graph& graph) {
  return std::get<ir::LoopForm>(ir::form_of(graph, graph.nodes().at(0)));
}

TEST(OperatorHistory, ClipTakesBoundsAsAttributesBeforeOpset11) {
  const Tensor x = floats({-3, 0.5f, 7}, {3});
  OneNode clip{.op = "Clip", .operands = {&x}, .opset = 6};
  clip.attributes.set("min", -1.0f);
  clip.attributes.set("max", 2.0f);
  EXPECT_EQ(reals(run(clip)[0]), (std::vector<double>{-1, 0.5, 2}));
}

TEST(OperatorHistory, ClipWithCrossedBoundsGivesTheUpperOne) {
  const Tensor x = floats({0, 5}, {2}), low = floats({3}, {}), high = floats({1}, {});
  EXPECT_EQ(reals(run({.op = "Clip", .operands = {&x, &low, &high}})[0]), (std::vector<double>{1, 1}));
}

TEST(OperatorHistory, SliceTakesRangesAsAttributesBeforeOpset10) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5}, {2, 3});
  OneNode slice{.op = "Slice", .operands = {&x}, .opset = 9};
  slice.attributes.set("axes", std::vector<std::int64_t>{1});
  slice.attributes.set("starts", std::vector<std::int64_t>{-2});
  slice.attributes.set("ends", std::vector<std::int64_t>{1000});
  const Tensor y = run(slice)[0];
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(reals(y), (std::vector<double>{1, 2, 4, 5}));
}

TEST(OperatorHistory, SpaceToDepthOrdersBlocksByModeSinceOpset28) {
  // Channels of 2 x 2 pixels: 0..3, 10..13.
  const Tensor x = floats({0, 1, 2, 3, 10, 11, 12, 13}, {1, 2, 2, 2});
  OneNode node{.op = "SpaceToDepth", .operands = {&x}, .opset = 28};
  node.attributes.set("blocksize", std::int64_t{2});
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{0, 10, 1, 11, 2, 12, 3, 13}));
  node.attributes.set("mode", std::string("CRD"));
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{0, 1, 2, 3, 10, 11, 12, 13}));
  node.attributes.set("mode", std::string("columns"));
  EXPECT_THROW(run(node), OperatorError);
}

TEST(OperatorHistory, SqueezeAndUnsqueezeTakeAxesAsAttributesBeforeOpset13) {
  const Tensor x = floats({1, 2}, {1, 2, 1});
  const OneNode squeeze{.op = "Squeeze", .attributes = with_ints("axes", {0}), .operands = {&x}, .opset = 11};
  EXPECT_EQ(run(squeeze)[0].shape(), (Shape{2, 1}));
  const OneNode unsqueeze{
      .op = "Unsqueeze", .attributes = with_ints("axes", {0, -1}), .operands = {&x}, .opset = 11};
  EXPECT_EQ(run(unsqueeze)[0].shape(), (Shape{1, 1, 2, 1, 1}));
}

TEST(OperatorHistory, SplitTakesLengthsAsAttributeBeforeOpset13) {
  const Tensor x = floats({0, 1, 2, 3, 4}, {5});
  const OneNode split{
      .op = "Split", .attributes = with_ints("split", {2, 3}), .operands = {&x}, .results = 2, .opset = 11};
  const std::vector<Tensor> parts = run(split);
  EXPECT_EQ(reals(parts[0]), (std::vector<double>{0, 1}));
  EXPECT_EQ(reals(parts[1]), (std::vector<double>{2, 3, 4}));
}

TEST(OperatorHistory, SplitIntoUnevenPartsMakesTheLastOneSmaller) {
  const Tensor x = floats({0, 1, 2, 3, 4}, {5});
  const std::vector<Tensor> parts = run({.op = "Split", .operands = {&x}, .results = 3});
  EXPECT_EQ(parts[0].shape(), Shape{2});
  EXPECT_EQ(reals(parts[2]), (std::vector<double>{4}));
}

TEST(OperatorHistory, PadTakesPadsAndValueAsAttributesBeforeOpset11) {
  const Tensor x = floats({1, 2}, {2});
  OneNode pad{.op = "Pad", .attributes = with_ints("pads", {1, 2}), .operands = {&x}, .opset = 2};
  pad.attributes.set("value", 9.0f);
  EXPECT_EQ(reals(run(pad)[0]), (std::vector<double>{9, 1, 2, 9, 9}));
}

TEST(OperatorHistory, ValuesThatWereAttributesNeedATypeToComputeIn) {
  const Tensor x(ir::TensorType{ElementType::kUInt4, {2}});
  OneNode pad{.op = "Pad", .attributes = with_ints("pads", {1, 2}), .operands = {&x}, .opset = 2};
  pad.attributes.set("value", 9.0f);
  EXPECT_EQ(error_of([&] { run(pad); }), "an operand has type uint4, in which nothing computes");
}

TEST(OperatorHistory, BroadcastAttributesOfOpset6PlaceTheSecondOperand) {
  const Tensor a = floats({0, 0, 0, 0}, {2, 2}), b = floats({1, 2}, {2});
  OneNode add{.op = "Add", .operands = {&a, &b}, .opset = 6};
  add.attributes.set("broadcast", std::int64_t{1});
  add.attributes.set("axis", std::int64_t{0});
  EXPECT_EQ(reals(run(add)[0]), (std::vector<double>{1, 1, 2, 2}));
}

TEST(OperatorHistory, DropoutIsTheInputAndAMaskOfTrue) {
  const Tensor x = floats({1, 2}, {2});
  OneNode dropout{.op = "Dropout", .operands = {&x}, .results = 2, .opset = 10};
  dropout.attributes.set("ratio", 0.5f);
  const std::vector<Tensor> results = run(dropout);
  EXPECT_TRUE(results[0].identical(x));
  EXPECT_EQ(results[1].ints(), (std::vector<std::int64_t>{1, 1}));
}

TEST(Pad, CutsTheEdgesIntoRegionsWithoutSelects) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3}), pads = ints({1, 1, 0, 2}, {4});
  const ir::Graph graph = graph_of({.op = "Pad", .operands = {&x, &pads}, .known = true});
  const ir::LoopForm form = loops_of(graph);
  EXPECT_EQ(form.regions.size(), 4u);  // above, left, right, centre
  for (const ir::ScalarNode& node : form.dag.nodes()) EXPECT_NE(node.op, ir::ScalarOp::kSelect);
}

TEST(Pad, ReflectsAsOftenAsNeeded) {
  const Tensor x = floats({1, 2, 3}, {3}), pads = ints({5, 4}, {2});
  OneNode pad{.op = "Pad", .operands = {&x, &pads}, .known = true};
  pad.attributes.set("mode", std::string("reflect"));
  EXPECT_EQ(reals(run(pad)[0]), (std::vector<double>{2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3}));
}

TEST(Pad, CropsWithNegativePads) {
  const Tensor x = floats({1, 2, 3, 4}, {4}), pads = ints({-1, 2}, {2});
  EXPECT_EQ(reals(run({.op = "Pad", .operands = {&x, &pads}, .known = true})[0]),
            (std::vector<double>{2, 3, 4, 0, 0}));
  const Tensor all = ints({-5, 3}, {2});
  EXPECT_EQ(reals(run({.op = "Pad", .operands = {&x, &all}, .known = true})[0]), (std::vector<double>{0, 0}));
}

TEST(Pad, PadsWithWhatNegativePadsLeave) {
  const Tensor x = floats({0, 1, 2, 3, 4}, {5});
  const auto padded = [&](const char* mode, std::vector<std::int64_t> both) {
    const Tensor pads = ints(std::move(both), {2});
    OneNode pad{.op = "Pad", .operands = {&x, &pads}, .known = true};
    pad.attributes.set("mode", std::string(mode));
    return reals(run(pad)[0]);
  };
  using Reals = std::vector<double>;
  EXPECT_EQ(padded("wrap", {-2, 4}), (Reals{2, 3, 4, 2, 3, 4, 2}));  // as ONNX Runtime
  EXPECT_EQ(padded("wrap", {4, -2}), (Reals{2, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(padded("wrap", {-4, 3}), (Reals{4, 4, 4, 4}));
  EXPECT_EQ(padded("edge", {4, -2}), (Reals{0, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(padded("edge", {-4, 3}), (Reals{4, 4, 4, 4}));
  EXPECT_EQ(padded("reflect", {-2, 2}), (Reals{2, 3, 4, 3, 2}));
  EXPECT_EQ(padded("reflect", {3, -2}), (Reals{1, 2, 1, 0, 1, 2}));
  EXPECT_EQ(error_of([&] { padded("wrap", {-5, 3}); }), "axis 0 has no elements to pad with");
}

TEST(Pad, RefusesPadsWhoseSumIsNoSize) {
  const Tensor x = floats({1, 2, 3, 4}, {4});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [pad, other] : {std::pair{kMost, kMost}, {kMost, -kMost}, {-kMost - 1, kMost}}) {
    const Tensor pads = ints({pad, other}, {2});
    EXPECT_EQ(error_of([&] {
                run({.op = "Pad", .operands = {&x, &pads}, .known = true});
              }),
              fmt::format("a pad is {}", pad));
  }
}

TEST(Tile, RefusesRepeatsWhoseProductIsNoSize) {
  const Tensor x = floats({1, 2, 3, 4}, {4}), repeats = ints({std::int64_t{1} << 62}, {1});
  EXPECT_EQ(error_of([&] {
              run({.op = "Tile", .operands = {&x, &repeats}, .known = true});
            }),
            "axis 0 is repeated 4611686018427387904 times");
}

TEST(Concat, HasOneRegionPerOperandThatIsNotEmpty) {
  const Tensor a = floats({1, 2}, {2}), b = floats({}, {0}), c = floats({3}, {1});
  OneNode concat{.op = "Concat", .operands = {&a, &b, &c}};
  concat.attributes.set("axis", std::int64_t{-1});
  EXPECT_EQ(loops_of(graph_of(concat)).regions.size(), 2u);
  EXPECT_EQ(reals(run(concat)[0]), (std::vector<double>{1, 2, 3}));
}

TEST(Concat, NamesOperandsThatDoNotFit) {
  const Tensor a = floats({1, 2}, {1, 2}), b = floats({3}, {1, 1});
  OneNode concat{.op = "Concat", .operands = {&a, &b}};
  concat.attributes.set("axis", std::int64_t{0});
  EXPECT_EQ(error_of([&] { run(concat); }), "inputs 0 and 1 differ outside axis 0: [1, 2] and [1, 1]");
}

TEST(Gather, KnownProgressionBecomesAnAffineView) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5}, {6}), indices = ints({-1, 3, 1}, {3});
  const ir::Graph graph = graph_of({.op = "Gather", .operands = {&x, &indices}, .known = true});
  const ir::LoopForm form = loops_of(graph);
  const ir::ScalarNode& root = form.dag[form.regions.at(0).root];
  ASSERT_EQ(root.op, ir::ScalarOp::kLoad);
  EXPECT_EQ(to_string(root.index[0]), "-2 * i0 + 5");
}

/// The index of `axis` that the only load of a form has, in words; empty where it is not a load alone.
std::string index_of_load(const OneNode& node, std::size_t axis) {
  const ir::LoopForm form = loops_of(graph_of(node));
  const ir::ScalarNode& root = form.dag[form.regions.at(0).root];
  return root.op == ir::ScalarOp::kLoad && form.checks.empty() ? to_string(root.index.at(axis)) : "";
}

TEST(Gather, KnownWindowsAndBoxesBecomeAffineViews) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {12});
  const Tensor windows = ints({0, 3, 6, 1, 4, 7, 2, 5, 8}, {3, 3}), mixed = ints({3, -8, -7, 6}, {2, 2});
  const Tensor bent = ints({0, 1, 2, 2, 3, 5}, {2, 3}), one = ints({-1}, {1, 1});
  EXPECT_EQ(index_of_load({.op = "Gather", .operands = {&x, &windows}, .known = true}, 0), "i0 + 3 * i1");
  EXPECT_EQ(index_of_load({.op = "Gather", .operands = {&x, &mixed}, .known = true}, 0), "2 * i0 + i1 + 3");
  EXPECT_EQ(index_of_load({.op = "Gather", .operands = {&x, &bent}, .known = true}, 0), "%0");
  EXPECT_EQ(index_of_load({.op = "Gather", .operands = {&x, &one}, .known = true}, 0), "11");
  EXPECT_EQ(reals(run({.op = "Gather", .operands = {&x, &windows}, .known = true})[0]),
            (std::vector<double>{0, 3, 6, 1, 4, 7, 2, 5, 8}));
}

TEST(Gather, KnownTuplesAndElementsBecomeAffineViews) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor tuples = ints({1, -1, 1, 1, 1, 0}, {3, 2}), outside = ints({1, 3}, {1, 2});
  EXPECT_EQ(index_of_load({.op = "GatherND", .operands = {&x, &tuples}, .known = true}, 1), "-i0 + 2");
  EXPECT_EQ(reals(run({.op = "GatherND", .operands = {&x, &tuples}, .known = true})[0]),
            (std::vector<double>{5, 4, 3}));
  EXPECT_THROW(run({.op = "GatherND", .operands = {&x, &outside}, .known = true}), CompileError);
  const Tensor diagonals = ints({0, 1, 1, 2}, {2, 2});
  OneNode elements{.op = "GatherElements", .operands = {&x, &diagonals}, .known = true};
  elements.attributes.set("axis", std::int64_t{1});
  EXPECT_EQ(index_of_load(elements, 1), "i0 + i1");
  EXPECT_EQ(reals(run(elements)[0]), (std::vector<double>{0, 1, 4, 5}));
}

TEST(Gather, KnownIndicesAreNotCheckedAtRunTime) {
  const Tensor x = floats({0, 1, 2}, {3}), indices = ints({2, 0, 1}, {3});
  const ir::LoopForm form = loops_of(graph_of({.op = "Gather", .operands = {&x, &indices}, .known = true}));
  EXPECT_TRUE(form.checks.empty());
}

TEST(Gather, RunTimeIndicesWrapAndAreChecked) {
  const Tensor x = floats({0, 1, 2}, {3}), indices = ints({-1, 2}, {2}), wild = ints({3, 0}, {2});
  EXPECT_EQ(loops_of(graph_of({.op = "Gather", .operands = {&x, &indices}})).checks.size(), 1u);
  EXPECT_EQ(reals(run({.op = "Gather", .operands = {&x, &indices}})[0]), (std::vector<double>{2, 2}));
  EXPECT_THROW(run({.op = "Gather", .operands = {&x, &wild}}), CompileError);
}

TEST(Gather, RefusesKnownIndicesOutsideTheAxis) {
  const Tensor x = floats({0, 1, 2}, {3}), indices = ints({-4}, {1});
  EXPECT_EQ(error_of([&] {
              run({.op = "Gather", .operands = {&x, &indices}, .known = true});
            }),
            "index -4 is outside [-3, 3)");
}

TEST(Reshape, ZeroCopiesADimOrIsZero) {
  const Tensor x = floats({}, {0, 3}), target = ints({3, 0}, {2});
  OneNode reshape{.op = "Reshape", .operands = {&x, &target}, .known = true};
  EXPECT_EQ(error_of([&] { run(reshape); }), "0 elements do not fit the shape [3, 3]");
  reshape.attributes.set("allowzero", std::int64_t{1});
  EXPECT_EQ(run(reshape)[0].shape(), (Shape{3, 0}));
}

TEST(Reshape, SplittingAnAxisIsAffine) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5}, {6}), target = ints({2, -1}, {2});
  const ir::Graph graph = graph_of({.op = "Reshape", .operands = {&x, &target}, .known = true});
  const ir::LoopForm form = loops_of(graph);
  EXPECT_EQ(to_string(form.dag[form.regions.at(0).root].index[0]), "3 * i0 + i1");
}

TEST(Slice, ClampsAsTheSpecificationSays) {
  const Tensor x = floats({0, 1, 2, 3}, {4});
  const Tensor lowest = ints({INT64_MIN}, {1}), highest = ints({INT64_MAX}, {1}), back = ints({-1}, {1});
  const Tensor axis = ints({0}, {1});
  EXPECT_EQ(reals(run({.op = "Slice", .operands = {&x, &highest, &lowest, &axis, &back}, .known = true})[0]),
            (std::vector<double>{3, 2, 1, 0}));
  EXPECT_EQ(
      reals(run({.op = "Slice", .operands = {&x, &highest, &lowest, &axis, &lowest}, .known = true})[0]),
      (std::vector<double>{3}));
  EXPECT_EQ(run({.op = "Slice", .operands = {&x, &highest, &lowest}, .known = true})[0].shape(), Shape{0});
}

TEST(Slice, AsksForKnownRanges) {
  const Tensor x = floats({0, 1}, {2}), start = ints({0}, {1});
  EXPECT_EQ(error_of([&] {
              run({.op = "Slice", .operands = {&x, &start, &start}});
            }),
            "starts must be known at compile time");
}

TEST(Pow, HalfIsInfinityAtMinusInfinityAndZeroAtMinusZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = floats({-infinity, -0.0f, infinity, 4, -4}, {5}), y = floats({0.5f}, {});
  for (const bool known : {false, true}) {
    const std::vector<double> powers = reals(run({.op = "Pow", .operands = {&x, &y}, .known = known})[0]);
    EXPECT_EQ(powers[0], infinity);
    EXPECT_FALSE(std::signbit(powers[1]));
    EXPECT_EQ(powers[1], 0);
    EXPECT_EQ(powers[2], infinity);
    EXPECT_EQ(powers[3], 2);
    EXPECT_TRUE(std::isnan(powers[4]));
  }
}

TEST(Pow, KnownExponentsBecomeProductsAndRoots) {
  const Tensor x = floats({4, 9}, {2});
  const std::pair<float, std::vector<double>> cases[] = {
      {2, {16, 81}}, {3, {64, 729}}, {0.5f, {2, 3}}, {-1, {0.25, 1.0 / 9}}, {1, {4, 9}}};
  for (const auto& [exponent, expected] : cases) {
    const Tensor y = floats({exponent}, {});
    const OneNode pow{.op = "Pow", .operands = {&x, &y}, .known = true};
    const ir::LoopForm form = loops_of(graph_of(pow));
    for (const ir::ScalarNode& node : form.dag.nodes()) {
      EXPECT_NE(node.op, ir::ScalarOp::kPow) << exponent;
    }
    const std::vector<double> got = reals(run(pow)[0]);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(got[i], expected[i]);
  }
  const Tensor y = floats({1.5f}, {});
  EXPECT_FLOAT_EQ(reals(run({.op = "Pow", .operands = {&x, &y}, .known = true})[0])[0], 8);
}

TEST(BatchNormalization, StatisticsThatDoNotFoldWithinTheRangeAreComputedWith) {
  const Tensor x = floats({1e30f, 3e30f}, {1, 1, 2}), scale = floats({1e30f}, {1}), bias = floats({1}, {1});
  const Tensor mean = floats({1e30f}, {1}), variance = floats({1e-20f}, {1}), wide = floats({1e38f}, {1});
  OneNode norm{.op = "BatchNormalization", .operands = {&x, &scale, &bias, &mean, &variance}, .known = true};
  norm.attributes.set("epsilon", 0.0f);
  // The factor would be 1e40, and 0 times it NaN.
  EXPECT_EQ(reals(run(norm)[0]), (std::vector<double>{1, std::numeric_limits<double>::infinity()}));
  // The factor would be 1e-49.
  const Tensor small = floats({1e-30f}, {1});
  norm.operands = {&x, &small, &bias, &mean, &wide};
  const std::vector<double> y = reals(run(norm)[0]);
  EXPECT_EQ(y[0], 1);
}

TEST(BatchNormalization, KnownStatisticsFoldIntoOneProductAndOneSum) {
  const Tensor x = floats({1, 2, 3, 4}, {1, 2, 2}), scale = floats({2, 1}, {2}), bias = floats({1, 0}, {2});
  const Tensor mean = floats({0, 3}, {2}), variance = floats({3, 0.25f}, {2});
  OneNode norm{.op = "BatchNormalization", .operands = {&x, &scale, &bias, &mean, &variance}, .known = true};
  norm.attributes.set("epsilon", 1.0f);
  norm.attributes.set("momentum", 0.5f);
  norm.attributes.set("spatial", std::int64_t{1});
  ir::Graph graph = graph_of(norm);
  decompose_all(graph);
  EXPECT_EQ(graph.node_count(), 2u);
  const std::vector<double> y = reals(evaluate_inputs(graph, norm)[0]);
  EXPECT_FLOAT_EQ(y[0], 2);
  EXPECT_FLOAT_EQ(y[1], 3);
  EXPECT_NEAR(y[2], 0, 1e-6);
  EXPECT_NEAR(y[3], 1 / std::sqrt(1.25), 1e-6);
}

TEST(BatchNormalization, TrainsByTheStatisticsOfItsOperand) {
  const Tensor x = floats({1, 10, 5, 30}, {2, 2}), scale = floats({2, 1}, {2}), bias = floats({0, 7}, {2});
  const Tensor mean = floats({1, 0}, {2}), variance = floats({2, 100}, {2});
  OneNode norm{.op = "BatchNormalization", .operands = {&x, &scale, &bias, &mean, &variance}, .results = 3};
  norm.attributes.set("training_mode", std::int64_t{1});
  norm.attributes.set("momentum", 0.75f);
  norm.attributes.set("epsilon", 0.0f);
  const std::vector<Tensor> y = run(norm);
  EXPECT_EQ(reals(y[0]), (std::vector<double>{-2, 6, 2, 8}));
  EXPECT_EQ(reals(y[1]), (std::vector<double>{1.5, 5}));
  EXPECT_EQ(reals(y[2]), (std::vector<double>{2.5, 100}));
  norm.results = 5;
  EXPECT_EQ(error_of([&] { run(norm); }), "in training mode there are three results");
}

TEST(PRelu, SlopeBroadcastsOneWayOnly) {
  const Tensor x = floats({-1, -2}, {2}), slope = floats({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(error_of([&] {
              run({.op = "PRelu", .operands = {&x, &slope}});
            }),
            "the slope [2, 2] does not broadcast to [2]");
}

TEST(Shape, IsKnownWithoutItsOperand) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  OneNode shape{.op = "Shape", .operands = {&x}};
  shape.attributes.set("start", std::int64_t{-2});
  ir::Graph graph = graph_of(shape);
  decompose_all(graph);
  EXPECT_EQ(graph.node_count(), 0u);
  ASSERT_TRUE(graph.constant(graph.outputs()[0]));
  EXPECT_EQ(graph.constant(graph.outputs()[0])->ints(), (std::vector<std::int64_t>{2, 3}));
}

TEST(Range, CountsDownAndRefusesNoStep) {
  const Tensor start = ints({5}, {}), limit = ints({-2}, {}), delta = ints({-3}, {}), none = ints({0}, {});
  const OneNode range{.op = "Range", .operands = {&start, &limit, &delta}, .known = true};
  EXPECT_EQ(run(range)[0].ints(), (std::vector<std::int64_t>{5, 2, -1}));
  EXPECT_EQ(error_of([&] {
              run({.op = "Range", .operands = {&start, &limit, &none}, .known = true});
            }),
            "delta is 0");
}

TEST(OneHot, IndicesOutsideTheDepthAreOffEverywhere) {
  const Tensor indices = ints({-1, 3, 0}, {3}), depth = ints({3}, {}), values = floats({2, 5}, {2});
  const Tensor y = run({.op = "OneHot", .operands = {&indices, &depth, &values}, .known = true})[0];
  EXPECT_EQ(reals(y), (std::vector<double>{2, 2, 5, 2, 2, 2, 5, 2, 2}));
}

TEST(BitCast, KeepsEveryBit) {
  const auto as = [](const Tensor& x, ElementType to) {
    OneNode node{.op = "BitCast", .operands = {&x}};
    node.attributes.set("to", ir::onnx_number_of(to));
    ir::Graph graph = graph_of(node);
    const Tensor y = ir::evaluate_graph(graph, {x})[0];
    // The expression says the same as the record.
    const ir::LoopForm form = loops_of(graph);
    const ir::ScalarNode& root = form.dag[form.regions[0].root];
    EXPECT_EQ(root.op == ir::ScalarOp::kBits, is_float(x.element()) != is_float(to));
    return y;
  };
  const Tensor x = floats({1, -0.0f, std::numeric_limits<float>::infinity()}, {3});
  EXPECT_EQ(as(x, ElementType::kInt32).ints(),
            (std::vector<std::int64_t>{0x3f800000, INT32_MIN, 0x7f800000}));
  EXPECT_EQ(as(x, ElementType::kUInt32).ints(),
            (std::vector<std::int64_t>{0x3f800000, 0x80000000, 0x7f800000}));
  const Tensor signalling = integers(ElementType::kInt32, {0x7f800001, 0x40490fdb}, {2});
  const Tensor numbers = as(signalling, ElementType::kFloat32);
  EXPECT_NEAR(numbers.real_at(1), 3.14159265, 1e-6);
  EXPECT_EQ(as(numbers, ElementType::kInt32).ints(), signalling.ints());
  EXPECT_EQ(as(ints({0x3ff0000000000000}, {1}), ElementType::kFloat64).real_at(0), 1);
  EXPECT_EQ(as(integers(ElementType::kInt8, {-1, 3}, {2}), ElementType::kUInt8).ints(),
            (std::vector<std::int64_t>{255, 3}));
  EXPECT_EQ(as(integers(ElementType::kUInt8, {0, 2}, {2}), ElementType::kBool).ints(),
            (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(error_of([&] { as(x, ElementType::kInt64); }), "float32 has 32 bits, int64 has 64");
}

TEST(AffineGrid, FirstCoordinateIsThatOfTheLastAxis) {
  const Tensor theta = floats({2, 0, 0.5f, 0, 1, 0}, {1, 2, 3}), size = ints({1, 1, 2, 4}, {4});
  OneNode grid{.op = "AffineGrid", .operands = {&theta, &size}, .known = true};
  const std::vector<double> y = reals(run(grid)[0]);
  EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 4), (std::vector<double>{-1, -0.5, 0, -0.5}));
  grid.attributes.set("align_corners", std::int64_t{1});
  EXPECT_EQ(reals(run(grid)[0])[1], -1);
  const Tensor flat = ints({1, 1, 2}, {3});
  grid.operands[1] = &flat;
  EXPECT_EQ(error_of([&] { run(grid); }), "the size must be (N, C, H, W) or (N, C, D, H, W)");
}

TEST(Cast, RefusesTypesThatAreNotRead) {
  const Tensor x = floats({1}, {1});
  OneNode cast{.op = "Cast", .operands = {&x}};
  cast.attributes.set("to", std::int64_t{8});
  EXPECT_EQ(error_of([&] { run(cast); }), "attribute 'to' names element type 8, which is not supported");
}

}  // namespace
}  // namespace gcompile::testing
