// GridSample beyond the official cases: places far outside, that are no numbers, axes of one element, types.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;

/// What a line of elements, 1, 2, 3, ..., has at places along it.
std::vector<double> sampled(int count, const std::vector<float>& places, const std::string& mode,
                            const std::string& padding, bool aligned) {
  std::vector<float> line;
  for (int i = 0; i < count; ++i) line.push_back(static_cast<float>(i + 1));
  const auto rows = static_cast<std::int64_t>(places.size());
  const Tensor x = floats(line, {1, 1, count}), grid = floats(places, {1, rows, 1});
  OneNode node{.op = "GridSample", .operands = {&x, &grid}};
  node.attributes.set("mode", mode);
  node.attributes.set("padding_mode", padding);
  node.attributes.set("align_corners", std::int64_t{aligned ? 1 : 0});
  const Tensor y = run(node)[0];
  std::vector<double> values;
  for (std::int64_t i = 0; i < y.count(); ++i) values.push_back(y.real_at(i));
  return values;
}

using Values = std::vector<double>;

TEST(GridSample, PlacesAreMiddlesOrEdges) {
  EXPECT_EQ(sampled(4, {-1, -0.5f, 0, 1}, "linear", "border", true), (Values{1, 1.75, 2.5, 4}));
  EXPECT_EQ(sampled(4, {-1, -0.5f, 0, 1}, "linear", "border", false), (Values{1, 1.5, 2.5, 4}));
  EXPECT_EQ(sampled(4, {-1, 1}, "linear", "zeros", false), (Values{0.5, 2})) << "half of it is outside";
}

TEST(GridSample, ReflectsAsOftenAsItTakes) {
  // The place of g is 1.5 (g + 1) between 0 and 3.
  EXPECT_EQ(sampled(4, {-3, -5, 7, 1.5f}, "nearest", "reflection", true), (Values{4, 1, 1, 3}));
  EXPECT_EQ(sampled(4, {-1000001, 1000001}, "nearest", "reflection", true).size(), 2u);
  // Between -0.5 and 3.5 an element is its own neighbour: the place of g is 2 g + 1.5.
  EXPECT_EQ(sampled(4, {-1.25f, -1.5f, 1.25f}, "linear", "reflection", false), (Values{1, 1.5, 4}));
}

TEST(GridSample, OneElementIsEverywhere) {
  for (const char* mode : {"nearest", "linear"}) {
    for (const bool aligned : {false, true}) {
      EXPECT_EQ(sampled(1, {-3, 0, 0.25f, 5}, mode, "reflection", aligned), (Values{1, 1, 1, 1})) << mode;
    }
  }
}

TEST(GridSample, NothingIsReadOutsideTheImage) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> places = {infinity, -infinity, std::nanf(""), 3e38f, -3e38f};
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      EXPECT_EQ(sampled(5, places, mode, padding, false).size(), places.size()) << mode << padding;
    }
  }
  EXPECT_EQ(sampled(5, places, "nearest", "zeros", false), (Values{0, 0, 0, 0, 0}));
  EXPECT_EQ(sampled(5, {infinity, -infinity}, "nearest", "border", false), (Values{5, 1}));
}

TEST(GridSample, CubicGoesThroughTheElements) {
  EXPECT_EQ(sampled(5, {-1, -0.5f, 0, 1}, "cubic", "border", true), (Values{1, 2, 3, 5}));
  EXPECT_NEAR(sampled(5, {-0.25f}, "cubic", "border", true)[0], 2.5, 1e-6);
}

TEST(GridSample, OlderNamesOfModes) {
  const Tensor x = floats({1, 2}, {1, 1, 1, 2}), grid = floats({0, 0}, {1, 1, 1, 2});
  for (const char* mode : {"bilinear", "bicubic"}) {
    OneNode node{.op = "GridSample", .operands = {&x, &grid}, .opset = 16};
    node.attributes.set("mode", std::string(mode));
    node.attributes.set("padding_mode", std::string("border"));
    EXPECT_EQ(run(node)[0].real_at(0), 1.5) << mode;
  }
}

TEST(GridSample, Types) {
  const Tensor grid = floats({-1, 1}, {1, 2, 1}), words = ints({7, 8, 9}, {1, 1, 3});
  OneNode node{.op = "GridSample", .operands = {&words, &grid}};
  node.attributes.set("mode", std::string("nearest"));
  node.attributes.set("padding_mode", std::string("border"));
  EXPECT_EQ(run(node)[0].int_at(1), 9);
  node.attributes.set("mode", std::string("linear"));
  EXPECT_NE(error_of([&] { run(node); }), "");
}

TEST(GridSample, Refuses) {
  const Tensor x = floats({1, 2, 3, 4}, {1, 1, 2, 2}), flat = floats({0, 0}, {1, 1, 2});
  OneNode node{.op = "GridSample", .operands = {&x, &flat}};
  EXPECT_EQ(error_of([&] { run(node); }), "the grid must be (1, ..., 2) of 4 axes, its shape is [1, 1, 2]");
  const Tensor grid = floats({0, 0}, {1, 1, 1, 2});
  node.operands[1] = &grid;
  node.attributes.set("padding_mode", std::string("mirror"));
  EXPECT_EQ(error_of([&] { run(node); }), "attribute 'padding_mode' is 'mirror', which is not known");
}

}  // namespace
}  // namespace gcompile::testing
