// Sequences and optionals: names of several values, or of none, that no graph has.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend::ImportOptions;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::output_types;
using frontend_test::Reals;
using frontend_test::reals_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Inputs and outputs that are no tensors: "s" a sequence, "o" an optional, "os" an optional sequence.
using Kinds = std::map<std::string, std::string>;

/// Text cannot say such types, nor omit a first operand: "none" stands for it.
onnx::ModelProto model_of(const std::string& text, const Kinds& kinds = {}) {
  onnx::ModelProto model = frontend_test::proto_of(text);
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    for (std::string& name : *node.mutable_input()) name = name == "none" ? "" : name;
  }
  for (auto* infos : {model.mutable_graph()->mutable_input(), model.mutable_graph()->mutable_output()}) {
    for (onnx::ValueInfoProto& info : *infos) {
      const auto kind = kinds.find(info.name());
      if (kind == kinds.end()) continue;
      for (auto at = kind->second.rbegin(); at != kind->second.rend(); ++at) {
        const onnx::TypeProto inner = info.type();
        onnx::TypeProto& type = *info.mutable_type();
        *(*at == 's' ? type.mutable_sequence_type()->mutable_elem_type()
                     : type.mutable_optional_type()->mutable_elem_type()) = inner;
      }
    }
  }
  return model;
}

Outcome import_body(const std::string& signature, const std::string& body, const Kinds& kinds = {},
                    const ImportOptions& options = {}) {
  return frontend_test::import_proto(model_of(model_text(signature, body), kinds), options);
}

ImportOptions with_elements(std::vector<frontend::ElementsBinding> elements) {
  ImportOptions options;
  options.bindings.elements = std::move(elements);
  return options;
}

ir::Tensor floats(std::vector<float> values, ir::Shape shape) { return ir::Tensor::of_floats(values, shape); }

std::vector<std::string> input_names(const Outcome& outcome) {
  std::vector<std::string> names;
  for (const ir::ValueId id : outcome.graph().inputs()) names.push_back(outcome.graph().value(id).name);
  return names;
}

std::string number(const std::string& name, const std::string& value) {
  return fmt::format("{} = Constant<value = int64 {{{}}}>()\n", name, value);
}

const std::vector<ir::Tensor> kThree = {floats({1}, {1}), floats({2}, {1}), floats({3}, {1})};

/// Sequence s of a, b and c, and what is made of it.
Outcome of_three(const std::string& body, const std::string& outputs = "float y", const Kinds& kinds = {}) {
  return import_body(fmt::format("(float[1] a, float[1] b, float[1] c) => ({})", outputs),
                     "s = SequenceConstruct(a, b, c)\n" + body, kinds);
}

TEST(Sequence, IsReadWithoutANode) {
  for (const auto& [position, expected] : std::map<int, double>{{0, 1}, {2, 3}, {-1, 3}, {-3, 1}}) {
    const Outcome outcome = of_three(number("p", std::to_string(position)) + "y = SequenceAt(s, p)");
    EXPECT_EQ(reals_of(outcome, kThree), Reals{expected});
    EXPECT_EQ(outcome.graph().node_count(), 0u);
  }
  const Outcome length = of_three("y = SequenceLength(s)", "int64 y");
  EXPECT_EQ(reals_of(length, kThree), Reals{3});
  EXPECT_EQ(output_types(length.graph()), "int64[]");
}

TEST(Sequence, IsLongerAndShorter) {
  const std::string join = "y = ConcatFromSequence<axis = 0>(t)";
  EXPECT_EQ(reals_of(of_three("t = SequenceInsert(s, a)\n" + join), kThree), (Reals{1, 2, 3, 1}));
  EXPECT_EQ(reals_of(of_three(number("p", "0") + "t = SequenceInsert(s, c, p)\n" + join), kThree),
            (Reals{3, 1, 2, 3}));
  EXPECT_EQ(reals_of(of_three(number("p", "-1") + "t = SequenceInsert(s, a, p)\n" + join), kThree),
            (Reals{1, 2, 1, 3}));
  EXPECT_EQ(reals_of(of_three("t = SequenceErase(s)\n" + join), kThree), (Reals{1, 2}));
  EXPECT_EQ(reals_of(of_three(number("p", "-3") + "t = SequenceErase(s, p)\n" + join), kThree),
            (Reals{2, 3}));
  EXPECT_EQ(reals_of(of_three("e = SequenceEmpty()\nt = SequenceInsert(e, b)\n" + join), kThree), Reals{2});
  const Outcome stacked = of_three("y = ConcatFromSequence<axis = -1, new_axis = 1>(s)");
  EXPECT_EQ(output_types(stacked.graph()), "float32[1, 3]");
  EXPECT_EQ(reals_of(stacked, kThree), (Reals{1, 2, 3}));
}

TEST(Sequence, MayBeReadWhereARunSays) {
  const Outcome outcome = import_body("(float[2] a, float[2] b, int64[1] p) => (float y)",
                                      "s = SequenceConstruct(a, b)\ny = SequenceAt(s, p)");
  for (const auto& [position, expected] : std::map<std::int64_t, Reals>{{1, {3, 4}}, {-2, {1, 2}}}) {
    const std::int64_t at[] = {position};
    EXPECT_EQ(reals_of(outcome, {floats({1, 2}, {2}), floats({3, 4}, {2}), ir::Tensor::of_ints(at, {1})}),
              expected);
  }
  EXPECT_EQ(output_types(outcome.graph()), "float32[2]");
  EXPECT_THAT(
      import_body("(float[2] a, float[3] b, int64 p) => (float y)",
                  "s = SequenceConstruct(a, b)\ny = SequenceAt(s, p)")
          .errors,
      HasSubstr("the position must be known at compile time, for elements are float32[2] and float32[3]"));
}

TEST(Sequence, IsSplitOfATensor) {
  const std::vector<ir::Tensor> six = {floats({1, 2, 3, 4, 5, 6}, {6})};
  const auto split = [](const std::string& made, const std::string& signature = "(float[6] x)") {
    return import_body(signature + " => (float y)", made, {{"y", "s"}});
  };
  const auto of = [&](const std::string& made) {
    const Outcome outcome = split(made);
    return outcome.model ? output_types(outcome.graph()) : outcome.errors;
  };
  EXPECT_EQ(of(number("l", "4") + "y = SplitToSequence(x, l)"), "float32[4] float32[2]");
  EXPECT_EQ(of("l = Constant<value = int64[3] {1, 0, 5}>() y = SplitToSequence(x, l)"),
            "float32[1] float32[0] float32[5]");
  EXPECT_EQ(of("y = SplitToSequence<axis = -1>(x)"),
            "float32[1] float32[1] float32[1] float32[1] float32[1] float32[1]");
  const Outcome scalars = split("y = SplitToSequence<keepdims = 0>(x)");
  EXPECT_EQ(output_types(scalars.graph()), "float32[] float32[] float32[] float32[] float32[] float32[]");
  EXPECT_EQ(reals_of(scalars, six, 4), Reals{5});
  EXPECT_THAT(of("l = Constant<value = int64[2] {1, 2}>() y = SplitToSequence(x, l)"), HasSubstr("E0201"));
  EXPECT_THAT(of("l = Constant<value = int64[2] {-1, 7}>() y = SplitToSequence(x, l)"), HasSubstr("E0201"));
  EXPECT_THAT(of(number("l", "0") + "y = SplitToSequence(x, l)"), HasSubstr("split is 0"));
  EXPECT_THAT(of("y = SplitToSequence<axis = 1>(x)"), HasSubstr("the axis 1 is outside [-1, 1)"));
  EXPECT_THAT(split("y = SplitToSequence(x)", "(float[2000000] x)").errors, HasSubstr("error[E0004]"));
  EXPECT_THAT(split(number("l", "1") + "y = SplitToSequence(x, l)", "(float[2000000] x)").errors,
              HasSubstr("error[E0004]"));
  EXPECT_THAT(split("y = SplitToSequence(x, l)", "(float[6] x, int64[2] l)").errors,
              HasSubstr("split must be known at compile time"));
}

TEST(Sequence, IsMapped) {
  const Outcome outcome = of_three(
      "m, n = SequenceMap<body = g (float[1] e, float[1] w, float[1] v) => (float[1] f, float[1] h) "
      "{ f = Mul(e, w) h = Add(v, b) }>(s, c, s)\ny = ConcatFromSequence<axis = 0>(m)\n"
      "z = ConcatFromSequence<axis = 0>(n)",
      "float y, float z");
  EXPECT_EQ(reals_of(outcome, kThree), (Reals{3, 6, 9}));
  EXPECT_EQ(reals_of(outcome, kThree, 1), (Reals{3, 4, 5}));
  EXPECT_THAT(of_three("t = SequenceErase(s)\n"
                       "y = SequenceMap<body = g (float e, float f) => (float h) { h = Add(e, f) }>(s, t)")
                  .errors,
              HasSubstr("its sequences have 3 and 2 elements"));
  EXPECT_THAT(of_three("y = SequenceMap<body = g (float e) => (float h) { h = Neg(e) }>(a)").errors,
              HasSubstr("the first input must be a sequence"));
}

TEST(Sequence, IsCarriedByALoop) {
  const Outcome outcome = import_body(
      "(float[1] a) => (float y)",
      number("n", "3") +
          "e = SequenceEmpty()\n"
          "s = Loop<body = g (int64 i, bool go, float t) => (bool on, float u) "
          "{ on = Identity(go) f = Cast<to = 1>(i) w = Add(a, f) u = SequenceInsert(t, w) }>(n, none, e)\n"
          "y = ConcatFromSequence<axis = 0>(s)");
  EXPECT_EQ(reals_of(outcome, {floats({10}, {1})}), (Reals{10, 11, 12}));
}

TEST(Sequence, IsGivenByBothBranches) {
  const std::string branches =
      "t = If(p) <then_branch = g () => (u) { u = SequenceConstruct(c, a, b) }, else_branch = h () => (v) "
      "{ v = Identity(s) }>\ny = ConcatFromSequence<axis = 0>(t)";
  const Outcome outcome = import_body("(float[1] a, float[1] b, float[1] c, bool p) => (float y)",
                                      "s = SequenceConstruct(a, b, c)\n" + branches);
  for (const bool condition : {true, false}) {
    std::vector<ir::Tensor> inputs = kThree;
    inputs.push_back(ir::Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kBool, condition)));
    EXPECT_EQ(reals_of(outcome, inputs), condition ? (Reals{3, 1, 2}) : (Reals{1, 2, 3}));
  }
  const Outcome unlike = import_body(
      "(float[1] a, bool p) => (int64 y)",
      "t = If(p) <then_branch = g () => (u) { u = SequenceConstruct(a, a) }, else_branch = h () => (v) "
      "{ v = SequenceConstruct(a) }>\ny = SequenceLength(t)");
  EXPECT_THAT(unlike.errors,
              HasSubstr("the condition must be known at compile time, for 't' is a sequence of 2 "
                        "of float32 in one branch and a sequence of 1 of float32 in the other"));
}

TEST(Sequence, IsTakenAndGivenByFunctions) {
  const std::string model =
      "<ir_version: 8, opset_import: [\"\" : 17, \"here\" : 1]>\n"
      "g (float[1] a, float[1] b) => (float y) { s = SequenceConstruct(a, b) t = here.twice(s) "
      "y = ConcatFromSequence<axis = 0>(t) }\n"
      "<domain: \"here\", opset_import: [\"\" : 17]>\n"
      "twice (s) => (t) { t = SequenceMap<body = m (float e) => (float f) { f = Add(e, e) }>(s) }\n";
  EXPECT_EQ(reals_of(frontend_test::import_text(model), {kThree[0], kThree[2]}), (Reals{2, 6}));
}

TEST(Sequence, RefusesWhatIsOutside) {
  const auto errors = [](const std::string& body) { return of_three(body).errors; };
  EXPECT_THAT(errors(number("p", "3") + "y = SequenceAt(s, p)"),
              HasSubstr("the position 3 is outside [-3, 3), of a sequence of 3"));
  EXPECT_THAT(errors(number("p", "-4") + "y = SequenceAt(s, p)"), HasSubstr("the position -4 is outside"));
  EXPECT_THAT(errors(number("p", "4") + "t = SequenceInsert(s, a, p) y = SequenceAt(t, p)"),
              HasSubstr("the position 4 is outside [-3, 4)"));
  EXPECT_THAT(errors(number("p", "9223372036854775807") + "t = SequenceErase(s, p) y = SequenceAt(t, p)"),
              HasSubstr("the position 9223372036854775807 is outside"));
  EXPECT_THAT(errors("e = SequenceEmpty() t = SequenceErase(e) y = SequenceLength(t)"),
              HasSubstr("the sequence has no element to erase"));
  EXPECT_THAT(errors("e = SequenceEmpty() y = ConcatFromSequence<axis = 0>(e)"),
              HasSubstr("the sequence is empty, so that the result has no type"));
  EXPECT_THAT(errors("e = SequenceEmpty<dtype = 99>() y = SequenceLength(e)"),
              HasSubstr("dtype 99 is no element type that is supported"));
  EXPECT_THAT(errors("d = Cast<to = 11>(a) t = SequenceInsert(s, d) y = SequenceLength(t)"),
              HasSubstr("a sequence has elements of one type, not of float32 and float64"));
  EXPECT_THAT(errors("y = ConcatFromSequence<axis = 1>(s)"), HasSubstr("the axis 1 is outside [-1, 1)"));
  EXPECT_THAT(errors("y = SequenceAt(s, a)"), HasSubstr("the position must be one int64 or int32"));
  EXPECT_THAT(errors("y = Relu(s)"), HasSubstr("its input 's' is a sequence, where a tensor is taken"));
  EXPECT_THAT(errors("y = SequenceLength(a)"), HasSubstr("input 0 must be a sequence, not float32[1]"));
  EXPECT_THAT(errors("t = SequenceConstruct(s) y = SequenceLength(t)"),
              HasSubstr("input 0 must be a tensor, not a sequence"));
  EXPECT_THAT(errors("y = Identity(s)"),
              HasSubstr("the output 'y' is declared as a tensor, but is a sequence of 3"));
}

TEST(Optional, IsItsElementOrNothing) {
  const std::string body =
      "h = OptionalHasElement(o)\n"
      "y = If(h) <then_branch = g () => (u) { u = OptionalGetElement(o) }, else_branch = e () => (v) "
      "{ v = Neg(a) }>";
  const std::string signature = "(float[1] a, float[1] o) => (float y)";
  const Outcome with = import_body(signature, body, {{"o", "o"}}, with_elements({{"o", 1}}));
  EXPECT_EQ(reals_of(with, {kThree[0], kThree[1]}), Reals{2});
  const Outcome without = import_body(signature, body, {{"o", "o"}}, with_elements({{"o", std::nullopt}}));
  EXPECT_EQ(reals_of(without, {kThree[0]}), Reals{-1});
  EXPECT_THAT(
      import_body(signature, "y = OptionalGetElement(o)", {{"o", "o"}}, with_elements({{"o", std::nullopt}}))
          .errors,
      HasSubstr("the optional has no element"));
}

TEST(Ports, OfASequenceAreItsElements) {
  const Outcome outcome = import_body("(float[N] x, float[1] x_0) => (float z)", "z = SequenceInsert(x, x_0)",
                                      {{"x", "s"}, {"z", "s"}}, [] {
                                        ImportOptions options = with_elements({{"x", 2}});
                                        options.bindings.shapes = {{"x", {{4, ""}}}};
                                        return options;
                                      }());
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_THAT(input_names(outcome), ElementsAre("x__0", "x__1", "x_0"));
  EXPECT_THAT(outcome.graph().output_names(), ElementsAre("z_0", "z_1", "z_2"));
  EXPECT_EQ(output_types(outcome.graph()), "float32[4] float32[4] float32[1]");
}

TEST(Ports, OfUnlikeSizesHaveShapesOfTheirOwn) {
  ImportOptions options = with_elements({{"x", 2}});
  options.bindings.shapes = {{"x_0", {{4, ""}}}, {"x_1", {{5, ""}}}};
  const Outcome outcome =
      import_body("(float[N] x) => (float z)", "z = Identity(x)", {{"x", "s"}, {"z", "s"}}, options);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[4] float32[5]");
  EXPECT_EQ(outcome.warnings, "");
}

TEST(Ports, NeedANumberOfTensors) {
  const auto errors = [](std::vector<frontend::ElementsBinding> elements) {
    return import_body("(float[1] x, float[1] o, float[1] t) => (float y)", "y = Relu(t)",
                       {{"x", "s"}, {"o", "o"}}, with_elements(std::move(elements)))
        .errors;
  };
  EXPECT_EQ(errors({{"x", 0}, {"o", std::nullopt}}), "");
  EXPECT_THAT(errors({{"x", 1}}), HasSubstr("one input is a sequence or an optional"));
  EXPECT_THAT(errors({}), HasSubstr("--elements x=2 --elements o=1"));
  EXPECT_THAT(errors({{"x", std::nullopt}, {"o", 1}}), HasSubstr("error[E0411]: --elements: only optionals"));
  EXPECT_THAT(errors({{"x", 1}, {"o", 2}}), HasSubstr("there is one tensor, or none, in the optional 'o'"));
  EXPECT_THAT(errors({{"x", 1}, {"o", 1}, {"t", 1}}), HasSubstr("no sequence or optional as input 't'"));
}

TEST(Ports, WithoutElementsHaveNoPlace) {
  const Outcome beside =
      import_body("(float[1] a) => (float e, float y)", "e = SequenceEmpty() y = Neg(a)", {{"e", "s"}});
  EXPECT_THAT(beside.warnings, HasSubstr("W0509"));
  EXPECT_EQ(output_types(beside.graph()), "float32[1]");
  EXPECT_THAT(import_body("(float[1] a) => (float e)", "e = SequenceEmpty()", {{"e", "s"}}).errors,
              HasSubstr("E0505"));
}

}  // namespace
}  // namespace gcompile
