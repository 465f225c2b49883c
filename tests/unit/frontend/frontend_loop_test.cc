// Loop and Scan: their trips as nodes of the graph around them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend::ImportOptions;
using frontend_test::import_text;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::output_types;
using frontend_test::Reals;
using frontend_test::reals_of;
using ::testing::HasSubstr;

ir::Tensor floats(std::vector<float> values, ir::Shape shape) { return ir::Tensor::of_floats(values, shape); }

ir::Tensor boolean(bool value) {
  return ir::Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kBool, value));
}

/// Text cannot omit a first operand or result: "none" stands for it.
Outcome import_with_none(const std::string& text, const ImportOptions& options = {}) {
  onnx::ModelProto model = frontend_test::proto_of(text);
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    for (std::string& name : *node.mutable_input()) name = name == "none" ? "" : name;
    for (std::string& name : *node.mutable_output()) name = name == "none" ? "" : name;
  }
  return frontend_test::import_proto(model, options);
}

std::vector<std::string> node_names(const Outcome& outcome) {
  std::vector<std::string> names;
  for (const ir::NodeId id : outcome.graph().topological_order())
    names.push_back(outcome.graph().node(id).name);
  return names;
}

int count_of(const Outcome& outcome, std::string_view op) {
  int count = 0;
  for (const ir::NodeId id : outcome.graph().nodes()) count += outcome.graph().node(id).op->name == op;
  return count;
}

// Scan -----------------------------------------------------------------------------------------------------------

std::string scan_text(const std::string& signature, const std::string& results, const std::string& attributes,
                      const std::string& body, const std::string& operands) {
  return model_text(signature, fmt::format("{} = Scan <num_scan_inputs = 1{}, body = {}> ({})", results,
                                           attributes, body, operands));
}

TEST(Scan, CarriesAndStacks) {
  const Outcome outcome = import_text(scan_text(
      "(float[2] s, float[3,2] x) => (float last, float sums)", "last, sums", "",
      "b (float[2] s, float[2] x) => (float[2] t, float[2] r) { t = Add(s, x)  r = Neg(t) }", "s, x"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[2] float32[3, 2]");
  const std::vector<ir::Tensor> inputs = {floats({0, 10}, {2}), floats({1, 2, 3, 4, 5, 6}, {3, 2})};
  EXPECT_EQ(reals_of(outcome, inputs, 0), (Reals{9, 22}));
  EXPECT_EQ(reals_of(outcome, inputs, 1), (Reals{-1, -12, -4, -16, -9, -22}));
  const std::vector<std::string> names = node_names(outcome);
  EXPECT_THAT(names, ::testing::Contains("last/0/t"));
  EXPECT_THAT(names, ::testing::Contains("last/2/r"));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(Scan, GoesAlongAxesInDirections) {
  const std::string signature = "(float[2] s, float[2,3] x) => (float last, float sums)";
  const std::string body =
      "b (float[2] s, float[2] x) => (float[2] t, float[2] r) { t = Add(s, x)  r = Identity(t) }";
  const std::vector<ir::Tensor> inputs = {floats({0, 0}, {2}), floats({1, 2, 3, 10, 20, 30}, {2, 3})};
  const auto sums = [&](const std::string& attributes) {
    return reals_of(import_text(scan_text(signature, "last, sums", attributes, body, "s, x")), inputs, 1);
  };
  EXPECT_EQ(sums(", scan_input_axes = [1]"), (Reals{1, 10, 3, 30, 6, 60}));
  EXPECT_EQ(sums(", scan_input_axes = [-1], scan_output_axes = [1]"), (Reals{1, 3, 6, 10, 30, 60}));
  EXPECT_EQ(sums(", scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [-1]"),
            (Reals{3, 5, 6, 30, 50, 60}));
  EXPECT_EQ(sums(", scan_input_axes = [1], scan_output_directions = [1]"), (Reals{6, 60, 3, 30, 1, 10}));
}

TEST(Scan, BeforeOpset9EntriesOfABatchHaveLengths) {
  const std::string body =
      "b (float[1] s, float[1] x) => (float[1] t, float[1] r) { t = Add(s, x)  r = Identity(t) }";
  const auto text = [&](const std::string& operands) {
    return "<ir_version: 3, opset_import: [\"\" : 8]>\n"
           "g (float[2,1] s, float[2,3,1] x) => (float last, float sums) {\n"
           "n = Constant <value = int64[2] {3, 2}> ()\n"
           "last, sums = Scan <num_scan_inputs = 1, body = " +
           body + "> (" + operands + ") }";
  };
  const std::vector<ir::Tensor> inputs = {floats({0, 5}, {2, 1}), floats({1, 2, 3, 10, 20, 30}, {2, 3, 1})};
  const Outcome whole = import_with_none(text("none, s, x"));
  ASSERT_TRUE(whole.model) << whole.errors;
  EXPECT_EQ(output_types(whole.graph()), "float32[2, 1] float32[2, 3, 1]");
  EXPECT_EQ(reals_of(whole, inputs, 0), (Reals{6, 65}));
  EXPECT_EQ(reals_of(whole, inputs, 1), (Reals{1, 3, 6, 15, 35, 65}));
  const Outcome shorter = import_text(text("n, s, x"));
  EXPECT_EQ(reals_of(shorter, inputs, 0), (Reals{6, 35}));
  EXPECT_EQ(reals_of(shorter, inputs, 1), (Reals{1, 3, 6, 15, 35, 0}));
}

TEST(Scan, OfNothingGivesNothing) {
  const Outcome outcome = import_text(scan_text("(float[2] s, float[0,2] x) => (float last, float rows)",
                                                "last, rows", ", scan_output_axes = [1]",
                                                "b (float[2] s, float[2] x) => (float t, float r) "
                                                "{ t = Add(s, x)  r = Concat<axis = 0>(t, x) }",
                                                "s, x"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[2] float32[4, 0]");
  EXPECT_EQ(reals_of(outcome, {floats({1, 2}, {2}), floats({}, {0, 2})}, 0), (Reals{1, 2}));
}

TEST(Scan, NamesOfTheBodyHideThoseAround) {
  // "x" and "w" mean something else inside, "c" is captured.
  const Outcome outcome = import_text(scan_text(
      "(float[2] w, float[3,2] x, float[2] c) => (float last, float rows)", "last, rows", "",
      "b (float[2] s, float[2] x) => (float t, float r) { w = Mul(x, c)  t = Add(s, w)  r = Identity(c) }",
      "w, x"));
  const std::vector<ir::Tensor> inputs = {floats({0, 100}, {2}), floats({1, 2, 3, 4, 5, 6}, {3, 2}),
                                          floats({2, 3}, {2})};
  EXPECT_EQ(reals_of(outcome, inputs, 0), (Reals{18, 136}));
  EXPECT_EQ(reals_of(outcome, inputs, 1), (Reals{2, 3, 2, 3, 2, 3})) << "an outer value as a row";
}

TEST(Scan, OutputsMayBeInputsAndUnused) {
  // The carried values change places; the rows that nobody reads are not stacked.
  const Outcome outcome = import_text(
      scan_text("(float a, float b, float[3] x) => (float p, float q)", "p, q", "",
                "b (float u, float v, float x) => (float v, float u, float x, float v) { }", "a, b, x"));
  const std::vector<ir::Tensor> inputs = {floats({1}, {}), floats({2}, {}), floats({7, 8, 9}, {3})};
  EXPECT_EQ(reals_of(outcome, inputs, 0), (Reals{2}));
  EXPECT_EQ(reals_of(outcome, inputs, 1), (Reals{1}));
  EXPECT_EQ(count_of(outcome, "Concat"), 0);
  const Outcome rows = import_with_none(scan_text("(float a, float[3] x) => (float r)", "none, r", "",
                                                  "b (float u, float x) => (float u, float x) { }", "a, x"));
  EXPECT_EQ(reals_of(rows, {floats({1}, {}), floats({7, 8, 9}, {3})}), (Reals{7, 8, 9}));
}

TEST(Scan, InitializersOfTheBodyAreImportedOnce) {
  const Outcome outcome = import_text(scan_text(
      "(float[2] s, float[3,2] x) => (float last)", "last", "",
      "b (float[2] s, float[2] x) => (float t) <float[2] w = {2, 3}> { u = Mul(x, w)  t = Add(s, u) }",
      "s, x"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  int weights = 0;
  for (const ir::ValueId id : outcome.graph().values()) weights += outcome.graph().value(id).name == "last/w";
  EXPECT_EQ(weights, 1);
  EXPECT_EQ(reals_of(outcome, {floats({0, 0}, {2}), floats({1, 2, 3, 4, 5, 6}, {3, 2})}), (Reals{18, 36}));
}

TEST(Scan, NestsInItself) {
  const Outcome outcome =
      import_text(scan_text("(float s, float[2,3] x) => (float last)", "last", "",
                            "b (float s, float[3] x) => (float t) { t = Scan <num_scan_inputs = 1, body = c "
                            "(float s, float y) => (float t) "
                            "{ m = Mul(s, k)  t = Add(m, y) }> (s, x)  k = Constant <value_float = 2.0> () }",
                            "s, x"));
  EXPECT_EQ(reals_of(outcome, {floats({1}, {}), floats({1, 2, 3, 4, 5, 6}, {2, 3})}),
            (Reals{64 + 32 + 32 + 24 + 16 + 10 + 6}));
  EXPECT_THAT(node_names(outcome), ::testing::Contains("last/1/t/2/m"));
}

// Loop -----------------------------------------------------------------------------------------------------------

std::string loop_text(const std::string& signature, const std::string& results, const std::string& body,
                      const std::string& operands, const std::string& before = "") {
  return model_text(signature, fmt::format("m = Constant <value = int64 {{3}}> ()\n"
                                           "yes = Constant <value = bool {{1}}> ()\n"
                                           "no = Constant <value = bool {{0}}> ()\n"
                                           "{}\n{} = Loop <body = {}> ({})",
                                           before, results, body, operands));
}

constexpr const char* kDoubles =
    "b (int64 i, bool c, float[2] v) => (bool c, float[2] w, float[2] r) { w = Add(v, v)  r = Add(v, k)  "
    "f = Cast <to = 1> (i)  k = Mul(f, v) }";

TEST(Loop, OfAKnownNumberOfTripsIsItsTrips) {
  for (const char* const operands : {"m, yes, x", "m, , x"}) {
    const Outcome outcome =
        import_text(loop_text("(float[2] x) => (float y, float rows)", "y, rows", kDoubles, operands));
    ASSERT_TRUE(outcome.model) << outcome.errors;
    EXPECT_EQ(output_types(outcome.graph()), "float32[2] float32[3, 2]");
    EXPECT_EQ(reals_of(outcome, {floats({1, 3}, {2})}, 0), (Reals{8, 24}));
    EXPECT_EQ(reals_of(outcome, {floats({1, 3}, {2})}, 1), (Reals{1, 3, 4, 12, 12, 36}));
  }
}

TEST(Loop, WithoutTripsGivesWhatItTakes) {
  const std::string none = "zero = Constant <value = int64 {-4}> ()";
  for (const char* const operands : {"zero, yes, x", "m, no, x"}) {
    const Outcome outcome =
        import_text(loop_text("(float[2] x) => (float y, float rows)", "y, rows", kDoubles, operands, none));
    ASSERT_TRUE(outcome.model) << outcome.errors;
    EXPECT_EQ(output_types(outcome.graph()), "float32[2] float32[0, 2]");
    EXPECT_EQ(reals_of(outcome, {floats({1, 3}, {2})}, 0), (Reals{1, 3}));
  }
}

TEST(Loop, EndsWhereAKnownConditionDoes) {
  // Exporters write `while` so: the most trips that there are, and a counter that the body carries.
  const Outcome outcome = import_text(
      loop_text("(float x) => (int64 n, float y, float rows)", "n, y, rows",
                "b (int64 i, bool c, int64 n, float v) => (bool more, int64 next, float w, float v) { "
                "w = Add(v, v)  next = Add(n, two)  more = Less(next, ten) }",
                "most, yes, two, x",
                "most = Constant <value = int64 {9223372036854775807}> ()\n"
                "two = Constant <value = int64 {2}> ()\nten = Constant <value = int64 {10}> ()"));
  EXPECT_EQ(reals_of(outcome, {floats({1}, {})}, 0), (Reals{10}));
  EXPECT_EQ(reals_of(outcome, {floats({1}, {})}, 1), (Reals{16}));
  EXPECT_EQ(reals_of(outcome, {floats({1}, {})}, 2), (Reals{1, 2, 4, 8}));
}

constexpr const char* kUntilLarge =
    "b (int64 i, bool c, float v) => (bool more, float w) { w = Add(v, v)  more = Less(w, ten) }";

TEST(Loop, MayEndEarlyWhereARunSaysSo) {
  const std::string ten = "ten = Constant <value_float = 10.0> ()";
  const Outcome outcome =
      import_text(loop_text("(float x) => (float y)", "y", kUntilLarge, "m, yes, x", ten));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(count_of(outcome, "If"), 2) << "the first trip is made";
  for (const auto& [x, y] : {std::pair(1.f, 8.), {2.f, 16.}, {4.f, 16.}, {6.f, 12.}, {50.f, 100.}}) {
    EXPECT_EQ(reals_of(outcome, {floats({x}, {})}), (Reals{y}));
  }
  const Outcome asked =
      import_text(loop_text("(float x, bool go) => (float y)", "y", kUntilLarge, "m, go, x", ten));
  EXPECT_EQ(count_of(asked, "If"), 3);
  EXPECT_EQ(reals_of(asked, {floats({4}, {}), boolean(false)}), (Reals{4}));
  EXPECT_EQ(reals_of(asked, {floats({4}, {}), boolean(true)}), (Reals{16}));
}

TEST(Loop, OfACarriedValueThatGrows) {
  const Outcome outcome =
      import_text(loop_text("(float[1,2] x) => (float y)", "y",
                            "b (int64 i, bool c, float[n,2] v) => (bool c, float[k,2] w) { "
                            "w = Concat <axis = 0> (v, x) }",
                            "m, yes, x"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[4, 2]");
}

TEST(Loop, InABranchCapturesThroughIt) {
  const Outcome outcome = import_text(model_text(
      "(bool c, float[2] a) => (float y)",
      "m = Constant <value = int64 {3}> ()\n"
      "y = If (c) <then_branch = t () => (float r) { r = Loop <body = b (int64 i, bool go, float[2] v) => "
      "(bool go, float[2] w) { w = Add(v, a) }> (m, , a) }, else_branch = e () => (float n) { n = Neg(a) "
      "}>"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(reals_of(outcome, {boolean(true), floats({1, 2}, {2})}), (Reals{4, 8}));
  EXPECT_EQ(reals_of(outcome, {boolean(false), floats({1, 2}, {2})}), (Reals{-1, -2}));
}

// What is refused ------------------------------------------------------------------------------------------------

std::string loop_error(const std::string& signature, const std::string& body, const std::string& operands,
                       const std::string& before = "") {
  const Outcome outcome = import_with_none(loop_text(signature, "y", body, operands, before));
  EXPECT_FALSE(outcome.model);
  EXPECT_EQ(outcome.code, ExitCode::kModel);
  return outcome.errors;
}

TEST(Loop, RefusesWhatOnlyARunKnows) {
  const char* const adds = "b (int64 i, bool c, float v) => (bool c, float w) { w = Add(v, v) }";
  EXPECT_THAT(loop_error("(int64 n, float x) => (float y)", adds, "n, yes, x"),
              HasSubstr("Loop making 'y': the number of trips must be known at compile time"));
  EXPECT_THAT(loop_error("(bool go, float x) => (float y)", adds, "none, go, x"),
              HasSubstr("without a number of trips the condition must be known at compile time"));
  EXPECT_THAT(
      loop_error("(bool go, float x) => (float y)", "b (int64 i, bool c) => (bool c, float r) { r = Neg(x) }",
                 "m, go"),
      HasSubstr(
          "'y' has as many rows as trips are made, so that the condition must be known at compile time"));
  ImportOptions options;
  options.bindings.sets = {frontend::parse_set_binding("n=2")};
  EXPECT_EQ(
      reals_of(import_text(loop_text("(int64 n, float x) => (float y)", "y", adds, "n, yes, x"), options),
               {floats({3}, {})}),
      (Reals{12}));
}

TEST(Loop, HasABudget) {
  const std::string many = "many = Constant <value = int64 {1000000000000000000}> ()";
  for (const char* const body : {"b (int64 i, bool c, float v) => (bool c, float w) { w = Add(v, v) }",
                                 "b (int64 i, bool c, float v) => (bool c, float v) { }"}) {
    for (const char* const trips : {"many, yes, x", "none, yes, x"}) {
      const std::string error = loop_error("(float x) => (float y)", body, trips, many);
      EXPECT_THAT(error, HasSubstr("E0004"));
      EXPECT_THAT(error, HasSubstr("Loop making 'y'"));
      EXPECT_THAT(error, HasSubstr("nodes a trip, its trips make more nodes than the limit of"));
    }
  }
  // Loops in loops multiply.
  std::string body = "b (int64 i, bool c, float v) => (bool c, float w) { w = Add(v, v) }";
  for (int depth = 0; depth < 20; ++depth) {
    body = fmt::format(
        "b (int64 i, bool c, float v) => (bool c, float w) {{ w = Loop <body = {}> (m, yes, v) }}", body);
  }
  EXPECT_THAT(loop_error("(float x) => (float y)", body, "m, yes, x"), HasSubstr("E0004"));
}

TEST(Loop, RefusesBodiesThatDoNotFit) {
  EXPECT_THAT(
      loop_error("(float x) => (float y)", "b (int64 i, bool c) => (bool c, float x) { }", "m, yes, x"),
      HasSubstr("the body has 2 inputs and 2 outputs, which does not fit the node's 3 and 1"));
  EXPECT_THAT(
      loop_error("(float x) => (float y)", "b (int64 i, bool c, float v) => (bool c) { }", "m, yes, x"),
      HasSubstr("E0504"));
  EXPECT_THAT(loop_error("(float x) => (float y)", "b (int64 i, bool c, int64 v) => (bool c, int64 v) { }",
                         "m, yes, x"),
              HasSubstr("the body's input 'v' is declared with elements of int64, and given float32[]"));
  EXPECT_THAT(loop_error("(float x) => (float y)", "b (int64 i, bool c, v) => (c, i) { }", "m, yes, x"),
              HasSubstr("the body makes int64[] of the carried value 'v', which is float32[]"));
  EXPECT_THAT(loop_error("(float x) => (float y)", "b (int64 i, bool c, float v) => (float v, float v) { }",
                         "m, yes, x"),
              HasSubstr("the condition must be one bool, not float32[]"));
  EXPECT_THAT(loop_error("(float x) => (float y)", "b (int64 i, bool c, float v) => (bool c, float z) { }",
                         "m, yes, x"),
              HasSubstr("E0501"));
  EXPECT_THAT(loop_error("(float x) => (float y)", "b (int64 c, bool c, float v) => (bool c, float v) { }",
                         "m, yes, x"),
              HasSubstr("an input of the body has the name 'c' of another one"));
  EXPECT_THAT(loop_error("(float[2] x) => (float y)",
                         "b (int64 i, bool c, v) => (bool c, float w) { w = Spin(v) }", "m, yes, x"),
              HasSubstr("the model has 1 node of it"));
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float y)", "y = Loop(a, a)")).errors,
              HasSubstr("it has no graph 'body'"));
}

std::string scan_error(const std::string& attributes, const std::string& body) {
  const Outcome outcome =
      import_text(scan_text("(float[2] s, float[3,2] x) => (float y)", "y", attributes, body, "s, x"));
  EXPECT_EQ(outcome.code, ExitCode::kModel);
  return outcome.errors;
}

TEST(Scan, RefusesBodiesThatDoNotFit) {
  const char* const fits = "b (float[2] s, float[2] x) => (float[2] t) { t = Add(s, x) }";
  EXPECT_THAT(scan_error(", scan_input_axes = [2]", fits), HasSubstr("the axis 2 is outside [-2, 2)"));
  EXPECT_THAT(scan_error(", scan_input_axes = [0, 0]", fits),
              HasSubstr("scan_input_axes has 2 elements instead of 1"));
  EXPECT_THAT(scan_error(", scan_input_directions = [2]", fits),
              HasSubstr("a direction must be 0 or 1, not 2"));
  EXPECT_THAT(scan_error(", scan_wise = [2]", fits),
              HasSubstr("attribute 'scan_wise' is not known for Scan"));
  EXPECT_THAT(scan_error("", "b (float[2] s, float[2] x) => (float[4] t) { t = Concat <axis = 0> (s, x) }"),
              HasSubstr("the body makes float32[4] of the carried value 's', which is float32[2]"));
  EXPECT_THAT(scan_error("", "b (s, x) => (t) { t = MatMul(s, w)  w = Unsqueeze(s, s) }"),
              HasSubstr("in trip 0 of Scan"));
  const Outcome lengths = import_text(model_text(
      "(float[3] x, float[4] z) => (float y)",
      "y = Scan <num_scan_inputs = 2, body = b (float x, float z) => (float t) { t = Add(x, z) }> (x, z)"));
  EXPECT_THAT(lengths.errors, HasSubstr("its sequences have lengths of 3 and 4"));
  EXPECT_THAT(
      import_text(model_text("(float[3] x) => (float y)",
                             "y = Scan <num_scan_inputs = 2, body = b (float x) => (float x) { }> (x)"))
          .errors,
      HasSubstr("num_scan_inputs is 2, of 1 inputs"));
}

}  // namespace
}  // namespace gcompile
