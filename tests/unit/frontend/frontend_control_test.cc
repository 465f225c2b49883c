// If with both branches, and model-local functions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend::ImportOptions;
using frontend_test::import_proto;
using frontend_test::import_text;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::output_types;
using frontend_test::proto_of;
using ::testing::HasSubstr;
using ::testing::Not;

ir::Tensor floats(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return ir::Tensor::of_floats(values, {count});
}

ir::Tensor boolean(bool value) {
  return ir::Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kBool, value));
}

float run(const Outcome& outcome, const std::vector<ir::Tensor>& inputs) {
  return static_cast<float>(ir::evaluate_graph(outcome.graph(), inputs).at(0).real_at(0));
}

std::string if_model(const std::string& then_body, const std::string& else_body) {
  return model_text("(bool c, float[2] a, float[2] b) => (float y)",
                    fmt::format("h = Exp(a)\ny = If (c) <then_branch = t () => (float r) {{ {} }}, "
                                "else_branch = e () => (float r) {{ {} }}>",
                                then_body, else_body));
}

const ir::Node& if_node(const ir::Graph& graph) {
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op->name == "If") return graph.node(id);
  }
  throw std::runtime_error("no If");
}

TEST(FrontendControl, BothBranchesTakeTheSameCaptures) {
  const Outcome outcome = import_text(if_model("r = Add(h, b)", "r = Sub(b, a)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const ir::Node& node = if_node(outcome.graph());
  ASSERT_EQ(node.operands.size(), 4u);  // condition; h, b, a in order of first use
  EXPECT_EQ(outcome.graph().value(node.operands[1]).name, "h");
  EXPECT_EQ(outcome.graph().value(node.operands[2]).name, "b");
  EXPECT_EQ(outcome.graph().value(node.operands[3]).name, "a");
  for (const ir::Graph& branch : node.subgraphs) EXPECT_EQ(branch.inputs().size(), 3u);
  EXPECT_NEAR(run(outcome, {boolean(true), floats({0, 0}), floats({5, 5})}), 6, 1e-6);
  EXPECT_NEAR(run(outcome, {boolean(false), floats({1, 1}), floats({5, 5})}), 4, 1e-6);
}

TEST(FrontendControl, BranchesMayReturnACapturedValue) {
  const Outcome outcome = import_text(model_text(
      "(bool c, float[2] a) => (float y)",
      "y = If (c) <then_branch = t () => (float a) { }, else_branch = e () => (float r) { r = Neg(a) }>"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(run(outcome, {boolean(true), floats({3, 3})}), 3);
  EXPECT_EQ(run(outcome, {boolean(false), floats({3, 3})}), -3);
}

TEST(FrontendControl, NestedIfsCaptureThroughEveryLevel) {
  const Outcome outcome =
      import_text(if_model("r = If (c) <then_branch = tt () => (float q) { q = Add(a, b) }, "
                           "else_branch = te () => (float q) { q = Sub(a, h) }>",
                           "r = Mul(a, b)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(run(outcome, {boolean(true), floats({2, 2}), floats({5, 5})}), 7);
  EXPECT_EQ(run(outcome, {boolean(false), floats({2, 2}), floats({5, 5})}), 10);
}

TEST(FrontendControl, AKnownConditionLeavesOnlyTheTakenBranch) {
  ImportOptions options;
  options.bindings.sets = {frontend::parse_set_binding("c=true")};
  // The other branch is not even looked at.
  const Outcome outcome = import_text(if_model("r = Add(h, b)", "r = acme.Spin(b)"), options);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(outcome.graph().node_count(), 2u);
  EXPECT_NEAR(run(outcome, {floats({0, 0}), floats({5, 5})}), 6, 1e-6);
}

TEST(FrontendControl, ABranchThatCannotBeTypedIsTrappedWithAWarning) {
  const Outcome outcome = import_text(
      if_model("r = MatMul(a, w)\nw = Reshape(b, s)\ns = Constant<value_ints=[3]>()", "r = Relu(b)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_THAT(outcome.warnings, HasSubstr("W0203"));
  EXPECT_THAT(outcome.warnings, HasSubstr("Reshape 'w'"));
  const ir::Node& node = if_node(outcome.graph());
  EXPECT_THAT(node.subgraphs[0].trap, HasSubstr("Reshape 'w'"));
  EXPECT_EQ(node.subgraphs[0].node_count(), 0u);
  EXPECT_EQ(node.subgraphs[0].inputs().size(), node.operands.size() - 1);
  EXPECT_EQ(node.subgraphs[1].trap, "");
  EXPECT_EQ(output_types(outcome.graph()), "float32[2]");
  EXPECT_EQ(run(outcome, {boolean(false), floats({1, 1}), floats({5, 5})}), 5);
  EXPECT_THROW(run(outcome, {boolean(true), floats({1, 1}), floats({5, 5})}), CompileError);
}

TEST(FrontendControl, AMistakeInTheTakenBranchOrInBothIsAnError) {
  const std::string wrong = "r = Reshape(b, s)\ns = Constant<value_ints=[3]>()";
  ImportOptions options;
  options.bindings.sets = {frontend::parse_set_binding("c=true")};
  EXPECT_THAT(import_text(if_model(wrong, "r = Relu(b)"), options).errors, HasSubstr("E0201"));
  EXPECT_THAT(import_text(if_model(wrong, wrong)).errors, HasSubstr("neither branch can be typed"));
}

TEST(FrontendControl, UnsupportedNodesInBranchesAreErrorsAlways) {
  const Outcome outcome = import_text(if_model("r = Foo(h)", "r = Relu(b)"));
  EXPECT_EQ(outcome.code, ExitCode::kModel);
  EXPECT_THAT(outcome.errors, HasSubstr("operator Foo"));
}

TEST(FrontendControl, IncompleteIfsAreErrors) {
  EXPECT_THAT(import_text(model_text("(bool c, float[2] a) => (float y)",
                                     "y = If (c) <then_branch = t () => (float r) { r = Relu(a) }>"))
                  .errors,
              HasSubstr("E0504"));
  EXPECT_THAT(import_text(model_text("(bool c, float[2] a) => (float y)",
                                     "y = If (c) <then_branch = t (float[2] x) => (float r) { r = Relu(x) }, "
                                     "else_branch = e () => (float r) { r = Relu(a) }>"))
                  .errors,
              HasSubstr("then_branch must not have inputs"));
}

constexpr const char* kFunctions =
    "<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>\n"
    "agraph (float[2] a) => (float y) {{ {} }}\n"
    "<opset_import: [\"\" : 17, \"local\" : 1], domain: \"local\">\n"
    "scaled <slope> (x) => (y) {{ n = Elu <alpha : float = @slope> (x)  y = Exp(n) }}\n"
    "<opset_import: [\"\" : 17, \"local\" : 1], domain: \"local\">\n"
    "twice <slope> (x) => (z) {{ n = local.scaled <slope : float = @slope> (x)  z = Add(n, n) }}\n";

TEST(FrontendControl, FunctionsAreInlinedWithTheirAttributes) {
  const Outcome outcome = import_text(fmt::format(kFunctions, "y = local.twice <slope = 3.0> (a)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(outcome.graph().node_count(), 3u);
  for (const ir::NodeId id : outcome.graph().nodes()) {
    const ir::Node& node = outcome.graph().node(id);
    if (node.op->name != "Elu") continue;
    EXPECT_EQ(node.attributes.float_of("alpha"), 3.0f);
    EXPECT_EQ(node.name, "y/n/n");  // call, call inside, node
  }
}

TEST(FrontendControl, AReferenceToAnAttributeThatIsNotGivenLeavesTheDefault) {
  const Outcome outcome = import_text(fmt::format(kFunctions, "y = local.scaled(a)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  for (const ir::NodeId id : outcome.graph().nodes()) {
    const ir::Node& node = outcome.graph().node(id);
    if (node.op->name != "Elu") continue;
    EXPECT_EQ(node.attributes.float_of("alpha"), 1.0f);
  }
}

/// FunctionProto.attribute_proto: field 11, which ONNX 1.12 does not know.
onnx::ModelProto with_attribute_default(float value) {
  onnx::ModelProto model = proto_of(fmt::format(kFunctions, "y = local.scaled(a)"));
  onnx::AttributeProto attribute;
  attribute.set_name("slope");
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
  onnx::FunctionProto& function = *model.mutable_functions(0);
  function.clear_attribute();
  const std::string bytes = attribute.SerializeAsString();
  std::string field = {static_cast<char>((11 << 3) | 2), static_cast<char>(bytes.size())};
  EXPECT_TRUE(function.MergeFromString(field + bytes));
  return model;
}

TEST(FrontendControl, DefaultsOfFunctionAttributesAreReadWhereOnnxDoesNotKnowThem) {
  const Outcome outcome = import_proto(with_attribute_default(2.5f));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  int found = 0;
  for (const ir::NodeId id : outcome.graph().nodes()) {
    const ir::Node& node = outcome.graph().node(id);
    if (node.op->name != "Elu") continue;
    ++found;
    EXPECT_EQ(node.attributes.float_of("alpha"), 2.5f);
  }
  EXPECT_EQ(found, 1);
}

TEST(FrontendControl, FunctionMistakesAreErrors) {
  EXPECT_THAT(import_text(fmt::format(kFunctions, "y = local.scaled <slop = 3.0> (a)")).errors,
              HasSubstr("attribute 'slop' is not known for this function"));
  EXPECT_THAT(import_text(fmt::format(kFunctions, "y = local.scaled(a, a)")).errors, HasSubstr("E0120"));
  EXPECT_THAT(import_text("<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>\n"
                          "agraph (float[2] a) => (float y) { y = local.f(a) }\n"
                          "<opset_import: [\"\" : 17, \"local\" : 1], domain: \"local\">\n"
                          "f (x) => (y) { y = local.f(x) }")
                  .errors,
              HasSubstr("the function calls itself"));
  // References make sense inside functions only.
  EXPECT_THAT(
      import_text(model_text("(float[2] a) => (float y)", "y = Elu <alpha : float = @slope> (a)")).errors,
      HasSubstr("only functions have attributes to refer to"));
}

TEST(FrontendControl, AFunctionUsesItsOwnOpset) {
  const Outcome outcome = import_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>\n"
      "agraph (float[2, 3] a) => (float y) { y = local.f(a) }\n"
      "<opset_import: [\"\" : 11], domain: \"local\">\n"
      "f (x) => (y) { y = ReduceSum <axes = [1], keepdims = 0> (x) }");
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[2]");
}

TEST(FrontendControl, OmittedFunctionInputsAreOmittedInside) {
  const Outcome outcome = import_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>\n"
      "agraph (float[2] a) => (float y) { y = local.f(a) }\n"
      "<opset_import: [\"\" : 17], domain: \"local\">\n"
      "f (x, low) => (y) { y = Clip(x, low) }");
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(run(outcome, {floats({-3, 0})}), -3);
}

}  // namespace
}  // namespace gcompile
