// Expressions in few words.
#include "ir/forms/expression_words.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "ir/forms/form.h"

namespace gcompile::ir {
namespace {

using Words = std::vector<std::string>;

constexpr ElementType kFloat = ElementType::kFloat32;

TEST(ExpressionWords, SayWhatAnEpilogueDoes) {
  LoopForm form = LoopForm::over({1, 8, 4});
  const int sum = form.dag.accumulator(0, kFloat);
  const int bias = form.dag.load(1, kFloat, {Index::axis(1)});
  const int residual = form.dag.load(2, kFloat, form.identity());
  const int zero = form.dag.constant(kFloat, 0);
  const auto is_constant = [](int operand) { return operand == 1; };
  const int with_bias = form.dag.apply(ScalarOp::kAdd, {sum, bias});
  EXPECT_EQ(expression_words(form, with_bias, is_constant), (Words{"bias"}));
  EXPECT_EQ(expression_words(form, with_bias), (Words{"add"}));
  const int both = form.dag.apply(ScalarOp::kAdd, {with_bias, residual});
  const int relu = form.dag.apply(ScalarOp::kMax, {both, zero});
  EXPECT_EQ(expression_words(form, relu, is_constant), (Words{"bias", "add", "relu"}));
  EXPECT_EQ(type_name(expression_words(form, relu, is_constant)), "BiasAddRelu");
  EXPECT_EQ(type_name({}), "Store");
}

TEST(ExpressionWords, NameActivationsAsAWhole) {
  LoopForm form = LoopForm::over({4, 8});
  const int x = form.dag.load(0, kFloat, form.identity());
  const int gate = form.dag.apply(ScalarOp::kSigmoid, {x});
  EXPECT_EQ(expression_words(form, gate), (Words{"sigmoid"}));
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMul, {x, gate})), (Words{"silu"}));
  const int low = form.dag.constant(kFloat, -1), high = form.dag.constant(kFloat, 6);
  const int above = form.dag.apply(ScalarOp::kMax, {x, low});
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMin, {above, high})), (Words{"clip"}));
  const int zero = form.dag.constant(kFloat, 0), slope = form.dag.constant(kFloat, 0.1);
  const int is_below = form.dag.apply(ScalarOp::kLess, {x, zero});
  const int scaled = form.dag.apply(ScalarOp::kMul, {x, slope});
  const int leaky = form.dag.apply(ScalarOp::kSelect, {is_below, scaled, x});
  EXPECT_EQ(expression_words(form, leaky), (Words{"leaky_relu"}));
}

TEST(ExpressionWords, NameGeluHoweverItIsSpelled) {
  LoopForm form = LoopForm::over({4, 8});
  const int x = form.dag.load(0, kFloat, form.identity());
  const int one = form.dag.constant(kFloat, 1), half = form.dag.constant(kFloat, 0.5);
  const int root = form.dag.constant(kFloat, 1.4142135);
  const int erf = form.dag.apply(ScalarOp::kErf, {form.dag.apply(ScalarOp::kDiv, {x, root})});
  const int gate = form.dag.apply(ScalarOp::kAdd, {erf, one});
  const int gated = form.dag.apply(ScalarOp::kMul, {x, gate});
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMul, {gated, half})), (Words{"gelu"}));
  const int halved = form.dag.apply(ScalarOp::kMul, {x, half});
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMul, {halved, gate})), (Words{"gelu"}));
  const int cube = form.dag.apply(ScalarOp::kMul, {form.dag.apply(ScalarOp::kMul, {x, x}), x});
  const int bent = form.dag.apply(ScalarOp::kAdd, {x, form.dag.apply(ScalarOp::kMul, {cube, root})});
  const int tanh = form.dag.apply(ScalarOp::kTanh, {form.dag.apply(ScalarOp::kMul, {bent, half})});
  const int other = form.dag.apply(ScalarOp::kMul, {halved, form.dag.apply(ScalarOp::kAdd, {tanh, one})});
  EXPECT_EQ(expression_words(form, other), (Words{"gelu"}));
  EXPECT_EQ(expression_words(form, erf), (Words{"div", "erf"}));
}

/// "BiasAddRelu" as {"bias", "add", "relu"}.
Words words_of_type(const std::string& name) {
  Words words;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || words.empty()) words.emplace_back();
    words.back() += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}

// An epilogue stands in the namespace of the runtime, under a name made of these words.
TEST(ExpressionWords, NameNoTypeOfTheRuntime) {
  std::set<std::string> vocabulary = {"relu",   "clip", "bias", "silu", "gelu",     "leaky", "where",
                                      "random", "and",  "or",   "xor",  "quantize", "not",   "round"};
  for (int op = 0; op < kScalarOpCount; ++op) {
    if (static_cast<ScalarOp>(op) == ScalarOp::kRoundHalfEven) continue;  // "round"
    for (const std::string& word :
         words_of_type(type_name({std::string(row_of(static_cast<ScalarOp>(op)).name)})))
      vocabulary.insert(word);
  }
  EXPECT_TRUE(vocabulary.count("tanh"));
  const std::regex declares("^(?:struct|class|enum class|using) (\\w+)");
  int types = 0;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(GCOMPILE_SOURCE_DIR "/runtime_stub/gcrt")) {
    std::ifstream stream(file.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, declares)) continue;
      ++types;
      const Words words = words_of_type(found[1].str());
      const auto is_known = [&](const std::string& word) { return vocabulary.count(word) > 0; };
      EXPECT_FALSE(std::all_of(words.begin(), words.end(), is_known)) << file.path() << ": " << line;
    }
  }
  EXPECT_GT(types, 200);
}

}  // namespace
}  // namespace gcompile::ir
