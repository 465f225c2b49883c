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

TEST(FrontendImport, TypesAndNamesNodesInModelOrder) {
  const Outcome outcome = import_text(
      model_text("(float[2, 3] a, float[3, 4] b) => (float[2, 4] y)", "p = MatMul(a, b)\ny = Softmax(p)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[2, 4]");
  EXPECT_EQ(outcome.warnings, "");
  const auto order = outcome.graph().topological_order();
  ASSERT_EQ(order.size(), 2u);
  const ir::Node& product = outcome.graph().node(order[0]);
  EXPECT_EQ(product.op->name, "MatMul");
  EXPECT_EQ(product.origins, (std::vector<ir::Origin>{{"MatMul", "p"}}));
  EXPECT_EQ(outcome.graph().value(product.results[0]).name, "p");
}

TEST(FrontendImport, NodesMayStandInAnyOrder) {
  const Outcome outcome =
      import_text(model_text("(float[2] a) => (float[2] y)", "y = Relu(q)\nq = Exp(p)\np = Elu(a)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(outcome.graph().node_count(), 3u);
}

TEST(FrontendImport, CyclesAreErrorsThatNameTheirNodes) {
  const Outcome outcome =
      import_text(model_text("(float[2] a) => (float[2] y)", "p = Add(a, q)\nq = Relu(p)\ny = Exp(q)"));
  EXPECT_EQ(outcome.code, ExitCode::kModel);
  EXPECT_THAT(outcome.errors, HasSubstr("E0503"));
  EXPECT_THAT(outcome.errors, HasSubstr("node making 'p' (Add)"));
  EXPECT_THAT(outcome.errors, HasSubstr("node making 'q' (Relu)"));
  EXPECT_THAT(outcome.errors, Not(HasSubstr("'y' (Exp)")));
}

TEST(FrontendImport, UnknownNamesAreErrorsWithAHint) {
  const Outcome outcome =
      import_text(model_text("(float[2] a) => (float[2] y)", "hidden = Exp(a)\ny = Relu(hiden)"));
  EXPECT_THAT(outcome.errors, HasSubstr("node making 'y' uses 'hiden', which nothing makes"));
  EXPECT_THAT(outcome.errors, HasSubstr("did you mean 'hidden'?"));
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float[2] z)", "y = Relu(a)")).errors,
              HasSubstr("nothing makes the graph's output 'z'"));
}

TEST(FrontendImport, NamesHaveOneDefinition) {
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float[2] y)", "y = Exp(a)\ny = Relu(a)")).errors,
              HasSubstr("'y' by node making 'y' (Relu) and by node making 'y'"));
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float[2] a)", "a = Exp(a)")).errors,
              HasSubstr("an input or initializer of the graph"));
}

TEST(FrontendImport, OfConstantsWithOneNameTheLastCountsWithAWarning) {
  const Outcome outcome = import_text(model_text("(float[2] a) => (float y)",
                                                 "k = Constant <value_float = 1.0> ()\ny = Add(a, k)\n"
                                                 "k = Constant <value_float = 5.0> ()"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_THAT(outcome.warnings, HasSubstr("W0506"));
  EXPECT_EQ(ir::evaluate_graph(outcome.graph(), {floats({1, 1})})[0].real_at(0), 6);
}

TEST(FrontendImport, EveryUnsupportedNodeIsNamedInOneRun) {
  const Outcome outcome = import_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 2]>\n"
      "agraph (float[2, 3] a) => (float y)\n"
      "{ p = Relux(a)  q = acme.Spin(p)  r = Relux(q, a)  s = MatMul(a, a)  y = Relu(r) }");
  EXPECT_EQ(outcome.code, ExitCode::kModel);
  EXPECT_THAT(outcome.errors,
              HasSubstr("operator Relux (opset 17) is not supported; the model has 2 nodes of it"));
  EXPECT_THAT(outcome.errors, HasSubstr("node making 'p'(float32[2, 3])"));
  EXPECT_THAT(outcome.errors, HasSubstr("node making 'r'(?, float32[2, 3])"));
  EXPECT_THAT(outcome.errors, HasSubstr("did you mean 'Relu'?"));
  EXPECT_THAT(outcome.errors, HasSubstr("operator acme.Spin (opset 2)"));
  EXPECT_THAT(outcome.errors, HasSubstr("the domain 'acme' is not supported"));
  // The mistake of another kind is shown, too; what follows from an error is not.
  EXPECT_THAT(outcome.errors, HasSubstr("inner dimensions differ"));
  EXPECT_THAT(outcome.errors, Not(HasSubstr("Relu 'y'")));
}

TEST(FrontendImport, AbbreviatedOperatorsAreGuessed) {
  for (const std::string domain : {"", "com.microsoft.", "acme."}) {
    EXPECT_THAT(import_text("<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 1]>\n"
                            "agraph (float[2] a) => (float y) { y = " +
                            domain + "RMSNorm(a) }")
                    .errors,
                HasSubstr("did you mean 'RMSNormalization'?"))
        << domain;
  }
}

TEST(FrontendImport, OneErrorOfAttributesForAllNodesThatHaveIt) {
  const Outcome outcome =
      import_text(model_text("(float[2] a) => (float y)",
                             "b = Elu <beta = 1.0> (a)\nc = Elu <beta = 2.0> (a)\ny = Elu <beta = 1.0> (a)"));
  const std::string text = "Elu: attribute 'beta' is not known for Elu; 3 nodes have it";
  EXPECT_THAT(outcome.errors, HasSubstr(text));
  EXPECT_EQ(outcome.errors.find("E0103"), outcome.errors.rfind("E0103"));
  EXPECT_THAT(outcome.errors, HasSubstr("node making 'c'"));
}

TEST(FrontendImport, AttributesAreChecked) {
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float[2] y)", "y = Elu <beta = 1.0> (a)")).errors,
              HasSubstr("attribute 'beta' is not known for Elu"));
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float[2] y)", "y = Elu <alpha = 1> (a)")).errors,
              HasSubstr("attribute 'alpha' has the wrong kind"));
  // `axes` was an attribute of older opsets, and always a list.
  EXPECT_THAT(import_text(model_text("(float[2] a) => (float y)", "y = ReduceSum <axes = 0> (a)")).errors,
              HasSubstr("attribute 'axes' has the wrong kind"));
}

TEST(FrontendImport, LengthsThatAreKnownAreChecked) {
  const auto errors = [](int length) {
    return import_text(model_text("(float[2, 1, 3] x, float[1, 8, 3] w, float[1, 8, 2] r) => (float y)",
                                  fmt::format("n = Constant <value = int32[1] {{{}}}> ()\n"
                                              "y = LSTM <hidden_size = 2> (x, w, r, , n)",
                                              length)))
        .errors;
  };
  EXPECT_EQ(errors(2), "");
  EXPECT_THAT(errors(3), HasSubstr("sequence_lens has the length 3, but there are 2 steps"));
  EXPECT_THAT(errors(-1), HasSubstr("sequence_lens has the length -1"));
}

TEST(FrontendImport, FlagsAreZeroOrOne) {
  // Runtimes differ in what they take 64 for.
  EXPECT_THAT(
      import_text(model_text("(float[2] a) => (float y)", "y = ReduceSum <keepdims = 64> (a)")).errors,
      HasSubstr("attribute 'keepdims' must be 0 or 1, not 64"));
}

TEST(FrontendImport, OperandsOfAnyNumberMustAllBeThere) {
  for (const std::string op :
       {"Sum", "Max", "Min", "Mean", "Concat <axis = 0>", "Einsum <equation = \"i,i,i->i\">"}) {
    EXPECT_THAT(
        import_text(model_text("(float[2] a, float[2] b) => (float y)", "y = " + op + "(a, , b)")).errors,
        HasSubstr("input 1 is missing"))
        << op;
  }
}

TEST(FrontendImport, ResultsThatMustBeThereHaveNames) {
  for (const std::string op :
       {"PRelu(a, a)", "Cast <to = 6> (a)", "Relu(a)", "MaxPool <kernel_shape = [1]> (a)"}) {
    onnx::ModelProto model =
        frontend_test::proto_of(model_text("(float[1, 1, 2] a) => (float y)", "y = Exp(a)\nz = " + op));
    model.mutable_graph()->mutable_node(1)->set_output(0, "");
    EXPECT_THAT(frontend_test::import_proto(model).errors, HasSubstr("output 0 has no name")) << op;
  }
}

TEST(FrontendImport, AnOutputListedTwiceIsCopied) {
  const Outcome outcome = import_text(
      model_text("(float[2] a) => (float y, float y, float y_2, float y)", "y = Exp(a)\ny_2 = Neg(a)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(outcome.graph().output_names(), (std::vector<std::string>{"y", "y_3", "y_2", "y_4"}));
  EXPECT_THAT(outcome.warnings, HasSubstr("W0507"));
  EXPECT_EQ(outcome.graph().outputs()[0], outcome.graph().outputs()[1]);
  EXPECT_EQ(outcome.graph().outputs()[0], outcome.graph().outputs()[3]);
}

TEST(FrontendImport, OldOpsetsAreNormalised) {
  const Outcome outcome = import_text(
      "<ir_version: 6, opset_import: [\"\" : 11]>\nagraph (float[2, 3, 4] a) => (float y)\n"
      "{ y = ReduceMean <axes = [1], keepdims = 0> (a) }");
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[2, 4]");
}

TEST(FrontendImport, OpsetImportsAreChecked) {
  const std::string graph = "agraph (float[2] a) => (float[2] y) { y = Relu(a) }";
  EXPECT_THAT(import_text("<ir_version: 8, opset_import: [\"\" : 0]>" + graph).errors, HasSubstr("E0111"));
  EXPECT_THAT(import_text("<ir_version: 8, opset_import: [\"acme\" : 6]>" + graph).errors,
              HasSubstr("E0102"));
  EXPECT_THAT(import_text("<ir_version: 8, opset_import: [\"\" : 33]>" + graph).warnings, HasSubstr("W0112"));
  EXPECT_THAT(import_text("<ir_version: 8, opset_import: [\"\" : 99]>" + graph).errors, HasSubstr("E0111"));
  EXPECT_EQ(import_text("<ir_version: 13, opset_import: [\"\" : 28]>" + graph).warnings, "");
  const Outcome twice = import_text("<ir_version: 8, opset_import: [\"\" : 9, \"ai.onnx\" : 13]>" + graph);
  ASSERT_TRUE(twice.model) << twice.errors;
  EXPECT_THAT(twice.warnings, HasSubstr("imports opset 9 of ai.onnx and later 13; the last one counts"));
  EXPECT_EQ(twice.model->info.opsets.at(""), 13);
}

TEST(FrontendImport, DuplicateImportsDecideHowANodeIsRead) {
  // Softmax before opset 13 flattens: its default axis is 1, not the last.
  const std::string graph = "agraph (float[2, 3, 4] a) => (float y) { y = Softmax(a) }";
  const auto reshapes = [&](const std::string& imports) {
    const Outcome outcome = import_text("<ir_version: 8, opset_import: [" + imports + "]>" + graph);
    int count = 0;
    for (const ir::NodeId id : outcome.graph().nodes())
      count += outcome.graph().node(id).op->name == "Reshape";
    return count;
  };
  EXPECT_EQ(reshapes("\"\" : 11, \"\" : 13"), 0);
  EXPECT_GT(reshapes("\"\" : 13, \"\" : 11"), 0);
}

TEST(FrontendImport, InitializersListedAsInputsAreConstants) {
  onnx::ModelProto model = proto_of(model_text("(float[2] a, float[2] w) => (float[2] y)", "y = Add(a, w)"));
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(1);
  tensor.add_dims(2);
  tensor.add_float_data(1);
  tensor.add_float_data(2);
  const Outcome outcome = import_proto(model);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  ASSERT_EQ(outcome.graph().inputs().size(), 1u);
  EXPECT_EQ(ir::evaluate_graph(outcome.graph(), {floats({1, 1})})[0].real_at(1), 3);
}

TEST(FrontendImport, OutputsMayBeInputsConstantsAndHints) {
  const Outcome outcome = import_text(
      model_text("(float[2] a) => (float[2] a, float[7] y, float[3, 1] z)", "y = Relu(a)\nz = Exp(a)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[2] float32[2] float32[2]");
  EXPECT_THAT(outcome.warnings, HasSubstr("the output 'y' is declared with shape [7], but has [2]"));
  EXPECT_THAT(outcome.warnings, HasSubstr("the output 'z' is declared with shape [3, 1], but has [2]"));
  EXPECT_THAT(import_text(model_text("(float[2] a) => (int64[2] y)", "y = Relu(a)")).errors,
              HasSubstr("the output 'y' is declared as int64, but its elements are float32"));
}

TEST(FrontendImport, ValuesThatSteerShapesAreKnown) {
  const Outcome outcome = import_text(
      model_text("(float[2, 6] a, float[3, 4] b) => (float y)", "s = Shape(b)\ny = Reshape(a, s)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "float32[3, 4]");
}

TEST(FrontendImport, UnwantedResultsAndOmittedInputsKeepTheirPlaces) {
  onnx::ModelProto model = proto_of(model_text("(float[4] a) => (int64 i)", "v, i = TopK(a, k)"));
  onnx::TensorProto& k = *model.mutable_graph()->add_initializer();
  k.set_name("k");
  k.set_data_type(7);
  k.add_dims(1);
  k.add_int64_data(2);
  model.mutable_graph()->mutable_node(0)->set_output(0, "");
  const Outcome outcome = import_proto(model);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(output_types(outcome.graph()), "int64[2]");
  const ir::Node& node = outcome.graph().node(outcome.graph().nodes()[0]);
  ASSERT_EQ(node.results.size(), 2u);
  EXPECT_FALSE(node.results[0].valid());
}

TEST(FrontendImport, UnsupportedKindsOfInputsAreNamed) {
  onnx::ModelProto model = proto_of(model_text("(float[2] a, float[2] s) => (float[2] y)", "y = Relu(a)"));
  onnx::TypeProto& type = *model.mutable_graph()->mutable_input(1)->mutable_type();
  type.mutable_tensor_type()->set_elem_type(8);
  EXPECT_THAT(import_proto(model).errors, HasSubstr("input 's' has elements of string"));
  *type.mutable_map_type()->mutable_value_type() = model.graph().input(0).type();
  EXPECT_THAT(import_proto(model).errors, HasSubstr("input 's' is no tensor"));
}

}  // namespace
}  // namespace gcompile
