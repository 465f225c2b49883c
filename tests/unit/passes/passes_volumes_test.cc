// Convolutions of volumes as ones of images, and transposed ones by the phases of their strides.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

std::string ints(const std::vector<int>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

struct Cell {
  std::vector<int> x, w;  // shapes
  std::vector<int> strides, pads, dilations = {};
  int groups = 1;
  std::vector<int> output_padding = {};
};

/// One convolution with a bias, whose result's shape inference finds.
std::string network(const std::string& op, const Cell& cell) {
  const std::string zeros = fmt::format("{}", fmt::join(std::vector<std::string>(cell.x.size(), "?"), ","));
  std::string attributes =
      fmt::format("strides = {}, pads = {}, group = {}", ints(cell.strides), ints(cell.pads), cell.groups);
  if (!cell.dilations.empty()) attributes += ", dilations = " + ints(cell.dilations);
  if (!cell.output_padding.empty()) attributes += ", output_padding = " + ints(cell.output_padding);
  const int channels = op == "Conv" ? cell.w[0] : cell.w[1] * cell.groups;
  return fmt::format(
      "g (float{} x, float{} w_w, float[{}] w_b) => (float[{}] y) {{ y = {}<{}>(x, w_w, w_b) }}",
      ints(cell.x), ints(cell.w), channels, zeros, op, attributes);
}

/// The rule fires, keeps the result, and leaves none of `op` with as many axes.
void expect_taken(const std::string& rule, const std::string& op, const Cell& cell) {
  const std::string text = network(op, cell);
  SCOPED_TRACE(rule + " on " + text);
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  passes::Report report = apply_rule(graph, rule);
  EXPECT_EQ(report.rule_counts[rule], 1);
  expect_same(before, graph, 2e-5);
}

TEST(Volumes, AreImages) {
  const std::string rule = "volume-as-images";
  for (const int stride : {1, 2}) {
    for (const int pad : {0, 1}) {
      for (const int dilation : {1, 2}) {
        const std::vector<int> strides = {stride, 1, 2}, dilations = {dilation, 1, 1};
        const std::vector<int> pads = {pad, 1, 0, pad, 0, 1};
        expect_taken(rule, "Conv", {{2, 4, 7, 5, 6}, {6, 4, 3, 3, 2}, strides, pads, dilations});
        expect_taken(rule, "Conv", {{1, 4, 7, 5, 6}, {6, 2, 3, 3, 2}, strides, pads, dilations, 2});
        expect_taken(rule, "Conv", {{2, 4, 7, 5, 6}, {8, 1, 3, 3, 2}, strides, pads, dilations, 4});
        // One plane at a time, and one pixel of each.
        expect_taken(rule, "Conv", {{2, 3, 5, 4, 4}, {4, 3, 1, 3, 3}, {stride, 1, 1}, {pad, 1, 1, 0, 1, 1}});
        expect_taken(
            rule, "Conv",
            {{2, 3, 7, 4, 5}, {4, 3, 3, 1, 1}, {stride, 1, 1}, {pad, 0, 0, 0, 0, 0}, {dilation, 1, 1}});
      }
    }
  }
}

TEST(Depthwise, SeveralResultsOfAChannel) {
  const std::string rule = "depthwise-by-results";
  for (int count = 2; count <= 4; ++count) {
    expect_taken(rule, "Conv", {{2, 3, 5, 6}, {3 * count, 1, 3, 2}, {2, 1}, {1, 0, 0, 1}, {}, 3});
    expect_taken(rule, "Conv", {{1, 4, 7}, {4 * count, 1, 3}, {1}, {2, 0}, {2}, 4});
  }
  expect_refuses(
      rule, "g (float[1,3,6,6] x, float[3,1,3,3] w_w) => (float[1,3,4,4] y) { y = Conv<group = 3>(x, w_w) }",
      "one result of a channel");
}

TEST(Volumes, OpenSizes) {
  ir::Graph graph = parse(
      "g (float[1,2,5,4,4] x, float[3,2,3,3,3] w_w) => (float[1,3,5,4,4] y)"
      " { c = Conv<pads = [1,1,1,1,1,1]>(x, w_w) y = Relu(c) }");
  passes::Options options;
  graph = run_pipeline(std::move(graph), options, 2e-5);
  EXPECT_EQ(operators(graph).find("Relu"), std::string::npos) << operators(graph);
}

TEST(Volumes, RefuseWhatTheyCannotTake) {
  expect_refuses("volume-as-images",
                 "g (float[1,2,6,6] x, float[3,2,3,3] w_w) => (float[1,3,4,4] y)"
                 " { y = Conv(x, w_w) }",
                 "not a volume");
  expect_refuses("volume-as-images",
                 "g (float[1,2,4,4,4] x, float[3,2,3,3,3] w) => (float[1,3,2,2,2] y)"
                 " { y = Conv(x, w) }",
                 "weights that are not known");
}

TEST(TransposedPhases, OfDepthwiseWindows) {
  const std::string rule = "transposed-depthwise-by-phases";
  for (int stride = 1; stride <= 3; ++stride) {
    for (int kernel = stride; kernel <= 5; ++kernel) {
      for (int pad = 0; pad < kernel; ++pad) {
        if (2 * pad > kernel + stride) continue;  // crops elements that no phase may leave out
        const Cell cell{{2, 3, 4, 5}, {3, 1, kernel, stride}, {stride, stride}, {pad, 0, pad, 0}, {}, 3};
        const std::string text = network("ConvTranspose", cell);
        SCOPED_TRACE(text);
        ir::Graph graph = parse(text);
        prepare(graph);
        const ir::Graph before = graph;
        apply_rule(graph, rule);
        expect_same(before, graph, 2e-5);
      }
    }
  }
  expect_taken(rule, "ConvTranspose", {{1, 4, 3, 3}, {4, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 4, {1, 1}});
  expect_taken(rule, "ConvTranspose", {{1, 4, 3, 3}, {4, 1, 4, 4}, {2, 2}, {1, 1, 1, 1}, {}, 4});
  expect_taken(rule, "ConvTranspose", {{1, 4, 6}, {4, 1, 5}, {2}, {0, 0}, {}, 4});
}

TEST(TransposedPhases, OfVolumes) {
  for (int stride = 1; stride <= 3; ++stride) {
    for (int kernel = stride; kernel <= 4; ++kernel) {
      for (int pad = 0; pad < kernel; ++pad) {
        expect_taken("transposed-volume-by-phases", "ConvTranspose",
                     {{1, 2, 4, 3, 2}, {2, 3, kernel, 2, 3}, {stride, 2, 1}, {pad, 0, 1, 0, 0, 1}});
      }
    }
  }
}

}  // namespace
}  // namespace gcompile::testing
