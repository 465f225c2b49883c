// Attention and the fused operators of com.microsoft, against their formulas written out.

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "ir/graph/verify.h"
#include "tests/unit/ir/one_node.h"

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
  EXPECT_EQ(error_of([&] { run(node); }), "a mask of shape [3] is not supported");
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

/// A (2, 20) of ones and its index, weights of 20 rows and 2 columns in blocks of 16.
struct PackedProduct {
  std::int64_t bits;
  Tensor a, scales = floats({1, 2, 0.5f, 4}, {2, 2});
  Tensor packed;
  std::vector<std::int64_t> values;  // of columns, 32 each

  explicit PackedProduct(std::int64_t width) : bits(width) {
    std::vector<float> left;
    for (int i = 0; i < 40; ++i) left.push_back(i < 20 ? 1 : static_cast<float>(i - 20));
    a = floats(left, {2, 20});
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(8 * bits), 0);
    for (std::int64_t i = 0; i < 64; ++i) {
      values.push_back(i * 5 % (std::int64_t{1} << bits));
      bytes[static_cast<std::size_t>(i * bits / 8)] |= values.back() << (i * bits % 8);
    }
    packed = integers(ElementType::kUInt8, bytes, {2, 2, 2 * bits});
  }
  OneNode node(std::vector<const Tensor*> more = {}) const {
    std::vector<const Tensor*> operands = {&a, &packed, &scales};
    operands.insert(operands.end(), more.begin(), more.end());
    OneNode out = microsoft("MatMulNBits", std::move(operands));
    for (const auto& [name, value] : {std::pair{"K", std::int64_t{20}},
                                      {"N", std::int64_t{2}},
                                      {"bits", bits},
                                      {"block_size", std::int64_t{16}},
                                      {"accuracy_level", std::int64_t{4}}}) {
      out.attributes.set(name, value);
    }
    out.known = true;
    return out;
  }
  Tensor expected(const std::function<double(std::int64_t n, std::int64_t block)>& zero) const {
    std::vector<float> y;
    for (std::int64_t m = 0; m < 2; ++m) {
      for (std::int64_t n = 0; n < 2; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < 20; ++k) {
          const double w =
              static_cast<double>(values[static_cast<std::size_t>(32 * n + k)]) - zero(n, k / 16);
          sum += a.real_at(20 * m + k) * w * scales.real_at(2 * n + k / 16);
        }
        y.push_back(static_cast<float>(sum));
      }
    }
    return floats(y, {2, 2});
  }
};

TEST(MatMulNBits, DecodesEveryWidthAndKindOfZeroPoint) {
  for (const std::int64_t bits : {2, 4, 8}) {
    const PackedProduct product(bits);
    const double middle = static_cast<double>(std::int64_t{1} << (bits - 1));
    expect_near(run(product.node())[0], product.expected([&](auto, auto) { return middle; }));
    // Zero points 1 and 2 of column 0, 3 and 0 of column 1.
    const std::vector<std::int64_t> packed = bits == 8   ? std::vector<std::int64_t>{1, 2, 3, 0}
                                             : bits == 4 ? std::vector<std::int64_t>{1 + 2 * 16, 3}
                                                         : std::vector<std::int64_t>{1 + 2 * 4, 3};
    const Tensor zeros = integers(ElementType::kUInt8, packed, {2, bits == 8 ? 2 : 1});
    const auto zero = [](std::int64_t n, std::int64_t block) {
      return n == 0 ? 1.0 + block : 3.0 * (1 - block);
    };
    expect_near(run(product.node({&zeros}))[0], product.expected(zero));
    const Tensor broken = floats({1.5f, 0, 2, 7}, {2, 2}), bias = floats({100, 200}, {2});
    std::vector<std::int64_t> groups;
    for (std::int64_t k = 0; k < 20; ++k) groups.push_back(k / 16);
    const Tensor in_order = integers(ElementType::kInt32, groups, {20});
    Tensor y =
        product.expected([&](std::int64_t n, std::int64_t block) { return broken.real_at(2 * n + block); });
    for (std::int64_t i = 0; i < 4; ++i)
      y.set(i, ir::Scalar::of_real(ElementType::kFloat32, y.real_at(i) + bias.real_at(i % 2)));
    expect_near(run(product.node({&broken, &in_order, &bias}))[0], y);
  }
}

/// A row of two blocks of 2: 127 is 1 and 63.5 lies between two steps, of which the even one is taken; then
/// a block of zeros, one that is not finite, and tails.
TEST(MatMulBlocks, RoundsRowsWhereThatIsDecided) {
  const float infinite = std::numeric_limits<float>::infinity();
  const Tensor a = floats({127, 63.5f, -254, 3, 0, 0, 1e-38f, 0, 1, infinite, 1, 1}, {3, 4}),
               b = integers(ElementType::kInt8, {1, 2, 3, 4}, {4, 1}), scales = floats({0.5f, 2}, {2, 1});
  const auto product = [&](std::int64_t rounding) {
    OneNode node{.op = "MatMulBlocks", .operands = {&a, &b, &scales}, .domain = "gcompile"};
    node.attributes.set("block_size", std::int64_t{2});
    node.attributes.set("rounding", rounding);
    return run(node)[0];
  };
  const Tensor rounded = product(2);
  EXPECT_EQ(rounded.real_at(0), (127 + 2 * 64) * 0.5 + (-254 * 3 + 4 * 4) * 2);
  EXPECT_EQ(rounded.real_at(1), 0);
  EXPECT_TRUE(std::isnan(rounded.real_at(2)));
  for (const std::int64_t floats_stay : {0, 1}) {
    const Tensor exact = product(floats_stay);
    EXPECT_EQ(exact.real_at(0), (127 + 2 * 63.5) * 0.5 + (-254 * 3 + 3 * 4) * 2);
    EXPECT_GT(exact.real_at(1), 0);
    EXPECT_EQ(exact.real_at(2), infinite);
  }
}

TEST(MatMulNBits, RefusesWhatDoesNotFit) {
  const PackedProduct product(4);
  const auto error = [](const OneNode& node) { return error_of([&] { run(node); }); };
  OneNode node = product.node();
  node.attributes.set("bits", std::int64_t{3});
  EXPECT_EQ(error(node), "weights of 3 bits are not supported");
  node = product.node();
  node.attributes.set("block_size", std::int64_t{24});
  EXPECT_EQ(error(node), "the block size 24 must be a power of two, 16 at least");
  node = product.node();
  node.attributes.set("K", std::int64_t{21});
  EXPECT_EQ(error(node), "A of shape [2, 20] must end in K = 21");
  node.attributes.set("K", std::int64_t{40});
  EXPECT_EQ(error(node), "the weights must have 48 elements, not 32");
  node = product.node();
  node.attributes.set("weight_prepacked", std::int64_t{1});
  EXPECT_EQ(error(node), "weights prepacked for a GPU cannot be read");
  node = product.node();
  node.known = false;
  EXPECT_EQ(error(node), "weights, scales and zero points must be constants");
  const Tensor reordered = integers(ElementType::kInt32, std::vector<std::int64_t>(20, 1), {20});
  EXPECT_EQ(error(product.node({nullptr, &reordered})),
            "groups of rows that are not neighbours (g_idx) are not supported");
}

// Rotary embedding
// -------------------------------------------------------------------------------------------

/// x (batch, heads, rows, size), whose first `rotated` elements turn by the angles of tables (positions,
/// rotated / 2).
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions,
               std::int64_t count, bool interleaved) {
  const std::int64_t heads = x.shape()[1], rows = x.shape()[2], size = x.shape()[3], half = count / 2;
  std::vector<float> y;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::int64_t d = i % size, row = i / size % rows, batch = i / size / rows / heads;
    if (d >= count) {
      y.push_back(static_cast<float>(x.real_at(i)));
      continue;
    }
    const std::int64_t pair = interleaved ? d / 2 : d % half;
    const bool second = interleaved ? d % 2 == 1 : d >= half;
    const std::int64_t angle = positions.int_at(batch * rows + row) * half + pair,
                       step = interleaved ? 1 : half;
    const double other = x.real_at(second ? i - step : i + step);
    y.push_back(static_cast<float>(x.real_at(i) * cos.real_at(angle) +
                                   (second ? other : -other) * sin.real_at(angle)));
  }
  return floats(y, x.shape());
}

/// The same with heads beside each other in rows: (batch, rows, heads * size).
Tensor beside(const Tensor& x) {
  const std::int64_t batch = x.shape()[0], heads = x.shape()[1], rows = x.shape()[2], size = x.shape()[3];
  std::vector<float> y;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::int64_t d = i % size, head = i / size % heads, row = i / size / heads % rows,
                       b = i / size / heads / rows;
    y.push_back(static_cast<float>(x.real_at(((b * heads + head) * rows + row) * size + d)));
  }
  return floats(y, {batch, rows, heads * size});
}

TEST(RotaryEmbedding, TurnsPairsByThePositionsOfRows) {
  const Tensor x = wave({2, 3, 4, 6}, 0), positions = ints({7, 0, 3, 1, 2, 2, 6, 5}, {2, 4});
  for (const std::int64_t count : {0, 4}) {
    const std::int64_t half = count == 0 ? 3 : 2;
    const Tensor cos = wave({8, half}, 1), sin = wave({8, half}, 2);
    for (const std::int64_t interleaved : {0, 1}) {
      const Tensor expected = rotated(x, cos, sin, positions, 2 * half, interleaved == 1), flat = beside(x);
      OneNode node = {.op = "RotaryEmbedding", .operands = {&x, &cos, &sin, &positions}};
      node.attributes.set("interleaved", interleaved);
      node.attributes.set("rotary_embedding_dim", count);
      expect_near(run(node)[0], expected);
      node.operands[0] = &flat;
      node.attributes.set("num_heads", std::int64_t{3});
      expect_near(run(node)[0], beside(expected));
    }
  }
}

}  // namespace
}  // namespace gcompile::testing
