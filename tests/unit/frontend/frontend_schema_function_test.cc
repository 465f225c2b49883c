// Operators without a record, by the function that ONNX's schema has for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend::ImportOptions;
using frontend_test::import_text;
using frontend_test::Outcome;
using frontend_test::output_types;
using ::testing::HasSubstr;
using ::testing::Not;

std::string at_opset(int opset, const std::string& signature, const std::string& body) {
  return fmt::format("<ir_version: 8, opset_import: [\"\" : {}]>\nagraph {}\n{{\n{}\n}}\n", opset, signature,
                     body);
}

constexpr const char* kScores = "(float[2, 3] x, int64[2] t) => (float y)";

double loss_of(const Outcome& outcome, const std::vector<std::int64_t>& classes) {
  const std::vector<float> scores = {1, 2, 3, 4, 5, 6};
  const ir::Tensor x = ir::Tensor::of_floats(scores, {2, 3});
  return ir::evaluate_graph(outcome.graph(), {x, ir::Tensor::of_ints(classes, {2})}).at(0).real_at(0);
}

TEST(SchemaFunction, IsPutInPlaceOfTheNode) {
  for (const int opset : {12, 13, 22}) {
    const Outcome outcome = import_text(at_opset(opset, kScores, "y = NegativeLogLikelihoodLoss(x, t)"));
    ASSERT_TRUE(outcome.model) << outcome.errors;
    EXPECT_EQ(output_types(outcome.graph()), "float32[]");
    EXPECT_EQ(loss_of(outcome, {0, 1}), -3) << opset;
  }
}

TEST(SchemaFunction, BodyFollowsAttributesAndOperands) {
  const Outcome sum = import_text(
      at_opset(13, kScores, "y = NegativeLogLikelihoodLoss<ignore_index = -9, reduction = \"sum\">(x, t)"));
  ASSERT_TRUE(sum.model) << sum.errors;
  EXPECT_EQ(loss_of(sum, {2, -9}), -3);
  const Outcome weighed = import_text(
      at_opset(13, "(float[2, 3] x, int64[2] t) => (float y)",
               "w = Constant<value_floats = [1.0, 3.0, 1.0]>()\ny = NegativeLogLikelihoodLoss(x, t, w)"));
  ASSERT_TRUE(weighed.model) << weighed.errors;
  EXPECT_EQ(loss_of(weighed, {0, 1}), -4);
  const Outcome both = import_text(at_opset(13, "(double[2, 3] x, int32[2] t) => (double y, double p)",
                                            "y, p = SoftmaxCrossEntropyLoss(x, t)"));
  ASSERT_TRUE(both.model) << both.errors;
  EXPECT_EQ(output_types(both.graph()), "float64[] float64[2, 3]");
}

TEST(SchemaFunction, SizesMayBeOpen) {
  ImportOptions options;
  options.bindings.bounds.push_back({{"n"}, {1, 8}, 1, 8});
  const Outcome outcome =
      import_text(at_opset(13, "(float[n, 3, 5] x, int64[n, 5] t) => (float y)",
                           "y = SoftmaxCrossEntropyLoss<reduction = \"none\", ignore_index = 1>(x, t)"),
                  options);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(outcome.graph().value(outcome.graph().outputs()[0]).type.rank(), 2);
}

TEST(SchemaFunction, TakesAttributesOfTheFunctionAround) {
  const Outcome outcome = import_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>\n"
      "agraph (float[2, 3] x, int64[2] t) => (float y) { y = local.f<how = \"sum\">(x, t) }\n"
      "<opset_import: [\"\" : 17], domain: \"local\">\n"
      "f <how> (x, t) => (y) { y = NegativeLogLikelihoodLoss<reduction : string = @how>(x, t) }");
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(loss_of(outcome, {0, 1}), -6);
}

TEST(SchemaFunction, MistakesNameTheNode) {
  const auto errors = [](const std::string& node) { return import_text(at_opset(13, kScores, node)).errors; };
  EXPECT_THAT(errors("y = NegativeLogLikelihoodLoss(x)"),
              HasSubstr("NegativeLogLikelihoodLoss making 'y': the operator has at least 2 inputs"));
  EXPECT_THAT(errors("y = NegativeLogLikelihoodLoss<reduction = \"most\">(x, t)"),
              HasSubstr("attribute 'reduction' is 'most', which is not known"));
  EXPECT_THAT(errors("y = NegativeLogLikelihoodLoss<reductions = \"sum\">(x, t)"),
              HasSubstr("attribute 'reductions' is not known for this function"));
  EXPECT_THAT(errors("y = NegativeLogLikelihoodLoss(t, t)"), Not(HasSubstr("is not supported")));
  // What the schema knows of shapes holds, though the body would compute something.
  const std::string shapes = errors("z = Concat<axis = 0>(t, t)\ny = NegativeLogLikelihoodLoss(x, z)");
  EXPECT_THAT(shapes, HasSubstr("E0120"));
  EXPECT_THAT(shapes, HasSubstr("Input and target dimension value mismatch."));
}

/// A function of the model, for no schema's body has an operator that is missing.
TEST(SchemaFunction, OperatorsOfABodyAreNamedWithTheirPlace) {
  const std::string errors =
      import_text(
          "<ir_version: 8, opset_import: [\"\" : 15, \"f\" : 1]>\n"
          "agraph (float[2] x) => (float[2] y)\n{\ny = f.Outer(x)\n}\n"
          "<domain: \"f\", opset_import: [\"\" : 15]>\nOuter (a) => (b)\n{\nb = Frobnicate(a)\n}\n")
          .errors;
  EXPECT_THAT(errors, HasSubstr("operator Frobnicate"));
  EXPECT_THAT(errors, HasSubstr("in function 'Outer' called by node making 'y'"));
}

TEST(SchemaFunction, ErrorsElsewhereAreToldOnce) {
  const std::string errors =
      import_text(at_opset(13, kScores, "z = Frobnicate(x)\ny = NegativeLogLikelihoodLoss(z, t)")).errors;
  EXPECT_THAT(errors, HasSubstr("operator Frobnicate"));
  EXPECT_THAT(errors, Not(HasSubstr("NegativeLogLikelihoodLoss")));
}

TEST(SchemaFunction, IsNotThereBeforeItsOpset) {
  EXPECT_THAT(import_text(at_opset(11, kScores, "y = NegativeLogLikelihoodLoss(x, t)")).errors,
              HasSubstr("NegativeLogLikelihoodLoss (opset 11) is not supported"));
}

}  // namespace
}  // namespace gcompile
