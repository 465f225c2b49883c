// DFT, STFT, windows, MelWeightMatrix and TfIdfVectorizer beyond the official cases.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using ::testing::HasSubstr;
using Reals = std::vector<double>;

/// Numbers without a pattern.
std::vector<float> signal_of(std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(static_cast<float>(i * i * 7 % 23) / 8 - 1);
  return out;
}

/// Frequency k of `length` elements, those beyond the signal zeros, by the definition.
std::complex<double> frequency(const std::vector<std::complex<double>>& x, std::int64_t length,
                               std::int64_t k, double sign) {
  std::complex<double> sum = 0;
  for (std::int64_t j = 0; j < std::min<std::int64_t>(length, static_cast<std::int64_t>(x.size())); ++j) {
    const double angle =
        sign * 2 * std::numbers::pi * static_cast<double>(j * k % length) / static_cast<double>(length);
    sum += x[static_cast<std::size_t>(j)] * std::polar(1.0, angle);
  }
  return sum;
}

struct Spectrum {
  std::int64_t given, parts, length;
  bool inverse = false, onesided = false;
};

void expect_spectrum(const Spectrum& s) {
  const std::vector<float> values = signal_of(s.given * s.parts);
  const Tensor x = floats(values, {1, s.given, s.parts}), length = ints({s.length}, {}),
               axis = ints({-2}, {});
  ir::Graph graph;
  const ir::NodeId id = graph.add_node(
      *ir::find_operator("", "DFT"),
      {graph.add_input("x", x.type()), graph.add_constant(length), graph.add_constant(axis)}, {}, 1, "node");
  graph.node(id).attributes.set("inverse", std::int64_t{s.inverse});
  graph.node(id).attributes.set("onesided", std::int64_t{s.onesided});
  complete(graph, id, 20);
  graph.add_output(graph.node(id).results[0], "y");
  decompose_all(graph);
  const Reals y = reals(ir::evaluate_graph(graph, {x})[0]);
  std::vector<std::complex<double>> elements;
  for (std::int64_t i = 0; i < s.given; ++i) {
    const auto at = static_cast<std::size_t>(i * s.parts);
    elements.emplace_back(values[at], s.parts == 2 ? values[at + 1] : 0);
  }
  const std::int64_t count = s.onesided ? s.length / 2 + 1 : s.length;
  ASSERT_EQ(y.size(), static_cast<std::size_t>(2 * count)) << s.given << ", " << s.length;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::complex<double> expected = frequency(elements, s.length, k, s.inverse ? 1 : -1) /
                                          (s.inverse ? static_cast<double>(s.length) : 1.0);
    const auto at = static_cast<std::size_t>(2 * k);
    ASSERT_NEAR(y[at], expected.real(), 1e-3) << s.length << ", frequency " << k;
    ASSERT_NEAR(y[at + 1], expected.imag(), 1e-3) << s.length << ", frequency " << k;
  }
}

TEST(Dft, IsTheDefinition) {
  for (const std::int64_t parts : {1, 2}) {
    for (const bool inverse : {false, true}) {
      expect_spectrum({12, parts, 12, inverse});
      expect_spectrum({12, parts, 17, inverse});  // with zeros
      expect_spectrum({12, parts, 5, inverse});   // cut
      expect_spectrum({1, parts, 1, inverse});
    }
  }
  expect_spectrum({12, 1, 12, false, true});
  expect_spectrum({13, 1, 13, false, true});
}

TEST(Dft, LongOnesAreMadeOfShorterOnes) {
  expect_spectrum({1100, 1, 1100});
  expect_spectrum({1000, 1, 1536, false, true});
  expect_spectrum({800, 2, 810, true});
}

TEST(Dft, RealSignalsComeBackFromOneSide) {
  for (const std::int64_t length : {1, 2, 7, 8, 1600}) {
    const std::vector<float> values = signal_of(length);
    const Tensor x = floats(values, {1, length, 1}), size = ints({length}, {}), axis = ints({1}, {});
    ir::Graph graph;
    const ir::ValueId constants[] = {graph.add_constant(size), graph.add_constant(axis)};
    ir::ValueId value = graph.add_input("x", x.type());
    for (const std::int64_t inverse : {0, 1}) {
      const ir::NodeId id =
          graph.add_node(*ir::find_operator("", "DFT"), {value, constants[0], constants[1]}, {}, 1, "node");
      graph.node(id).attributes.set("inverse", inverse);
      graph.node(id).attributes.set("onesided", std::int64_t{1});
      complete(graph, id, 20);
      value = graph.node(id).results[0];
    }
    graph.add_output(value, "y");
    decompose_all(graph);
    const Tensor y = ir::evaluate_graph(graph, {x})[0];
    ASSERT_EQ(y.shape(), x.shape());
    for (std::int64_t i = 0; i < length; ++i) ASSERT_NEAR(y.real_at(i), x.real_at(i), 1e-4) << length;
  }
}

TEST(Dft, Refuses) {
  const Tensor x = floats(signal_of(12), {2, 3, 2}), wide = floats(signal_of(12), {2, 2, 3});
  OneNode node{.op = "DFT", .operands = {&x}};
  node.attributes.set("onesided", std::int64_t{1});
  EXPECT_EQ(error_of([&] { run(node); }), "a complex signal has no one-sided transform");
  EXPECT_THAT(error_of([&] { run({.op = "DFT", .operands = {&wide}}); }),
              HasSubstr("the last axis must have 1 element or 2"));
  const Tensor line = floats({1}, {1, 1, 1}), prime = ints({15013}, {}), none = ints({0}, {});
  EXPECT_THAT(error_of([&] {
                run({.op = "DFT", .operands = {&line, &prime}, .known = true});
              }),
              HasSubstr("no error"));
  const Tensor many = floats(signal_of(15013), {1, 15013, 1});
  EXPECT_EQ(error_of([&] {
              run({.op = "DFT", .operands = {&many, &prime}, .known = true});
            }),
            "transforms of 15013 elements are not supported, a number without divisors");
  EXPECT_EQ(error_of([&] {
              run({.op = "DFT", .operands = {&line, &none}, .known = true});
            }),
            "the transform has 0 elements");
  const Tensor axis = ints({-1}, {});
  EXPECT_THAT(error_of([&] {
                run({.op = "DFT", .operands = {&x, nullptr, &axis}, .known = true});
              }),
              HasSubstr("axis is that of real and imaginary parts"));
}

TEST(Stft, FramesAreTransformedUnderTheWindow) {
  for (const std::int64_t length : {8, 1100}) {  // as one product, and made of shorter ones
    const std::int64_t step = length / 2 - 1, count = 2 * length + 3;
    const std::vector<float> values = signal_of(count), weights = signal_of(length);
    const Tensor x = floats(values, {1, count, 1}), steps = ints({step}, {}),
                 window = floats(weights, {length});
    const Tensor y = run({.op = "STFT", .operands = {&x, &steps, &window}, .known = true})[0];
    const std::int64_t frames = (count - length) / step + 1, bins = length / 2 + 1;
    ASSERT_EQ(y.shape(), (ir::Shape{1, frames, bins, 2}));
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      std::vector<std::complex<double>> part;
      for (std::int64_t j = 0; j < length; ++j) {
        part.emplace_back(values[static_cast<std::size_t>(frame * step + j)] *
                          weights[static_cast<std::size_t>(j)]);
      }
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, bins - 1}) {
        const std::complex<double> expected = frequency(part, length, k, -1);
        ASSERT_NEAR(y.real_at((frame * bins + k) * 2), expected.real(), 2e-3) << frame << ", " << k;
        ASSERT_NEAR(y.real_at((frame * bins + k) * 2 + 1), expected.imag(), 2e-3) << frame << ", " << k;
      }
    }
  }
}

TEST(Stft, Refuses) {
  const Tensor x = floats(signal_of(12), {1, 12, 1}), step = ints({3}, {}), length = ints({13}, {}),
               window = floats(signal_of(4), {4});
  EXPECT_EQ(error_of([&] {
              run({.op = "STFT", .operands = {&x, &step, nullptr, &length}, .known = true});
            }),
            "a frame of 13 elements does not fit into a signal of 12");
  EXPECT_EQ(error_of([&] {
              run({.op = "STFT", .operands = {&x, &step, &window, &length}, .known = true});
            }),
            "frame_length is 13, the window has 4 elements");
  EXPECT_EQ(error_of([&] {
              run({.op = "STFT", .operands = {&x, &step}, .known = true});
            }),
            "neither a window nor frame_length is given");
}

Tensor window_of(const std::string& op, std::int64_t size, std::int64_t periodic, ElementType type) {
  const Tensor count = ints({size}, {});
  OneNode node{.op = op, .operands = {&count}, .known = true};
  node.attributes.set("periodic", periodic);
  node.attributes.set("output_datatype", std::int64_t{type == ElementType::kFloat64 ? 11 : 1});
  return run(node)[0];
}

TEST(Windows, AreSymmetricOrPeriodic) {
  const Reals hann = reals(window_of("HannWindow", 5, 0, ElementType::kFloat64));
  const Reals expected = {0, 0.5, 1, 0.5, 0};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(hann[i], expected[i], 1e-15);
  EXPECT_NEAR(window_of("HannWindow", 4, 1, ElementType::kFloat32).real_at(3), 0.5, 1e-7);
  EXPECT_NEAR(window_of("HammingWindow", 5, 0, ElementType::kFloat64).real_at(0), 4.0 / 46, 1e-15);
  EXPECT_NEAR(window_of("BlackmanWindow", 5, 0, ElementType::kFloat64).real_at(2), 1, 1e-15);
  EXPECT_NEAR(window_of("BlackmanWindow", 4, 1, ElementType::kFloat64).real_at(1), 0.34, 1e-15);
  EXPECT_EQ(window_of("HannWindow", 0, 1, ElementType::kFloat32).count(), 0);
  EXPECT_EQ(error_of([&] { window_of("HannWindow", -1, 1, ElementType::kFloat32); }), "the size is -1");
}

TEST(MelWeightMatrix, TrianglesMeetInTheMiddleOfEachBin) {
  const Tensor bins = ints({3}, {}), length = ints({64}, {}), rate = ints({16000}, {});
  const Tensor low = floats({0}, {}), high = floats({8000}, {}), beyond = floats({30000}, {});
  const OneNode node{
      .op = "MelWeightMatrix", .operands = {&bins, &length, &rate, &low, &high}, .known = true};
  const Tensor y = run(node)[0];
  ASSERT_EQ(y.shape(), (ir::Shape{33, 3}));
  // The edges are frequencies 0, 1, 4, 10 and 18.
  EXPECT_EQ(y.real_at(1 * 3 + 0), 1);
  EXPECT_NEAR(y.real_at(2 * 3 + 0), 2.0 / 3, 1e-7);
  EXPECT_NEAR(y.real_at(2 * 3 + 1), 1.0 / 3, 1e-7);
  EXPECT_EQ(y.real_at(10 * 3 + 2), 1);
  EXPECT_EQ(y.real_at(20 * 3 + 2), 0);
  OneNode wide = node;
  wide.operands[4] = &beyond;
  EXPECT_THAT(error_of([&] { run(wide); }), HasSubstr("above half of the sample rate"));
}

OneNode n_grams(const Tensor& x, std::int64_t skips, const std::string& mode) {
  OneNode node{.op = "TfIdfVectorizer", .operands = {&x}};
  node.attributes.set("min_gram_length", std::int64_t{1});
  node.attributes.set("max_gram_length", std::int64_t{2});
  node.attributes.set("max_skip_count", skips);
  node.attributes.set("mode", mode);
  node.attributes.set("ngram_counts", std::vector<std::int64_t>{0, 2});
  node.attributes.set("ngram_indexes", std::vector<std::int64_t>{3, 0, 1});
  node.attributes.set("pool_int64s", std::vector<std::int64_t>{7, 5, 7, 5});
  return node;
}

TEST(TfIdfVectorizer, CountsWithDistancesAndWeights) {
  const Tensor x = ints({7, 5, 5, 7, 7, 1}, {2, 3});
  EXPECT_EQ(reals(run(n_grams(x, 0, "TF"))[0]), (Reals{2, 1, 0, 1, 0, 0, 0, 2}));
  EXPECT_EQ(reals(run(n_grams(x, 1, "TF"))[0]), (Reals{2, 2, 0, 1, 0, 0, 0, 2})) << "7 . 5 is found as well";
  for (const std::string mode : {"IDF", "TFIDF"}) {
    OneNode node = n_grams(x, 0, mode);
    node.attributes.set("weights", std::vector<float>{5, 0.5f, 3});  // of n-grams, not of columns
    const double often = mode == "IDF" ? 1 : 2;
    EXPECT_EQ(reals(run(node)[0]), (Reals{0.5 * often, 3, 0, 5, 0, 0, 0, 5 * often})) << mode;
  }
}

TEST(TfIdfVectorizer, SequencesMayBeShorterThanAnNGram) {
  const Tensor x = integers(ElementType::kInt32, {5}, {1}), none = ints({}, {0});
  EXPECT_EQ(reals(run(n_grams(x, 3, "TF"))[0]), (Reals{1, 0, 0, 0}));
  EXPECT_EQ(reals(run(n_grams(none, 3, "TF"))[0]), (Reals{0, 0, 0, 0}));
}

TEST(TfIdfVectorizer, Refuses) {
  const Tensor x = ints({5}, {1});
  OneNode node = n_grams(x, 0, "TF");
  node.attributes.set("ngram_counts", std::vector<std::int64_t>{0, 3});
  EXPECT_EQ(error_of([&] { run(node); }), "attribute 'ngram_counts' has the value 3, which does not fit");
  EXPECT_THAT(error_of([&] { run(n_grams(x, 0, "TD")); }), HasSubstr("'mode' is 'TD'"));
}

}  // namespace
}  // namespace gcompile::testing
