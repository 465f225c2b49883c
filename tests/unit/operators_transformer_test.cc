// Attention and the fused operators of com.microsoft, against their formulas written out.

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "ir/verify.h"
#include "tests/unit/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;

Tensor wave(const Shape& shape, double phase) {
  std::vector<float> values(static_cast<std::size_t>(ir::element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(phase + 1.7 * static_cast<double>(i)));
  }
  return floats(values, shape);
}

void expect_near(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    EXPECT_NEAR(actual.real_at(i), expected.real_at(i), 1e-5) << i;
  }
}

/// softmax(scale Q K' + bias(b, h, i, j)) V for q (B, H, S, D), k (B, G, T, D), v (B, G, T, D).
template <class Bias>
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, double scale, Bias bias) {
  const std::int64_t batch = q.shape()[0], heads = q.shape()[1], rows = q.shape()[2], size = q.shape()[3],
                     groups = k.shape()[1], columns = k.shape()[2];
  std::vector<float> y(static_cast<std::size_t>(q.count()), 0.0f);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = (b * groups + h / (heads / groups)) * columns;
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row = ((b * heads + h) * rows + i) * size;
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < size; ++d) score += q.real_at(row + d) * k.real_at((g + j) * size + d);
          weights.push_back(std::exp(scale * score + bias(b, h, i, j)));
          sum += weights.back();
        }
        for (std::int64_t d = 0; d < size; ++d) {
          double value = 0;
          for (std::int64_t j = 0; j < columns && sum > 0; ++j) {
            value += weights[static_cast<std::size_t>(j)] / sum * v.real_at((g + j) * size + d);
          }
          y[static_cast<std::size_t>(row + d)] = static_cast<float>(value);
        }
      }
    }
  }
  return floats(y, q.shape());
}

double hidden(bool visible) { return visible ? 0 : -std::numeric_limits<double>::infinity(); }

TEST(Attention, SharesKeysAmongGroupsOfQueryHeads) {
  const Tensor q = wave({2, 4, 3, 2}, 0), k = wave({2, 2, 5, 2}, 1), v = wave({2, 2, 5, 2}, 2);
  const OneNode node = {.op = "Attention", .operands = {&q, &k, &v}};
  ir::Graph graph = graph_of(node);
  decompose_all(graph);
  EXPECT_TRUE(ir::verify(graph).empty());
  for (const ir::NodeId id : graph.nodes()) EXPECT_NE(graph.node(id).op->name, "Expand");
  expect_near(evaluate_inputs(graph, node)[0],
              attend(q, k, v, 1 / std::sqrt(2.0), [](auto, auto, auto, auto) { return 0.0; }));
}

TEST(Attention, CausalRowsSeeThePast) {
  const Tensor q = wave({1, 2, 3, 2}, 0), k = wave({1, 2, 3, 2}, 1), v = wave({1, 2, 3, 2}, 2);
  const Tensor past_k = wave({1, 2, 2, 2}, 3), past_v = wave({1, 2, 2, 2}, 4);
  OneNode node = {.op = "Attention", .operands = {&q, &k, &v, nullptr, &past_k, &past_v}, .results = 3};
  node.attributes.set("is_causal", std::int64_t{1});
  node.attributes.set("scale", 0.5f);
  const auto y = run(node);
  ASSERT_EQ(y[1].shape(), (Shape{1, 2, 5, 2}));
  EXPECT_EQ(y[1].at(0), past_k.at(0));
  EXPECT_EQ(y[1].at(4), k.at(0));
  expect_near(y[0],
              attend(q, y[1], y[2], 0.5, [](auto, auto, auto i, auto j) { return hidden(j <= i + 2); }));
}

TEST(Attention, RowsWithoutAnyKeyGiveZeros) {
  const Tensor q = wave({1, 1, 2, 2}, 0), k = wave({1, 1, 2, 2}, 1), v = wave({1, 1, 2, 2}, 2);
  const Tensor mask = integers(ElementType::kBool, {0, 0, 1, 0}, {2, 2});
  const Tensor y = run({.op = "Attention", .operands = {&q, &k, &v, &mask}})[0];
  expect_near(y, attend(q, k, v, 1 / std::sqrt(2.0),
                        [](auto, auto, auto i, auto j) { return hidden(i == 1 && j == 0); }));
  EXPECT_EQ(y.real_at(0), 0);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Tensor q = wave({1, 3, 2, 2}, 0), k = wave({1, 2, 2, 2}, 1), flat = wave({1, 2, 4}, 0);
  const auto error = [](const OneNode& node) { return error_of([&] { run(node); }); };
  EXPECT_EQ(error({.op = "Attention", .operands = {&q, &k, &k}}), "3 query heads cannot share 2 key heads");
  EXPECT_EQ(error({.op = "Attention", .operands = {&flat, &flat, &flat}}),
            "inputs of rank 3 need the attribute 'q_num_heads'");
  EXPECT_EQ(error({.op = "Attention", .operands = {&k, &k, &k, nullptr, &k}}),
            "past_key and past_value come together");
  const Tensor mask = wave({2, 1, 2, 2}, 0);
  EXPECT_EQ(error({.op = "Attention", .operands = {&k, &k, &k, &mask}}),
            "attn_mask of shape [2, 1, 2, 2] does not broadcast to [1, 2, 2, 2]");
}

OneNode microsoft(const char* op, std::vector<const Tensor*> operands, int results = 1) {
  return {
      .op = op, .operands = std::move(operands), .results = results, .opset = 1, .domain = "com.microsoft"};
}

TEST(MicrosoftAttention, ProjectsAndMasksByKeyLengths) {
  const Tensor x = wave({2, 3, 4}, 0), w = wave({4, 12}, 1), b = wave({12}, 2);
  const Tensor lengths = integers(ElementType::kInt32, {2, 3}, {2});
  OneNode node = microsoft("Attention", {&x, &w, &b, &lengths}, 2);
  node.attributes.set("num_heads", std::int64_t{2});
  const auto y = run(node);
  // Q, K, V of (batch 2, heads 2, rows 3, size 2), projected by hand.
  std::vector<Tensor> parts;
  for (std::int64_t part = 0; part < 3; ++part) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t d = i % 2, row = i / 2 % 3, head = i / 6 % 2, batch = i / 12;
      const std::int64_t column = part * 4 + head * 2 + d;
      double sum = b.real_at(column);
      for (std::int64_t c = 0; c < 4; ++c)
        sum += x.real_at((batch * 3 + row) * 4 + c) * w.real_at(c * 12 + column);
      values.push_back(static_cast<float>(sum));
    }
    parts.push_back(floats(values, {2, 2, 3, 2}));
  }
  const Tensor heads = attend(parts[0], parts[1], parts[2], 1 / std::sqrt(2.0),
                              [](auto n, auto, auto, auto j) { return n == 0 && j == 2 ? -10000.0 : 0.0; });
  std::vector<float> joined;
  for (std::int64_t i = 0; i < 24; ++i) {
    const std::int64_t d = i % 2, head = i / 2 % 2, row = i / 4 % 3, batch = i / 12;
    joined.push_back(static_cast<float>(heads.real_at(((batch * 2 + head) * 3 + row) * 2 + d)));
  }
  expect_near(y[0], floats(joined, {2, 3, 4}));
  ASSERT_EQ(y[1].shape(), (Shape{2, 2, 2, 3, 2}));
  EXPECT_NEAR(y[1].real_at(24), parts[2].real_at(0), 1e-6);
}

TEST(MicrosoftAttention, RefusesWhatItDoesNotDo) {
  const Tensor x = wave({2, 3, 4}, 0), w = wave({4, 12}, 1),
               mask = integers(ElementType::kInt32, {1, 1, 1}, {3});
  OneNode node = microsoft("Attention", {&x, &w, nullptr, &mask});
  EXPECT_EQ(error_of([&] { run(node); }), "attribute 'num_heads' is missing");
  node.attributes.set("num_heads", std::int64_t{2});
  EXPECT_EQ(error_of([&] { run(node); }), "mask_index of shape [3] is not supported");
  node.attributes.set("do_rotary", std::int64_t{1});
  EXPECT_EQ(error_of([&] { run(node); }), "do_rotary is not supported");
}

TEST(MicrosoftActivations, HaveTheirFormulas) {
  const Tensor x = floats({-1, 0.5f}, {1, 2}), bias = floats({0.25f, 1}, {2});
  const auto gelu = [](double v) { return v * (1 + std::erf(v / std::sqrt(2.0))) / 2; };
  EXPECT_NEAR(run(microsoft("Gelu", {&x}))[0].real_at(0), gelu(-1), 1e-6);
  EXPECT_NEAR(run(microsoft("BiasGelu", {&x, &bias}))[0].real_at(1), gelu(1.5), 1e-6);
  const double t = std::tanh(std::sqrt(2 / M_PI) * (1.5 + 0.044715 * 1.5 * 1.5 * 1.5));
  EXPECT_NEAR(run(microsoft("FastGelu", {&x, &bias}))[0].real_at(1), 1.5 * (1 + t) / 2, 1e-6);
  EXPECT_NEAR(run(microsoft("QuickGelu", {&x}))[0].real_at(0), -1 / (1 + std::exp(1.702)), 1e-6);
  const Tensor wide = floats({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(error_of([&] {
              run(microsoft("BiasGelu", {&x, &wide}));
            }),
            "the bias does not broadcast to the input");
}

TEST(MicrosoftNormalization, AddsBeforeItNormalises) {
  const Tensor x = floats({1, 2}, {1, 1, 2}), skip = floats({3, -2}, {1, 1, 2}), gamma = floats({2, 3}, {2});
  const Tensor beta = floats({10, 20}, {2}), bias = floats({1, 0}, {2});
  const auto y = run(microsoft("SkipLayerNormalization", {&x, &skip, &gamma, &beta, &bias}, 4));
  expect_near(y[3], floats({5, 0}, {1, 1, 2}));
  expect_near(y[0], floats({12, 17}, {1, 1, 2}));
  EXPECT_NEAR(y[1].real_at(0), 2.5, 1e-6);
  EXPECT_EQ(error_of([&] {
              run(microsoft("SkipLayerNormalization", {&x, &skip, &x}));
            }),
            "gamma must have 2 elements, its shape is [1, 1, 2]");
}

TEST(MicrosoftNormalization, EmbedsWordsPositionsAndSegments) {
  const Tensor ids = integers(ElementType::kInt32, {1, 0}, {1, 2}),
               segments = integers(ElementType::kInt32, {0, 1}, {1, 2});
  const Tensor words = floats({1, 2, 3, 5}, {2, 2}), positions = floats({0, 1, 2, 3, 9, 9}, {3, 2}),
               kinds = floats({0, 0, 1, 0}, {2, 2}), gamma = floats({1, 1}, {2}), beta = floats({0, 0}, {2}),
               mask = integers(ElementType::kInt32, {1, 0}, {1, 2});
  const auto y = run(microsoft("EmbedLayerNormalization",
                               {&ids, &segments, &words, &positions, &kinds, &gamma, &beta, &mask}, 3));
  expect_near(y[2], floats({3, 6, 4, 5}, {1, 2, 2}));
  expect_near(y[0], floats({-1, 1, -1, 1}, {1, 2, 2}));
  EXPECT_EQ(y[1].ints(), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(error_of([&] {
              run(microsoft("EmbedLayerNormalization",
                            {&ids, &segments, &words, &positions, nullptr, &gamma, &beta}, 2));
            }),
            "segment_ids and segment_embedding come together");
}

TEST(MicrosoftFused, TakesProductsAndActivationsApart) {
  const Tensor a = floats({1, -2, 3, 4}, {2, 2}), b = floats({1, 0, 0, 1}, {2, 2});
  OneNode product = microsoft("FusedMatMul", {&a, &b});
  product.attributes.set("transA", std::int64_t{1});
  product.attributes.set("alpha", 2.0f);
  expect_near(run(product)[0], floats({2, 6, -4, 8}, {2, 2}));
  OneNode gemm = microsoft("FusedGemm", {&a, &b});
  gemm.attributes.set("activation", std::string("LeakyRelu"));
  gemm.attributes.set("activation_alpha", 0.5f);
  expect_near(run(gemm)[0], floats({1, -1, 3, 4}, {2, 2}));
  const Tensor x = floats({1, -2}, {1, 1, 2}), w = floats({3}, {1, 1, 1}), z = floats({1, 1}, {1, 1, 2});
  OneNode conv = microsoft("FusedConv", {&x, &w, nullptr, &z});
  conv.attributes.set("activation", std::string("Relu"));
  expect_near(run(conv)[0], floats({4, 0}, {1, 1, 2}));
  conv.attributes.set("activation", std::string("Maxout"));
  EXPECT_EQ(error_of([&] { run(conv); }), "the activation 'Maxout' is not known");
}

}  // namespace
}  // namespace gcompile::testing
