// What ai.onnx.ml operators refuse, and what has no tensor in ONNX Runtime: strings and maps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/frontend/frontend_fixture.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

OneNode node_of(const std::string& op, const Tensor& x, int results = 1) {
  return {.op = op, .operands = {&x}, .results = results, .domain = "ai.onnx.ml"};
}

std::string refusal(const OneNode& node) {
  return error_of([&] { run(node); });
}

const Tensor kRow = floats({0.5f, 2}, {1, 2});

/// One node, which asks feature 0, and two leaves.
OneNode stump() {
  OneNode node = node_of("TreeEnsembleRegressor", kRow);
  node.attributes.set("nodes_treeids", Ints{0, 0, 0});
  node.attributes.set("nodes_nodeids", Ints{0, 1, 2});
  node.attributes.set("nodes_featureids", Ints{0, 0, 0});
  node.attributes.set("nodes_values", Floats{1, 0, 0});
  node.attributes.set("nodes_modes", Strings{"BRANCH_LEQ", "LEAF", "LEAF"});
  node.attributes.set("nodes_truenodeids", Ints{1, 0, 0});
  node.attributes.set("nodes_falsenodeids", Ints{2, 0, 0});
  node.attributes.set("target_treeids", Ints{0, 0});
  node.attributes.set("target_nodeids", Ints{1, 2});
  node.attributes.set("target_ids", Ints{0, 0});
  node.attributes.set("target_weights", Floats{3, 4});
  node.attributes.set("n_targets", std::int64_t{1});
  return node;
}

TEST(TreeEnsemble, GoesToTheLeaf) { EXPECT_EQ(reals(run(stump())[0]), (std::vector<double>{3})); }

TEST(TreeEnsemble, RefusesNodesThatDoNotFit) {
  OneNode node = stump();
  node.attributes.set("nodes_truenodeids", Ints{0, 0, 0});
  EXPECT_EQ(refusal(node), "the nodes of a tree form a cycle");
  node.attributes.set("nodes_truenodeids", Ints{7, 0, 0});
  EXPECT_EQ(refusal(node), "tree 0 has no node 7");
  node = stump();
  node.attributes.set("nodes_featureids", Ints{2, 0, 0});
  EXPECT_EQ(refusal(node), "a node asks for feature 2, of 2");
  node = stump();
  node.attributes.set("nodes_nodeids", Ints{0, 1, 1});
  EXPECT_EQ(refusal(node), "tree 0 has two nodes 1");
  node = stump();
  node.attributes.set("nodes_treeids", Ints{0, 1, 0});
  EXPECT_EQ(refusal(node), "the nodes of tree 0 do not lie together");
  node = stump();
  node.attributes.set("nodes_values", Floats{1, 0});
  EXPECT_EQ(refusal(node), "attribute 'nodes_values' has 2 entries instead of 3");
  node = stump();
  node.attributes.set("nodes_modes", Strings{"BRANCH_MAYBE", "LEAF", "LEAF"});
  EXPECT_THAT(refusal(node), HasSubstr("has the entry 'BRANCH_MAYBE'"));
}

TEST(TreeEnsemble, RefusesWeightsThatDoNotFit) {
  OneNode node = stump();
  node.attributes.set("target_ids", Ints{0, 1});
  EXPECT_EQ(refusal(node), "a leaf has a weight of target 1, of 1");
  node.attributes.set("target_ids", Ints{0, 0});
  node.attributes.set("target_nodeids", Ints{1, 1});
  EXPECT_EQ(refusal(node), "a leaf has two weights of one of 1 targets");
  node = stump();
  node.attributes.set("base_values", Floats{1, 2});
  EXPECT_EQ(refusal(node), "attribute 'base_values' has 2 entries for 1 targets");
}

/// A chain of nodes each of which has the next one as both children: as many ways as 2 to the number of nodes.
TEST(TreeEnsemble, SharedNodesAreCountedOnce) {
  constexpr std::int64_t kNodes = 60;
  OneNode node = stump();
  Ints ids, next;
  Strings modes;
  for (std::int64_t i = 0; i <= kNodes; ++i) {
    ids.push_back(i);
    next.push_back(i < kNodes ? i + 1 : 0);
    modes.emplace_back(i < kNodes ? "BRANCH_LEQ" : "LEAF");
  }
  const auto count = static_cast<std::size_t>(kNodes) + 1;
  node.attributes.set("nodes_treeids", Ints(count, 0));
  node.attributes.set("nodes_nodeids", ids);
  node.attributes.set("nodes_featureids", Ints(count, 0));
  node.attributes.set("nodes_values", Floats(count, 0));
  node.attributes.set("nodes_modes", modes);
  node.attributes.set("nodes_truenodeids", next);
  node.attributes.set("nodes_falsenodeids", next);
  node.attributes.set("target_treeids", Ints{0});
  node.attributes.set("target_nodeids", Ints{kNodes});
  node.attributes.set("target_ids", Ints{0});
  node.attributes.set("target_weights", Floats{5});
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{5}));
}

TEST(TreeEnsembleClassifier, RefusesWhatRuntimesReadDifferently) {
  OneNode node = stump();
  node.op = "TreeEnsembleClassifier";
  node.results = 2;
  for (const char* name : {"treeids", "nodeids", "ids", "weights"}) {
    const std::string old = std::string("target_") + name;
    node.attributes.set(std::string("class_") + name, node.attributes.all().at(old));
    node.attributes.erase(old);
  }
  node.attributes.erase("n_targets");
  node.attributes.set("classlabels_strings", Strings{"a", "b"});
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{1}));
  node.attributes.set("post_transform", std::string("PROBIT"));
  EXPECT_THAT(refusal(node), HasSubstr("PROBIT of one score for two classes"));
  node.attributes.set("post_transform", std::string("NONE"));
  node.attributes.set("class_ids", Ints{1, 1});
  node.attributes.set("base_values", Floats{1, 2});
  EXPECT_THAT(refusal(node), HasSubstr("two base values where only the second class has weights"));
  node.attributes.erase("base_values");
  node.attributes.set("class_ids", Ints{0, 1});
  EXPECT_THAT(refusal(node), HasSubstr("some rows get none of one of them"));
}

TEST(Encoders, StringsBecomePositions) {
  const Tensor x = ints({7, 5, 6, 5}, {4});
  OneNode node = node_of("LabelEncoder", x);
  node.attributes.set("keys_int64s", Ints{5, 6});
  node.attributes.set("values_strings", Strings{"b", "a"});
  node.attributes.set("default_string", std::string("a"));
  EXPECT_EQ(run(node)[0].ints(), (Ints{1, 0, 1, 0}));
  node = node_of("CategoryMapper", x);
  node.attributes.set("cats_int64s", Ints{6, 5});
  node.attributes.set("cats_strings", Strings{"six", "five"});
  EXPECT_EQ(run(node)[0].ints(), (Ints{2, 1, 0, 1}));
  node = node_of("LabelEncoder", x);
  node.attributes.set("classes_strings", Strings{"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(run(node)[0].ints(), (Ints{6, 5, 6, 5}));
}

TEST(Encoders, TensorsOfKeysAndValues) {
  const Tensor x = integers(ElementType::kInt16, {3, 1, 9}, {3});
  OneNode node = node_of("LabelEncoder", x);
  node.attributes.set("keys_tensor", integers(ElementType::kInt16, {1, 3}, {2}));
  node.attributes.set("values_tensor", floats({0.5f, 1.5f}, {2}));
  node.attributes.set("default_tensor", floats({-1}, {1}));
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{1.5, 0.5, -1}));
}

TEST(Encoders, RefuseStringsAsKeys) {
  const Tensor x = ints({1}, {1});
  OneNode node = node_of("LabelEncoder", x);
  node.attributes.set("keys_strings", Strings{"a"});
  node.attributes.set("values_int64s", Ints{1});
  EXPECT_EQ(refusal(node), "keys that are strings are not supported");
  node.attributes.erase("keys_strings");
  node.attributes.set("keys_int64s", Ints{1, 1});
  node.attributes.set("values_int64s", Ints{1, 2});
  EXPECT_EQ(refusal(node), "keys are listed twice");
  node = node_of("OneHotEncoder", x);
  node.attributes.set("cats_strings", Strings{"a"});
  EXPECT_EQ(refusal(node), "categories that are strings are not supported");
}

TEST(ZipMap, IsTheTensor) {
  OneNode node = node_of("ZipMap", kRow);
  node.attributes.set("classlabels_strings", Strings{"a", "b"});
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{0.5, 2}));
}

std::string classifier(const std::string& outputs, const std::string& more) {
  return "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 1]>\ng (float[2,2] x) => (" + outputs +
         ") { y, z = ai.onnx.ml.LinearClassifier<coefficients = [0.5, 1.0], intercepts = [0.5], "
         "classlabels_strings = [\"no\", \"yes\"]>(x) " +
         more + " }";
}

TEST(Words, AreToldWhereTheyAreAnOutput) {
  const auto told = frontend_test::import_text(classifier("string[2] y, float[2,2] z", ""));
  EXPECT_THAT(told.warnings, HasSubstr("'y' has positions (int64) instead of strings: 0 = 'no', 1 = 'yes'"));
  EXPECT_EQ(told.graph().value(told.graph().outputs()[0]).type.element, ElementType::kInt64);
  const auto moved = frontend_test::import_text(classifier("string[2] w", "w = Identity(y)"));
  EXPECT_THAT(moved.warnings, HasSubstr("'w' has positions (int64) instead of strings"));
}

TEST(Words, AreNotComputedWith) {
  const auto compared = frontend_test::import_text(classifier("bool[2] w", "w = Equal(y, y)"));
  EXPECT_THAT(compared.errors, HasSubstr("input 0 are strings, which only move"));
  const auto read = frontend_test::import_text(classifier("float[2] w", "w = Cast<to = 1>(y)"));
  EXPECT_THAT(read.errors, HasSubstr("input 0 are strings, which only move"));
}

}  // namespace
}  // namespace gcompile::testing
