// TopK, scatters, CumSum, CumProd, NonZero and Compress.

#include <cmath>
#include <limits>
#include <optional>

#include "gtest/gtest.h"
#include "ir/forms/form.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using Ints = std::vector<std::int64_t>;
using Reals = std::vector<double>;

OneNode top_k(const Tensor& x, const Tensor& k) {
  return {.op = "TopK", .operands = {&x, &k}, .results = 2, .known = true};
}

TEST(TopK, TiesGoToTheSmallerPosition) {
  const Tensor x = floats({1, 3, 3, 0}, {4});
  const Tensor k = ints({3}, {1});
  OneNode node = top_k(x, k);
  EXPECT_EQ(reals(run(node)[0]), (Reals{3, 3, 1}));
  EXPECT_EQ(run(node)[1].ints(), (Ints{1, 2, 0}));
  node.attributes.set("largest", std::int64_t{0});
  EXPECT_EQ(run(node)[1].ints(), (Ints{3, 0, 1}));
}

TEST(TopK, RunsAlongAnyAxis) {
  const Tensor x = floats({1, 2, 3, 4, 0, 9}, {3, 2});
  const Tensor k = ints({1}, {1});
  OneNode node = top_k(x, k);
  node.attributes.set("axis", std::int64_t{0});
  const auto y = run(node);
  EXPECT_EQ(y[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(reals(y[0]), (Reals{3, 9}));
  EXPECT_EQ(y[1].ints(), (Ints{1, 2}));
}

TEST(TopK, CountsNanAsLargestAndUint64AsUnsigned) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = floats({1, nan, 2}, {3});
  const Tensor one = ints({1}, {1});
  EXPECT_EQ(run(top_k(x, one))[1].ints(), (Ints{1}));
  const Tensor big = integers(ElementType::kUInt64, {5, -1}, {2});
  EXPECT_EQ(run(top_k(big, one))[1].ints(), (Ints{1}));
}

TEST(TopK, ReadsTheAttributeOfOpset1) {
  const Tensor x = floats({1, 3, 2}, {3});
  OneNode node = {.op = "TopK", .operands = {&x}, .results = 2, .opset = 1};
  node.attributes.set("k", std::int64_t{2});
  EXPECT_EQ(run(node)[1].ints(), (Ints{1, 2}));
}

TEST(TopK, RefusesUnknownOrExcessiveK) {
  const Tensor x = floats({1, 3}, {2});
  const Tensor k = ints({3}, {1});
  EXPECT_EQ(error_of([&] { run(top_k(x, k)); }), "k = 3 is outside [0, 2], the size of axis 0");
  EXPECT_EQ(error_of([&] {
              run({.op = "TopK", .operands = {&x, &k}, .results = 2});
            }),
            "k must be known at compile time");
}

TEST(ScatterND, ReplacesSlicesAndCountsFromTheEnd) {
  const Tensor data = floats({0, 0, 0, 0, 0, 0}, {3, 2});
  const Tensor indices = ints({-1, 0}, {2, 1});
  const Tensor updates = floats({1, 2, 3, 4}, {2, 2});
  const auto y = run({.op = "ScatterND", .operands = {&data, &indices, &updates}});
  EXPECT_EQ(reals(y[0]), (Reals{3, 4, 0, 0, 1, 2}));
  EXPECT_EQ(reals(data), (Reals{0, 0, 0, 0, 0, 0}));
}

TEST(ScatterND, CombinesInOrder) {
  const Tensor data = floats({2, 5}, {2});
  const Tensor indices = ints({0, 0}, {2, 1});
  const Tensor updates = floats({3, 4}, {2});
  const auto combine = [&](const char* reduction) {
    OneNode node = {.op = "ScatterND", .operands = {&data, &indices, &updates}};
    node.attributes.set("reduction", std::string(reduction));
    return reals(run(node)[0]);
  };
  EXPECT_EQ(combine("none"), (Reals{4, 5}));
  EXPECT_EQ(combine("add"), (Reals{9, 5}));
  EXPECT_EQ(combine("mul"), (Reals{24, 5}));
  EXPECT_EQ(combine("max"), (Reals{4, 5}));
  EXPECT_EQ(combine("min"), (Reals{2, 5}));
  EXPECT_EQ(error_of([&] { combine("mean"); }), "reduction 'mean' is not known");
}

TEST(ScatterND, RefusesShapesAndIndicesThatDoNotFit) {
  const Tensor data = floats({2, 5}, {2});
  const Tensor indices = ints({2}, {1, 1});
  const Tensor one = floats({3}, {1});
  const Tensor two = floats({3, 4}, {2});
  EXPECT_EQ(error_of([&] {
              run({.op = "ScatterND", .operands = {&data, &indices, &two}});
            }),
            "updates must have the shape [1], not [2]");
  EXPECT_THROW(run({.op = "ScatterND", .operands = {&data, &indices, &one}}), CompileError);
  const Tensor deep = ints({0, 0}, {1, 2});
  EXPECT_EQ(error_of([&] {
              run({.op = "ScatterND", .operands = {&data, &deep, &one}});
            }),
            "indices address 2 axes, data has 1");
}

TEST(ScatterElements, AddressesOneAxis) {
  const Tensor data = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor indices = ints({2, -3}, {2, 1});
  const Tensor updates = floats({30, 40}, {2, 1});
  OneNode node = {.op = "ScatterElements", .operands = {&data, &indices, &updates}};
  node.attributes.set("axis", std::int64_t{1});
  EXPECT_EQ(reals(run(node)[0]), (Reals{1, 2, 30, 40, 5, 6}));
  node.attributes.set("reduction", std::string("add"));
  EXPECT_EQ(reals(run(node)[0]), (Reals{1, 2, 33, 44, 5, 6}));
}

TEST(ScatterElements, IsWhatScatterBecomes) {
  const Tensor data = floats({1, 2, 3}, {3});
  const Tensor indices = ints({1}, {1});
  const Tensor updates = floats({9}, {1});
  const OneNode node = {.op = "Scatter", .operands = {&data, &indices, &updates}, .opset = 9};
  const ir::Graph graph = graph_of(node);
  EXPECT_EQ(graph.node(graph.nodes()[0]).op->name, "ScatterElements");
  EXPECT_EQ(reals(evaluate_inputs(graph, node)[0]), (Reals{1, 9, 3}));
  const ir::Form form = ir::form_of(graph, graph.nodes()[0]);
  EXPECT_EQ(std::get<ir::LibraryForm>(form).in_place_operand, 0);
}

TEST(ScatterElements, RefusesIndicesThatReachBeyond) {
  const Tensor data = floats({1, 2}, {1, 2});
  const Tensor indices = ints({0, 0, 0}, {1, 3});
  const Tensor updates = floats({1, 2, 3}, {1, 3});
  EXPECT_EQ(error_of([&] {
              run({.op = "ScatterElements", .operands = {&data, &indices, &updates}});
            }),
            "indices of shape [1, 3] reach beyond data of shape [1, 2]");
}

TEST(CumSum, RunsExclusiveAndReverse) {
  const Tensor x = floats({1, 2, 3}, {3});
  const Tensor axis = ints({0}, {});
  const auto sum = [&](std::int64_t exclusive, std::int64_t reverse) {
    OneNode node = {.op = "CumSum", .operands = {&x, &axis}, .known = true};
    node.attributes.set("exclusive", exclusive);
    node.attributes.set("reverse", reverse);
    return reals(run(node)[0]);
  };
  EXPECT_EQ(sum(0, 0), (Reals{1, 3, 6}));
  EXPECT_EQ(sum(1, 0), (Reals{0, 1, 3}));
  EXPECT_EQ(sum(0, 1), (Reals{6, 5, 3}));
  EXPECT_EQ(sum(1, 1), (Reals{5, 3, 0}));
  EXPECT_EQ(error_of([&] {
              run({.op = "CumSum", .operands = {&x, &axis}});
            }),
            "axis must be known at compile time");
}

TEST(CumProd, RunsExclusiveAndReverseFromEitherEndOfTheAxes) {
  const Tensor x = floats({2, 3, 4, 5, 6, 7}, {2, 3});
  const auto product = [&](std::int64_t axis, std::int64_t exclusive, std::int64_t reverse) {
    const Tensor along = ints({axis}, {});
    OneNode node = {.op = "CumProd", .operands = {&x, &along}, .known = true};
    node.attributes.set("exclusive", exclusive);
    node.attributes.set("reverse", reverse);
    return reals(run(node)[0]);
  };
  EXPECT_EQ(product(1, 0, 0), (Reals{2, 6, 24, 5, 30, 210}));
  EXPECT_EQ(product(-1, 1, 0), (Reals{1, 2, 6, 1, 5, 30}));
  EXPECT_EQ(product(0, 0, 1), (Reals{10, 18, 28, 5, 6, 7}));
  EXPECT_EQ(product(-2, 1, 1), (Reals{5, 6, 7, 1, 1, 1}));
}

TEST(NonZero, HasASizeForKnownValuesOnly) {
  const Tensor x = ints({0, 1, 2, 0}, {2, 2});
  EXPECT_EQ(run({.op = "NonZero", .operands = {&x}, .known = true})[0].ints(), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(error_of([&] { run({.op = "NonZero", .operands = {&x}}); }),
            "the size of the result depends on data");
}

TEST(Compress, TakesWhatAKnownConditionSays) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor second = integers(ElementType::kBool, {0, 1}, {2}),
               none = integers(ElementType::kBool, {0}, {1});
  const Tensor last = integers(ElementType::kBool, {1, 0, 0, 0, 0, 1}, {6});
  const auto kept = [&](const Tensor& condition, std::optional<std::int64_t> axis) {
    OneNode node{.op = "Compress", .operands = {&x, &condition}, .known = true};
    if (axis) node.attributes.set("axis", *axis);
    return run(node)[0];
  };
  EXPECT_EQ(reals(kept(last, std::nullopt)), (Reals{1, 6}));
  EXPECT_EQ(reals(kept(second, 0)), (Reals{3, 4}));
  EXPECT_EQ(reals(kept(second, -1)), (Reals{2, 4, 6}));
  EXPECT_EQ(kept(none, 1).shape(), (Shape{3, 0}));
  EXPECT_EQ(error_of([&] { kept(last, 0); }), "the condition does not fit: it holds for element 5 of 3");
  EXPECT_EQ(error_of([&] {
              run({.op = "Compress", .operands = {&x, &second}});
            }),
            "the condition must be known at compile time");
}

}  // namespace
}  // namespace gcompile::testing
