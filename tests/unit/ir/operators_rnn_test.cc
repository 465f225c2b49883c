// RNN, GRU and LSTM against values of an independent numpy program on the same number patterns.

#include <cmath>

#include "gtest/gtest.h"
#include "ir/forms/form.h"
#include "ir/ops/recurrent.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;

/// Element i is ((i * k) mod m - m / 2) / m.
Tensor pattern(const Shape& shape, int k, int m) {
  std::vector<float> values(static_cast<std::size_t>(ir::element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i) * k % m - m / 2) / static_cast<float>(m);
  }
  return floats(values, shape);
}

/// Operands of a layer with 3 steps, batch 2, 2 inputs and 2 hidden units.
struct Layer {
  Layer(int gates, int directions)
      : x(pattern({3, 2, 2}, 3, 7)),
        w(pattern({directions, gates * 2, 2}, 5, 11)),
        r(pattern({directions, gates * 2, 2}, 4, 9)),
        b(pattern({directions, gates * 4}, 3, 8)),
        h(pattern({directions, 2, 2}, 2, 5)),
        c(pattern({directions, 2, 2}, 3, 7)),
        p(pattern({directions, 6}, 2, 7)) {}
  Tensor x, w, r, b, h, c, p;
};

void expect_near(const Tensor& actual, const std::vector<float>& expected, const Shape& shape) {
  ASSERT_EQ(actual.shape(), shape);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual.real_at(static_cast<std::int64_t>(i)), expected[i], 2e-6) << i;
  }
}

Tensor lengths(std::vector<std::int64_t> values) {
  return integers(ElementType::kInt32, values, {static_cast<std::int64_t>(values.size())});
}

OneNode bidirectional_lstm(const Layer& l, const Tensor& steps) {
  OneNode node = {.op = "LSTM", .operands = {&l.x, &l.w, &l.r, &l.b, &steps, &l.h, &l.c, &l.p}, .results = 3};
  node.attributes.set("direction", std::string("bidirectional"));
  node.attributes.set("hidden_size", std::int64_t{2});
  return node;
}

const std::vector<float> kLstmY = {
    -0.1959624f, 0.0361841f, 0.0890578f,  -0.0319439f, -0.1303784f, 0.0267952f,  -0.0391170f, 0.0277265f,
    -0.2220878f, 0.0592984f, -0.0511959f, -0.0122853f, -0.0610609f, -0.0043036f, 0.0177085f,  -0.0187075f,
    -0.1444418f, 0.0837600f, 0.0000000f,  0.0000000f,  -0.0185264f, -0.0802294f, 0.0000000f,  0.0000000f};

TEST(Lstm, RunsBothDirectionsWithPeepholesStatesAndLengths) {
  const Layer l(4, 2);
  const Tensor steps = lengths({3, 2});
  const auto y = run(bidirectional_lstm(l, steps));
  expect_near(y[0], kLstmY, {3, 2, 2, 2});
  expect_near(
      y[1],
      {-0.1444418f, 0.0837600f, -0.0511959f, -0.0122853f, -0.1303784f, 0.0267952f, -0.0391170f, 0.0277265f},
      {2, 2, 2});
  expect_near(
      y[2],
      {-0.2571702f, 0.2802715f, -0.0779327f, -0.0342050f, -0.2005572f, 0.0740286f, -0.0667633f, 0.0976648f},
      {2, 2, 2});
}

Tensor swapped(const Tensor& t) {
  const Shape& s = t.shape();
  Tensor out(ir::TensorType{t.element(), {s[1], s[0], s[2]}});
  for (std::int64_t i = 0; i < t.count(); ++i) {
    const std::int64_t k = i % s[2], b = i / s[2] % s[1], a = i / s[2] / s[1];
    out.set((b * s[0] + a) * s[2] + k, t.at(i));
  }
  return out;
}

TEST(Lstm, LayoutOneIsTheSameWithTheBatchFirst) {
  Layer l(4, 2);
  const Tensor steps = lengths({3, 2});
  const auto expected = run(bidirectional_lstm(l, steps));
  l.x = swapped(l.x);
  l.h = swapped(l.h);
  l.c = swapped(l.c);
  OneNode node = bidirectional_lstm(l, steps);
  node.attributes.set("layout", std::int64_t{1});
  ir::Graph graph = graph_of(node);
  const auto direct = evaluate_inputs(graph, node);
  decompose_all(graph);
  const auto decomposed = evaluate_inputs(graph, node);
  for (const auto& y : {direct, decomposed}) {
    ASSERT_EQ(y[0].shape(), (Shape{2, 3, 2, 2}));
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t rest = 0; rest < 12; ++rest) {  // (step, direction, hidden)
        const std::int64_t k = rest % 2, d = rest / 2 % 2, t = rest / 4;
        EXPECT_EQ(y[0].at(n * 12 + rest), expected[0].at(((t * 2 + d) * 2 + n) * 2 + k));
      }
    }
    EXPECT_TRUE(swapped(y[1]).identical(expected[1]));
    EXPECT_TRUE(swapped(y[2]).identical(expected[2]));
  }
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op->name == "LSTM") {
      EXPECT_EQ(graph.node(id).attributes.int_of("layout"), 0);
    }
  }
}

TEST(Lstm, ClipsInputsOfActivationsAndCouplesGates) {
  const Layer l(4, 1);
  OneNode node = {
      .op = "LSTM", .operands = {&l.x, &l.w, &l.r, &l.b, nullptr, &l.h, &l.c, &l.p}, .results = 3};
  node.attributes.set("direction", std::string("reverse"));
  node.attributes.set("activations", std::vector<std::string>{"hardsigmoid", "LeakyRelu", "TANH"});
  node.attributes.set("activation_alpha", std::vector<float>{0.5f, 0.1f});
  node.attributes.set("activation_beta", std::vector<float>{0.4f});
  node.attributes.set("clip", 0.3f);
  node.attributes.set("input_forget", std::int64_t{1});
  const auto y = run(node);
  expect_near(y[0],
              {-0.1038556f, 0.0373984f, 0.0891107f, 0.0143832f, -0.1364928f, 0.0251562f, 0.1232433f,
               0.0016874f, -0.1517586f, 0.0187149f, 0.1602219f, -0.0037430f},
              {3, 1, 2, 2});
  expect_near(y[2], {-0.1975954f, 0.1507249f, 0.1634598f, 0.0575964f}, {1, 2, 2});
}

TEST(Gru, AppliesTheResetGateBeforeOrAfterTheProduct) {
  const Layer l(3, 1);
  OneNode node = {.op = "GRU", .operands = {&l.x, &l.w, &l.r, &l.b, nullptr, &l.h}, .results = 2};
  expect_near(run(node)[1], {0.1417678f, -0.0586815f, 0.2238220f, -0.0522516f}, {1, 2, 2});
  node.attributes.set("linear_before_reset", std::int64_t{1});
  expect_near(run(node)[1], {-0.0299160f, 0.1692468f, 0.0718039f, 0.1441881f}, {1, 2, 2});
}

TEST(Rnn, HasOneActivationPerDirection) {
  const Layer l(1, 2);
  const Tensor steps = lengths({3, 1});
  OneNode node = {.op = "RNN", .operands = {&l.x, &l.w, &l.r, &l.b, &steps, &l.h}, .results = 2};
  node.attributes.set("direction", std::string("bidirectional"));
  node.attributes.set("activations", std::vector<std::string>{"Affine", "Softsign"});
  node.attributes.set("activation_alpha", std::vector<float>{0.5f});
  node.attributes.set("activation_beta", std::vector<float>{0.25f});
  const auto y = run(node);
  expect_near(y[0], {0.3112915f,  -0.1862915f, -0.0612915f, 0.2038961f, -0.3510858f, 0.1876405f,
                     -0.1357486f, 0.3431902f,  -0.0091110f, 0.1574475f, 0.0f,        0.0f,
                     -0.1823504f, 0.3348373f,  0.0f,        0.0f,       0.1270247f,  -0.0302523f,
                     0.0f,        0.0f,        -0.1470244f, 0.3593418f, 0.0f,        0.0f},
              {3, 2, 2, 2});
  expect_near(
      y[1],
      {0.1270247f, -0.0302523f, -0.0612915f, 0.2038961f, -0.3510858f, 0.1876405f, -0.1357486f, 0.3431902f},
      {2, 2, 2});
}

TEST(Recurrent, NormalisationFillsWhatTheSpecificationImplies) {
  const Layer l(4, 1);
  const ir::Graph graph = graph_of({.op = "LSTM", .operands = {&l.x, &l.w, &l.r}, .results = 1});
  const ir::Node& node = graph.node(graph.nodes()[0]);
  EXPECT_EQ(node.attributes.int_of("hidden_size"), 2);
  EXPECT_EQ(node.attributes.strings_of("activations"), (std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}));
  const ir::Form form = ir::form_of(graph, graph.nodes()[0]);
  EXPECT_EQ(std::get<ir::RecurrentWork>(std::get<ir::LibraryForm>(form).work).cell, ir::RecurrentCell::kLstm);
}

TEST(Recurrent, ActivationsHaveTheirDefinitions) {
  EXPECT_NEAR(ir::activate({ir::RecurrentFunction::kElu, 2, 0}, -1), 2 * (std::exp(-1.0) - 1), 1e-12);
  EXPECT_EQ(ir::activate({ir::RecurrentFunction::kThresholdedRelu, 1, 0}, 1), 0);
  EXPECT_EQ(ir::activate({ir::RecurrentFunction::kThresholdedRelu, 1, 0}, 1.5), 1.5);
  EXPECT_NEAR(ir::activate({ir::RecurrentFunction::kScaledTanh, 2, 3}, 0.5), 2 * std::tanh(1.5), 1e-12);
  EXPECT_NEAR(ir::activate({ir::RecurrentFunction::kSoftplus, 0, 0}, 1000), 1000, 1e-9);
  EXPECT_EQ(ir::activate({ir::RecurrentFunction::kRelu, 0, 0}, -3), 0);
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const Layer l(4, 1);
  const Tensor wrong = pattern({1, 8, 3}, 1, 5);
  const auto error = [&](OneNode node) { return error_of([&] { run(node); }); };
  EXPECT_EQ(error({.op = "LSTM", .operands = {&l.x, &wrong, &l.r}}),
            "input 1 (W) must have the shape [1, 8, 2], not [1, 8, 3]");
  OneNode node = {.op = "LSTM", .operands = {&l.x, &l.w, &l.r}};
  node.attributes.set("activations", std::vector<std::string>{"Sigmoid", "Tanh"});
  EXPECT_EQ(error(node), "2 activations given, 3 expected");
  node.attributes.set("activations", std::vector<std::string>{"Sigmoid", "Tanh", "Gelu"});
  EXPECT_EQ(error(node), "the activation 'Gelu' is not known");
  node.attributes.erase("activations");
  node.attributes.set("direction", std::string("backward"));
  EXPECT_EQ(error(node), "direction 'backward' is not known");
  const Tensor steps = ints({3, 3}, {2});
  EXPECT_EQ(error({.op = "GRU", .operands = {&l.x, &l.w, &l.r, nullptr, &steps}}),
            "input 4 must be int32, not int64");
}

}  // namespace
}  // namespace gcompile::testing
