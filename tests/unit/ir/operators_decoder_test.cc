// Operators that decoders of text are made of: rotations, caches and what attention does with them. Their
// values on larger shapes are those of tests/project/transformer_operators.py and of the official cases; here
// are small ones, and what is refused.

#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;

void expect_near(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    EXPECT_NEAR(actual.real_at(i), expected.real_at(i), 1e-5) << i;
  }
}

/// `count` ones, or another number.
Tensor filled(const Shape& shape, float value = 1) {
  return floats(std::vector<float>(static_cast<std::size_t>(ir::element_count(shape)), value), shape);
}

OneNode standard(const char* op, std::vector<const Tensor*> operands, int results = 1) {
  return {.op = op, .operands = std::move(operands), .results = results};
}
OneNode microsoft(const char* op, std::vector<const Tensor*> operands, int results = 1) {
  return {
      .op = op, .operands = std::move(operands), .results = results, .opset = 1, .domain = "com.microsoft"};
}
std::string error(const OneNode& node) {
  return error_of([&] { run(node); });
}

TEST(RotaryEmbedding, TurnsPairsAndLeavesTheRest) {
  // Quarter turns at position 1.
  const Tensor cos = floats({1, 0}, {2, 1}), sin = floats({0, 1}, {2, 1});
  const Tensor x = floats({1, 2, 9, 3, 4, 9}, {1, 2, 3}), positions = ints({0, 1}, {1, 2});
  OneNode node = standard("RotaryEmbedding", {&x, &cos, &sin, &positions});
  EXPECT_EQ(error(node), "inputs of rank 3 need the attribute 'num_heads'");
  node.attributes.set("num_heads", std::int64_t{1});
  EXPECT_EQ(error(node), "3 elements of heads of 3 cannot be rotated in pairs");
  node.attributes.set("rotary_embedding_dim", std::int64_t{2});
  expect_near(run(node)[0], floats({1, 2, 9, -4, 3, 9}, {1, 2, 3}));
  const Tensor next = ints({1}, {1});
  OneNode other = microsoft("RotaryEmbedding", {&x, &next, &cos, &sin});
  other.attributes = node.attributes;
  const Tensor more_cos = floats({1, 0, 1}, {3, 1}), more_sin = floats({0, 1, 0}, {3, 1});
  other.operands = {&x, &next, &more_cos, &more_sin};
  expect_near(run(other)[0], floats({-2, 1, 9, 3, 4, 9}, {1, 2, 3}));
  node.operands[3] = &next;
  EXPECT_EQ(error(node), "position_ids must be (batch, rows), their shape is [1]");
}

TEST(TensorScatter, WritesEverySampleAtItsPlace) {
  const Tensor cache = filled({2, 3, 1}, 0), update = floats({1, 2, 3, 4}, {2, 2, 1}),
               places = ints({1, 2}, {2});
  OneNode node = standard("TensorScatter", {&cache, &update, &places});
  node.attributes.set("mode", std::string("circular"));
  expect_near(run(node)[0], floats({0, 1, 2, 4, 0, 3}, {2, 3, 1}));
  node.attributes.set("axis", std::int64_t{0});
  EXPECT_EQ(error(node), "the axis must not be that of the batch");
  node.attributes.set("axis", std::int64_t{2});
  EXPECT_EQ(error(node), "an update of shape [2, 2, 1] does not fit into a cache of shape [2, 3, 1]");
}

TEST(SwiGLU, IsTheGateTimesTheOther) {
  const Tensor a = floats({2}, {1}), b = floats({3}, {1}), wide = filled({2});
  expect_near(run(standard("SwiGLU", {&a, &b}))[0],
              floats({static_cast<float>(6 / (1 + std::exp(-2.0)))}, {1}));
  EXPECT_EQ(error(standard("SwiGLU", {&a, &wide})), "A and B have the shapes [1] and [2]");
}

TEST(CausalConvWithState, CarriesTheLastElements) {
  const Tensor x = floats({1, 2}, {1, 1, 2}), w = floats({1, 10, 100}, {1, 1, 3}),
               past = floats({3, 4}, {1, 1, 2});
  OneNode node = standard("CausalConvWithState", {&x, &w, nullptr, &past}, 2);
  auto y = run(node);
  expect_near(y[0], floats({143, 214}, {1, 1, 2}));
  expect_near(y[1], x);
  node.operands.resize(2);
  y = run(node);
  expect_near(y[0], floats({100, 210}, {1, 1, 2}));
  const Tensor one = floats({7}, {1, 1, 1});
  node.operands[0] = &one;
  expect_near(run(node)[1], floats({0, 7}, {1, 1, 2}));
  node.attributes.set("activation", std::string("relu"));
  EXPECT_EQ(error(node), "the activation 'relu' is not known");
  OneNode other = microsoft("CausalConvWithState", {&x, &w});
  other.attributes.set("ndim", std::int64_t{2});
  EXPECT_EQ(error(other), "ndim = 2 is not supported");
}

TEST(SimplifiedNormalizations, DivideByTheRoot) {
  const Tensor x = floats({3, -1}, {1, 2}), skip = floats({0, 5}, {1, 2}), gamma = floats({2, 1}, {2});
  OneNode node = standard("SimplifiedLayerNormalization", {&x, &gamma}, 2);
  auto y = run(node);
  const auto root = static_cast<float>(std::sqrt(5 + 1e-5));
  expect_near(y[0], floats({6 / root, -1 / root}, {1, 2}));
  expect_near(y[1], floats({1 / root}, {1, 1}));
  y = run(microsoft("SkipSimplifiedLayerNormalization", {&x, &skip, &gamma}, 4));
  expect_near(y[3], floats({3, 4}, {1, 2}));
  EXPECT_NEAR(y[0].real_at(1), 4 / std::sqrt(12.5), 1e-5);
  EXPECT_EQ(y[1].real_at(0), 0);
  EXPECT_EQ(error(microsoft("SkipSimplifiedLayerNormalization", {&x, &skip, &x})),
            "gamma must have 2 elements, its shape is [1, 2]");
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  const Tensor x = filled({1, 2, 4}), packed = filled({1, 2, 2, 3, 2}), past = filled({1, 2, 3, 2}),
               length = integers(ElementType::kInt32, {3}, {1}), mask = filled({1, 1, 2, 2});
  OneNode node = microsoft("MultiHeadAttention", {&x, &x, &x}, 3);
  EXPECT_EQ(error(node), "attribute 'num_heads' is missing");
  node.attributes.set("num_heads", std::int64_t{2});
  expect_near(run(node)[0], x);
  node.operands = {&x};
  EXPECT_EQ(error(node), "without key the query must be packed: (batch, rows, heads, 3, size)");
  node.operands = {&packed, nullptr, nullptr, nullptr, nullptr, nullptr, &past};
  EXPECT_EQ(error(node), "past_key and past_value come together");
  node.operands = {&x, &x, &x, nullptr, &mask};
  EXPECT_EQ(error(node), "key_padding_mask has at most rank 3");
  node.operands = {&x, &x, &x, nullptr, nullptr, nullptr, &past, &past, &length};
  EXPECT_EQ(error(node), "past_sequence_length is not supported");
}

/// One query head over the columns that `lengths` leaves.
TEST(GroupQueryAttention, AppendsToTheCacheOfEverySample) {
  const Tensor q = filled({2, 1, 2}, 0), k = filled({2, 1, 1}), v = floats({6, 9}, {2, 1, 1});
  const Tensor past = filled({2, 1, 4, 1}, 0), lengths = integers(ElementType::kInt32, {2, 1}, {2}),
               total = integers(ElementType::kInt32, {3}, {});
  OneNode node = microsoft("GroupQueryAttention", {&q, &k, &v, &past, &past, &lengths, &total}, 3);
  node.attributes.set("num_heads", std::int64_t{2});
  node.attributes.set("kv_num_heads", std::int64_t{1});
  const auto y = run(node);
  expect_near(y[0], floats({2, 2, 4.5f, 4.5f}, {2, 1, 2}));
  expect_near(y[2], floats({0, 0, 6, 0, 0, 9, 0, 0}, {2, 1, 4, 1}));
  node.attributes.set("smooth_softmax", std::int64_t{1});
  expect_near(run(node)[0], floats({1.5f, 1.5f, 3, 3}, {2, 1, 2}));
  node.attributes.set("local_window_size", std::int64_t{1});
  expect_near(run(node)[0], floats({3, 3, 4.5f, 4.5f}, {2, 1, 2}));
}

TEST(GroupQueryAttention, RefusesWhatDoesNotFit) {
  const Tensor q = filled({1, 1, 2}), k = filled({1, 1, 1}), past = filled({1, 1, 4, 1}),
               lengths = integers(ElementType::kInt32, {5}, {1}),
               total = integers(ElementType::kInt32, {6}, {});
  OneNode node = microsoft("GroupQueryAttention", {&q, &k, &k, &past, &past, &lengths, &total});
  node.known = true;
  node.attributes.set("num_heads", std::int64_t{2});
  node.attributes.set("kv_num_heads", std::int64_t{1});
  EXPECT_EQ(error(node), "total_sequence_length is 6, with 1 new rows and a cache of 4");
  node.attributes.set("do_rotary", std::int64_t{1});
  node.known = false;
  EXPECT_EQ(error(node), "do_rotary needs cos_cache and sin_cache");
  node.attributes.set("k_quant_type", std::string("PER_TENSOR"));
  EXPECT_EQ(error(node), "a quantised cache is not supported");
  node.attributes.set("k_quant_type", std::string("NONE"));
  node.attributes.set("sliding_window_cache", std::int64_t{1});
  EXPECT_EQ(error(node), "sliding_window_cache is not supported");
}

TEST(LinearAttention, GoesOnFromItsState) {
  const Tensor q = floats({1, 2}, {1, 2, 1}), k = floats({1, 3}, {1, 2, 1}), v = floats({5, 7}, {1, 2, 1}),
               past = floats({10}, {1, 1, 1, 1}), decay = floats({0, 0}, {1, 2, 1}),
               beta = floats({1, 0.5f}, {1, 2, 1});
  OneNode node = standard("LinearAttention", {&q, &k, &v, &past, &decay, &beta}, 2);
  EXPECT_EQ(error(node), "attribute 'kv_num_heads' is missing");
  node.attributes.set("kv_num_heads", std::int64_t{1});
  node.attributes.set("q_num_heads", std::int64_t{1});
  // 10 + 1 * (5 - 10), then 5 + 3 * (7 - 15) / 2.
  auto y = run(node);
  expect_near(y[0], floats({5, -14}, {1, 2, 1}));
  expect_near(y[1], floats({-7}, {1, 1, 1, 1}));
  node.attributes.set("update_rule", std::string("linear"));
  EXPECT_EQ(error(node), "update_rule 'linear' has no decay");
  node.operands.resize(4);
  expect_near(run(node)[0], floats({15, 72}, {1, 2, 1}));
  node.attributes.set("q_num_heads", std::int64_t{0});
  EXPECT_EQ(error(node), "0 query heads cannot share 1 heads");
  OneNode other = microsoft("LinearAttention", {&q, &k, &v, nullptr, &decay, &beta});
  other.attributes = node.attributes;
  other.attributes.set("state_window", std::int64_t{2});
  EXPECT_EQ(error(other), "state_window is not supported");
}

}  // namespace
}  // namespace gcompile::testing
