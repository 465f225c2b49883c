// 16-bit floats in float32 between what others read: normalisations in every spelling keep outliers and small
// numbers, and what somebody reads is rounded as the model says.

#include <gmock/gmock.h>

#include "passes/engine/preparation.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using passes::Widened;

/// The number of values that are no longer rounded.
std::int64_t widen(ir::Graph& graph, Widened widened) {
  passes::PreparationOptions options;
  options.widened = widened;
  return passes::prepare(graph, options).widened_values;
}

/// x / sqrt(mean(x * x) + eps) over the last 8, spelled out.
struct Spelling {
  std::string name, nodes;
};

std::vector<Spelling> spellings() {
  const std::vector<Spelling> squares = {{"pow", "q = Pow(c, two)"}, {"mul", "q = Mul(c, c)"}};
  const std::vector<Spelling> means = {{"mean", "m = ReduceMean(q, axes)"},
                                       {"sum-div", "t = ReduceSum(q, axes) m = Div(t, eight)"},
                                       {"sum-mul", "t = ReduceSum(q, axes) m = Mul(t, eighth)"}};
  std::vector<Spelling> mean_squares = {
      {"sum-square", "t = ReduceSumSquare(c, axes) m = Div(t, eight)"},
      {"norm", "n = ReduceL2(c, axes) t = Mul(n, n) m = Div(t, eight)"},
  };
  for (const Spelling& square : squares) {
    for (const Spelling& mean : means)
      mean_squares.push_back({square.name + " " + mean.name, square.nodes + " " + mean.nodes});
  }
  const std::vector<Spelling> quotients = {
      {"sqrt-div", "s = Sqrt(e) n1 = Div(c, s)"},
      {"sqrt-reciprocal", "s = Sqrt(e) r = Reciprocal(s) n1 = Mul(c, r)"},
      {"one-over-sqrt", "s = Sqrt(e) r = Div(one, s) n1 = Mul(r, c)"},
      {"pow-half", "s = Pow(e, half) n1 = Div(c, s)"},
      {"pow-minus-half", "r = Pow(e, minus_half) n1 = Mul(c, r)"}};
  std::vector<Spelling> all;
  for (const Spelling& mean : mean_squares) {
    for (const Spelling& quotient : quotients)
      all.push_back({mean.name + " " + quotient.name, mean.nodes + " e = Add(m, eps) " + quotient.nodes});
  }
  return all;
}

/// Where the weight goes, and whether the model converts to float32 itself.
struct Frame {
  std::string name, before, after;
};

std::vector<Frame> frames(const std::string& number) {
  const std::string narrow = "<to = " + number + ">";
  return {{"plain", "c = Identity(x) ", " y = Identity(n1)"},
          {"weight behind", "c = Identity(x) ", " y = Mul(n1, g)"},
          {"weight in front", "c = Identity(x) ", " y = Mul(g, n1)"},
          {"sum with the residual", "c = Add(x, g) ", " y = Mul(n1, g)"},
          {"cast", "c = Cast<to = 1>(x) ", " y = Cast" + narrow + "(n1)"},
          {"cast, weight behind", "c = Cast<to = 1>(x) ", " o = Cast" + narrow + "(n1) y = Mul(o, g)"}};
}

ir::Tensor numbers_of(ir::ElementType type, ir::Shape shape, double scale) {
  Numbers numbers(3);
  ir::Tensor out(ir::TensorType{type, std::move(shape)});
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const double outlier = i % 8 == 3 ? 40 : 1;
    out.set(i, ir::Scalar::of_real(type, numbers.real() * scale * outlier));
  }
  return out;
}

/// Makes scalar constants of inputs with these names.
void set_numbers(ir::Graph& graph) {
  const std::map<std::string, double> numbers = {{"two", 2},        {"one", 1},    {"eight", 8},
                                                 {"eighth", 0.125}, {"half", 0.5}, {"minus_half", -0.5},
                                                 {"eps", 0x1p-20}};
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const ir::ValueId input = graph.inputs()[i];
    const auto number = numbers.find(graph.value(input).name);
    if (number == numbers.end()) continue;
    const ir::ElementType type = graph.value(input).type.element;
    graph.replace_uses(
        input,
        graph.add_constant(ir::Tensor::scalar(ir::Scalar::of_real(type, number->second)), number->first));
    graph.remove_input(i);
  }
}

ir::Graph norm(const std::string& type, const Spelling& spelling, const Frame& frame) {
  const std::string inner = frame.name.find("cast") == 0 ? "float" : type;
  std::string scalars;
  for (const char* name : {"two", "one", "eight", "eighth", "half", "minus_half", "eps"})
    scalars += ", " + inner + " " + name;
  ir::Graph graph =
      parse("g (" + type + "[4,8] x, " + type + "[8] g" + scalars + ") => (" + type +
            "[4,8] y) <int64[1] axes = {-1}> { " + frame.before + spelling.nodes + frame.after + " }");
  set_numbers(graph);
  return graph;
}

/// The worst error of the pipeline's result, beside the same graph in float64.
double worst_error(const std::string& type, double scale, Widened widened, const Spelling& spelling,
                   const Frame& frame) {
  ir::Graph graph = norm(type, spelling, frame);
  const ir::ElementType element = graph.value(graph.inputs()[0]).type.element;
  const std::vector<ir::Tensor> inputs = {numbers_of(element, {4, 8}, scale), numbers_of(element, {8}, 0.02)};
  widen(graph, widened);
  passes::optimise(graph, {});
  const ir::Tensor actual = ir::evaluate_graph(graph, inputs)[0];
  double worst = 0;
  const bool adds = frame.name.find("residual") != std::string::npos;
  const bool scales = frame.after.find("g") != std::string::npos;
  for (std::int64_t row = 0; row < 4; ++row) {
    double sum = 0;
    std::vector<double> x;
    for (std::int64_t i = 0; i < 8; ++i) {
      x.push_back(inputs[0].real_at(row * 8 + i) + (adds ? inputs[1].real_at(i) : 0));
      sum += x.back() * x.back();
    }
    const double deviation = std::sqrt(sum / 8 + 0x1p-20);
    for (std::int64_t i = 0; i < 8; ++i) {
      const double expected =
          x[static_cast<std::size_t>(i)] / deviation * (scales ? inputs[1].real_at(i) : 1);
      const double error =
          std::abs(actual.real_at(row * 8 + i) - expected) / (0.01 * std::abs(expected) + 1e-4);
      worst = std::isnan(error) ? 1e9 : std::max(worst, error);
    }
  }
  return worst;
}

TEST(WidenHalves, RmsNormsKeepOutliersInEverySpelling) {
  int cells = 0, failed = 0;
  for (const auto& [type, number] :
       {std::pair<std::string, std::string>{"float16", "10"}, {"bfloat16", "16"}}) {
    for (const Spelling& spelling : spellings()) {
      for (const Frame& frame : frames(number)) {
        for (const Widened widened : {Widened::kAll, Widened::kSquares}) {
          for (const double scale : {600.0, 1.0, 0.001}) {
            ++cells;
            const double error = worst_error(type, scale, widened, spelling, frame);
            const double room = type == "float16" ? 1 : 4;
            if (error <= room) continue;
            if (++failed <= 5)
              ADD_FAILURE() << type << ", " << spelling.name << ", " << frame.name << ", scale " << scale
                            << ", " << (widened == Widened::kAll ? "all" : "squares") << ": " << error;
          }
        }
      }
    }
  }
  std::cout << cells << " cells, " << failed << " fail\n";
}

TEST(WidenHalves, NormsAreStillRecognised) {
  const auto recognised = [](ir::Graph graph, Widened widened) {
    set_numbers(graph);
    widen(graph, widened);
    prepare(graph);
    for (const char* pass : {"cse", "rules", "fold-again", "rules", "dce-again"}) run_pass(graph, pass);
    return operators(graph);
  };
  for (const Widened widened : {Widened::kAll, Widened::kSquares}) {
    EXPECT_THAT(recognised(norm("float16",
                                {"",
                                 "q = Mul(c, c) m = ReduceMean(q, axes) e = Add(m, eps) s = Sqrt(e)"
                                 " n1 = Div(c, s)"},
                                {"", "c = Identity(x) ", " y = Mul(n1, g)"}),
                           widened),
                ::testing::HasSubstr("RMSNormalization"));
    EXPECT_THAT(
        recognised(parse("g (float16[4,8] x, float16 eps) => (float16[4,8] y) <int64[1] axes = {-1}> {"
                         " mean = ReduceMean(x, axes) d = Sub(x, mean) q = Mul(d, d)"
                         " v = ReduceMean(q, axes) e = Add(v, eps) s = Sqrt(e) y = Div(d, s) }"),
                   widened),
        ::testing::HasSubstr("LayerNormalization"));
  }
}

/// Results as the model has them, and with halves widened: equal.
void expect_unchanged(const std::string& text, Widened widened = Widened::kAll) {
  SCOPED_TRACE(text);
  const ir::Graph before = parse(text);
  ir::Graph after = before;
  widen(after, widened);
  expect_same(before, after, 0);
}

TEST(WidenHalves, WhatIsReadIsRoundedAsTheModelSays) {
  const std::string head = "g (float16[16] x, float16[16] z, bool b) => ";
  // An output, a decision, a conversion of the model, and what the branches of an If read.
  expect_unchanged(head + "(float16[16] y, float16[16] t) { t = Mul(x, z) y = Add(t, x) }");
  expect_unchanged(head + "(bool[16] y) { t = Mul(x, z) u = Add(t, x) y = Greater(u, z) }");
  expect_unchanged(head + "(float[16] y) { t = Mul(x, z) c = Cast<to = 10>(t) y = Cast<to = 1>(c) }");
  expect_unchanged(head +
                   "(float16[16] y) { t = Mul(x, z) y = If (b) <then_branch = f () => (float16[16] a)"
                   " { a = Add(t, x) }, else_branch = h () => (float16[16] c) { c = Sub(t, x) }> }");
  // Movements of what is read stay in 16 bits.
  ir::Graph moved = parse("g (float16[2,3] x) => (float16[3,2] y) { t = Transpose(x) y = Relu(t) }");
  const std::string text = ir::print(moved);
  EXPECT_EQ(widen(moved, Widened::kAll), 0);
  EXPECT_EQ(ir::print(moved), text);
}

TEST(WidenHalves, AStateStaysInHalvesWhenSomethingIsWrittenToIt) {
  ir::Graph graph = parse(
      "g (float16[2,3] past, float16[2,3] x) => (float16[4,3] present, float16[4,3] y) {"
      " t = Mul(x, x) present = Concat<axis = 0>(past, t) u = Exp(present) y = Mul(u, u) }");
  widen(graph, Widened::kAll);
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op->name != "Concat") continue;
    for (const ir::ValueId operand : graph.node(id).operands)
      EXPECT_EQ(graph.value(operand).type.element, ir::ElementType::kFloat16);
    EXPECT_TRUE(graph.is_output(graph.node(id).results[0]));
  }
}

TEST(WidenHalves, WhatOnlyNodesReadIsNotRounded) {
  for (const char* type : {"float16", "bfloat16"}) {
    const std::string inputs = std::string("(") + type + "[16] x, " + type + "[16] z) => (";
    ir::Graph graph = parse("g " + inputs + type + "[16] y) { t = Mul(x, z) u = Mul(t, z) y = Sub(u, x) }");
    EXPECT_EQ(widen(graph, Widened::kAll), 2);
    for (const ir::Violation& violation : ir::verify(graph)) ADD_FAILURE() << ir::to_string(violation);
    const std::vector<ir::Tensor> inputs_of = random_inputs(graph, false);
    const ir::Tensor y = ir::evaluate_graph(graph, inputs_of)[0];
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const double x = inputs_of[0].real_at(i), z = inputs_of[1].real_at(i);
      EXPECT_EQ(y.real_at(i), ir::round_to(y.element(), x * z * z - x));
    }
  }
}

TEST(WidenHalves, OfGpusOnlySumsOfSquares) {
  ir::Graph graph = parse(
      "g (float16[16] x, float16[16] z) => (float16[16] y) { t = Mul(x, x) u = Mul(t, z) y = Sub(u, x) }");
  EXPECT_EQ(widen(graph, Widened::kSquares), 0);
}

}  // namespace
}  // namespace gcompile::testing
