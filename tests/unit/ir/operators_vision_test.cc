// GridSample, Col2Im, MaxUnpool, RoiAlign, MaxRoiPool, DeformConv and Det beyond the official cases: places far
// outside, that are no numbers, axes of one element, types.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using ::testing::HasSubstr;
using Reals = std::vector<double>;

Tensor counted(const ir::Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < ir::element_count(shape); ++i) values.push_back(static_cast<float>(i + 1));
  return floats(values, shape);
}

/// Operand 0 is an input, the others are constants.
std::vector<Tensor> run_with(OneNode node, const std::vector<Tensor>& operands) {
  for (const Tensor& operand : operands) node.operands.push_back(&operand);
  node.known = true;
  return run(node);
}

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

TEST(GridSample, PlacesAreMiddlesOrEdges) {
  EXPECT_EQ(sampled(4, {-1, -0.5f, 0, 1}, "linear", "border", true), (Reals{1, 1.75, 2.5, 4}));
  EXPECT_EQ(sampled(4, {-1, -0.5f, 0, 1}, "linear", "border", false), (Reals{1, 1.5, 2.5, 4}));
  EXPECT_EQ(sampled(4, {-1, 1}, "linear", "zeros", false), (Reals{0.5, 2})) << "half of it is outside";
}

TEST(GridSample, ReflectsAsOftenAsItTakes) {
  // The place of g is 1.5 (g + 1) between 0 and 3.
  EXPECT_EQ(sampled(4, {-3, -5, 7, 1.5f}, "nearest", "reflection", true), (Reals{4, 1, 1, 3}));
  EXPECT_EQ(sampled(4, {-1000001, 1000001}, "nearest", "reflection", true).size(), 2u);
  // Between -0.5 and 3.5 an element is its own neighbour: the place of g is 2 g + 1.5.
  EXPECT_EQ(sampled(4, {-1.25f, -1.5f, 1.25f}, "linear", "reflection", false), (Reals{1, 1.5, 4}));
}

TEST(GridSample, OneElementIsEverywhere) {
  for (const char* mode : {"nearest", "linear"}) {
    for (const bool aligned : {false, true}) {
      EXPECT_EQ(sampled(1, {-3, 0, 0.25f, 5}, mode, "reflection", aligned), (Reals{1, 1, 1, 1})) << mode;
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
  EXPECT_EQ(sampled(5, places, "nearest", "zeros", false), (Reals{0, 0, 0, 0, 0}));
  EXPECT_EQ(sampled(5, {infinity, -infinity}, "nearest", "border", false), (Reals{5, 1}));
}

TEST(GridSample, CubicGoesThroughTheElements) {
  EXPECT_EQ(sampled(5, {-1, -0.5f, 0, 1}, "cubic", "border", true), (Reals{1, 2, 3, 5}));
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

TEST(Col2Im, OverlapsAreSummed) {
  // Windows of 2 along a line of 4, three of them: their first elements, then their second ones.
  const Tensor columns = floats({1, 2, 3, 10, 20, 30}, {1, 2, 3});
  OneNode node{.op = "Col2Im"};
  EXPECT_EQ(reals(run_with(node, {columns, ints({4}, {1}), ints({2}, {1})})[0]), (Reals{1, 12, 23, 30}));
  node.attributes.set("pads", std::vector<std::int64_t>{1, 1});
  EXPECT_EQ(reals(run_with(node, {columns, ints({2}, {1}), ints({2}, {1})})[0]), (Reals{12, 23}));
  node.attributes.set("pads", std::vector<std::int64_t>{0, 0});
  node.attributes.set("strides", std::vector<std::int64_t>{2});
  EXPECT_EQ(reals(run_with(node, {columns, ints({7}, {1}), ints({2}, {1})})[0]),
            (Reals{1, 10, 2, 20, 3, 30, 0}));
  node.attributes.set("strides", std::vector<std::int64_t>{1});
  node.attributes.set("dilations", std::vector<std::int64_t>{2});
  EXPECT_EQ(reals(run_with(node, {columns, ints({5}, {1}), ints({2}, {1})})[0]), (Reals{1, 2, 13, 20, 30}));
}

TEST(Col2Im, Refuses) {
  const Tensor columns = floats({1, 2, 3, 10, 20, 30}, {1, 2, 3});
  EXPECT_EQ(error_of([&] {
              run_with({.op = "Col2Im"}, {columns, ints({5}, {1}), ints({2}, {1})});
            }),
            "the columns must have the shape (N, C * 2, 4), not [1, 2, 3]");
  EXPECT_EQ(error_of([&] {
              run_with({.op = "Col2Im"}, {columns, ints({5}, {1}), ints({3}, {1})});
            }),
            "the columns must have the shape (N, C * 3, windows), not [1, 2, 3]");
}

TEST(MaxUnpool, UndoesMaxPool) {
  const Tensor x = floats({5, 6}, {1, 1, 2}), places = ints({1, 2}, {1, 1, 2});
  OneNode node{.op = "MaxUnpool"};
  node.attributes.set("kernel_shape", std::vector<std::int64_t>{2});
  node.attributes.set("strides", std::vector<std::int64_t>{2});
  EXPECT_EQ(reals(run_with(node, {x, places})[0]), (Reals{0, 5, 6, 0}));
  EXPECT_EQ(reals(run_with(node, {x, places, ints({1, 1, 5}, {3})})[0]), (Reals{0, 5, 6, 0, 0}));
  EXPECT_EQ(error_of([&] {
              run_with(node, {x, places, ints({1, 1, 3}, {3})});
            }),
            "output_shape [1, 1, 3] does not fit, the pool read [1, 1, 4]");
}

OneNode aligned(const std::string& mode, const std::string& coordinates) {
  OneNode node{.op = "RoiAlign"};
  node.attributes.set("mode", mode);
  node.attributes.set("coordinate_transformation_mode", coordinates);
  node.attributes.set("output_height", std::int64_t{1});
  node.attributes.set("output_width", std::int64_t{2});
  node.attributes.set("sampling_ratio", std::int64_t{1});
  return node;
}

TEST(RoiAlign, SamplesTheMiddlesOfCells) {
  const Tensor x = counted({2, 1, 2, 4}), images = ints({1, 0}, {2});
  const Tensor regions = floats({0, 0, 4, 0, 1, 1, 3, 1}, {2, 4});
  // Columns 1 and 3 of row 0.5 of the second image, for a region is one element high at least.
  EXPECT_EQ(reals(run_with(aligned("avg", "output_half_pixel"), {x, regions, images})[0]),
            (Reals{12, 14, 6.5, 7.5}));
  // In half pixels columns 0.5 and 2.5, and rows -0.5 and 0.5, of which the former is that of the edge.
  EXPECT_EQ(reals(run_with(aligned("avg", "half_pixel"), {x, regions, images})[0]), (Reals{9.5, 11.5, 4, 5}));
  // The largest of the four weighted elements.
  EXPECT_EQ(reals(run_with(aligned("max", "output_half_pixel"), {x, regions, images})[0]),
            (Reals{7, 8, 3.5, 4}));
}

TEST(RoiAlign, OlderOpsetsCountFromCorners) {
  const Tensor x = counted({1, 1, 2, 4}), images = ints({0}, {1}), regions = floats({0, 0, 4, 0}, {1, 4});
  OneNode node = aligned("avg", "");
  ir::Attributes old;
  for (const char* name : {"output_height", "output_width", "sampling_ratio"})
    old.set(name, node.attributes.int_of(name));
  node.attributes = old;
  node.opset = 10;
  EXPECT_EQ(reals(run_with(node, {x, regions, images})[0]), (Reals{4, 6}));
  node.opset = 16;
  EXPECT_EQ(reals(run_with(node, {x, regions, images})[0]), (Reals{1.5, 3.5}));
}

TEST(RoiAlign, NothingIsReadOutside) {
  const Tensor x = counted({1, 1, 2, 4}), images = ints({0}, {1});
  const Tensor regions = floats({-90, -90, -80, -80}, {1, 4});
  EXPECT_EQ(reals(run_with(aligned("avg", "half_pixel"), {x, regions, images})[0]), (Reals{0, 0}));
  OneNode node = aligned("avg", "half_pixel");
  node.attributes.set("sampling_ratio", std::int64_t{0});
  EXPECT_THAT(error_of([&] { run_with(node, {x, regions, images}); }), HasSubstr("sampling_ratio is 0"));
  node = aligned("avg", "half_pixel");
  node.known = true;
  EXPECT_THAT(error_of([&] {
                run_with(node, {x, regions, ints({-1}, {1})});
              }),
              HasSubstr("there is no image -1 of 1"));
  EXPECT_THAT(error_of([&] { run_with(node, {x, regions, floats({0}, {1})}); }), HasSubstr("integers"));
}

TEST(MaxRoiPool, CellsOverlapWhereTheyDoNotDivide) {
  const Tensor x = counted({1, 1, 3, 3});
  OneNode node{.op = "MaxRoiPool"};
  node.attributes.set("pooled_shape", std::vector<std::int64_t>{2, 2});
  EXPECT_EQ(reals(run_with(node, {x, floats({0, 0, 0, 2, 2}, {1, 5})})[0]), (Reals{5, 6, 8, 9}));
  EXPECT_EQ(reals(run_with(node, {x, floats({0, 2, 2, 3, 3}, {1, 5})})[0]), (Reals{9, 0, 0, 0}))
      << "beyond the image";
  EXPECT_EQ(error_of([&] {
              run_with(node, {x, floats({0, 2, 2, 3}, {1, 4})});
            }),
            "the regions must be (R, 5), their shape is [1, 4]");
}

TEST(DeformConv, TapsMoveByTheirOffsets) {
  const Tensor x = floats({1, 2, 4, 8}, {1, 1, 1, 4}), w = floats({1, 10}, {1, 1, 1, 2});
  // Offsets of rows and columns of both taps, at three places.
  const std::vector<float> moves = {0, 0, 0, 0.5f, -1, 0, 0, 0, 0, 0, 0, 1};
  const Tensor offset = floats(moves, {1, 4, 1, 3}), mask = floats({1, 1, 2, 1, 1, 1}, {1, 2, 1, 3}),
               bias = floats({100}, {1});
  EXPECT_EQ(reals(run_with({.op = "DeformConv"}, {x, w, offset})[0]), (Reals{21.5, 41, 4}));
  OneNode node{.op = "DeformConv"};
  EXPECT_EQ(reals(run_with(node, {x, w, offset, bias, mask})[0]), (Reals{121.5, 141, 108}));
  EXPECT_THAT(error_of([&] {
                run_with(node, {x, w, bias});
              }),
              HasSubstr("the offset must have the shape [1, 4, 1, 3]"));
}

TEST(Det, OfEachMatrix) {
  EXPECT_EQ(reals(run_with({.op = "Det"}, {floats({3}, {1, 1})})[0]), (Reals{3}));
  EXPECT_EQ(reals(run_with({.op = "Det"}, {floats({0, 2, 3, 4, 1, 0, 0, 1}, {2, 2, 2})})[0]), (Reals{-6, 1}));
  const std::vector<float> matrix = {0, 0, 2, 1, 3, 0, 0, 5, 0, 4, 1, 1, 1, 1, 0, 2};
  EXPECT_EQ(reals(run_with({.op = "Det"}, {floats(matrix, {4, 4})})[0]), (Reals{5}));
  EXPECT_EQ(run_with({.op = "Det"}, {floats({}, {2, 0, 0})})[0].real_at(1), 1);
  EXPECT_THAT(error_of([&] {
                run_with({.op = "Det"}, {floats({1, 2}, {1, 2})});
              }),
              HasSubstr("must be a square matrix"));
  EXPECT_THAT(error_of([&] { run_with({.op = "Det"}, {counted({9, 9})}); }), HasSubstr("8 are the most"));
}

}  // namespace
}  // namespace gcompile::testing
