// The verifier finds each kind of damage, and nothing in sound graphs; the text of a graph; inlining and If.

#include "ir/graph/verify.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/forms/form.h"
#include "ir/graph/inline.h"
#include "ir/graph/print.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Graph;
using ir::Index;
using ir::LoopForm;
using ir::NodeId;
using ir::Range;
using ir::Region;
using ir::ScalarOp;
using ir::TensorType;
using ir::ValueId;
using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<std::string> texts(const std::vector<ir::Violation>& violations) {
  std::vector<std::string> out;
  for (const ir::Violation& violation : violations) out.push_back(to_string(violation));
  return out;
}

NodeId add(Graph& graph, const char* op, std::vector<ValueId> operands, std::string name = {}) {
  const NodeId id = graph.add_node(ir::operator_named(op), std::move(operands), {}, 1, std::move(name));
  complete(graph, id, 1000);
  return id;
}

ValueId result(const Graph& graph, NodeId id) { return graph.node(id).results[0]; }

/// y = Relu(x + 1), shapes [2, 3].
struct Sample {
  Graph graph;
  ValueId x, one, sum, y;
  NodeId plus, relu;
  Sample() {
    graph.name = "sample";
    x = graph.add_input("x", {ElementType::kFloat32, {2, 3}});
    one = graph.add_constant(floats({1}, {1}), "one");
    plus = add(graph, "Add", {x, one}, "plus");
    sum = result(graph, plus);
    relu = add(graph, "Relu", {sum}, "relu");
    y = result(graph, relu);
    graph.node(relu).origins = {{"Relu", "relu"}};
    graph.add_output(y, "y");
  }
};

TEST(Verify, FindsNothingInASoundGraph) { EXPECT_TRUE(ir::verify(Sample().graph).empty()); }

TEST(Verify, FindsBrokenUses) {
  Sample s;
  s.graph.value(s.sum).uses.clear();
  EXPECT_EQ(texts(ir::verify(s.graph)),
            (std::vector<std::string>{"node 1 'relu' (Relu): operand 0 does not know this use"}));
  Sample extra;
  extra.graph.value(extra.x).uses.push_back({extra.relu, 0});
  EXPECT_THAT(texts(ir::verify(extra.graph)), Contains("value %0 'x': a use of it is not mutual"));
}

TEST(Verify, FindsValuesWithoutOrigin) {
  Sample s;
  s.graph.value(s.one).constant.reset();
  EXPECT_THAT(texts(ir::verify(s.graph)),
              Contains("value %1 'one': it has no producer, is no input and no constant"));
  Sample stolen;
  stolen.graph.value(stolen.sum).producer = stolen.relu;
  EXPECT_THAT(texts(ir::verify(stolen.graph)), Contains(HasSubstr("its producer does not list it")));
}

TEST(Verify, FindsConstantsOfAnotherType) {
  Sample s;
  s.graph.value(s.one).constant = floats({1, 2}, {2});
  EXPECT_THAT(texts(ir::verify(s.graph)),
              Contains("value %1 'one': its constant is float32[2], the value float32[1]"));
}

TEST(Verify, FindsCycles) {
  Sample s;
  s.graph.set_operand(s.plus, 0, s.y);
  EXPECT_THAT(texts(ir::verify(s.graph)), Contains(HasSubstr("cycle")));
}

TEST(Verify, FindsStaleTypesAndAttributes) {
  Sample s;
  s.graph.value(s.y).type.shape = {3, 2};
  EXPECT_EQ(
      texts(ir::verify(s.graph)),
      (std::vector<std::string>{"node 1 'relu' (Relu): result 0 is stored as float32[3, 2], but inferred "
                                "as float32[2, 3]"}));
  Sample attribute;
  attribute.graph.node(attribute.relu).attributes.set("speed", std::int64_t{9});
  EXPECT_THAT(texts(ir::verify(attribute.graph)), Contains(HasSubstr("attribute 'speed' is not known")));
  Sample operands;
  operands.graph.set_operands(operands.plus, {operands.x});
  EXPECT_THAT(texts(ir::verify(operands.graph)), Contains(HasSubstr("1 inputs given, 2 expected")));
}

TEST(Verify, FindsOrdersThatAreNoPermutation) {
  Sample s;
  s.graph.value(s.sum).order = {1, 0};
  EXPECT_TRUE(ir::verify(s.graph).empty());
  s.graph.value(s.sum).order = {1, 1};
  EXPECT_THAT(texts(ir::verify(s.graph)), Contains(HasSubstr("its order is not a permutation")));
}

/// The violations of a map over [2, 3] attached to the Relu, after `damage`.
template <class Damage>
std::vector<std::string> damaged(Damage damage) {
  Sample s;
  LoopForm form = LoopForm::over({2, 3});
  form.set_root(form.dag.load(0, ElementType::kFloat32, form.identity()));
  damage(form);
  return texts(ir::verify_form(s.graph, s.relu, form));
}

TEST(VerifyForm, AcceptsWhatRecordsLowerTo) {
  Sample s;
  for (const NodeId id : s.graph.nodes()) {
    EXPECT_TRUE(ir::verify_form(s.graph, id, ir::form_of(s.graph, id)).empty());
  }
  EXPECT_TRUE(damaged([](LoopForm&) {}).empty());
}

TEST(VerifyForm, FindsLoadsThatLeaveTheirOperand) {
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.set_root(f.dag.load(0, ElementType::kFloat32, {Index::axis(0), Index::axis(1) + Index(1)}));
              }),
              Contains(HasSubstr("which is not proven to stay below 3")));
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.set_root(f.dag.load(0, ElementType::kFloat32, {Index::axis(0), Index::axis(0) - Index(1)}));
              }),
              Contains(HasSubstr("reads operand 0 at")));
  EXPECT_THAT(damaged([](LoopForm& f) { f.set_root(f.dag.load(4, ElementType::kFloat32, {})); }),
              Contains(HasSubstr("loads operand 4, which does not exist")));
  EXPECT_THAT(
      damaged([](LoopForm& f) { f.set_root(f.dag.load(0, ElementType::kFloat32, {Index::axis(0)})); }),
      Contains(HasSubstr("of rank 1, but it is float32[2, 3]")));
}

TEST(VerifyForm, ProvesIndicesWhoseBoundIsNotTight) {
  // (i mod 2) + 2 * (i / 2) is i, but its parts are bounded one by one.
  EXPECT_TRUE(damaged([](LoopForm& f) {
                const std::vector<Range> ranges = {{0, 2}, {0, 4}};
                const Index j = Index::axis(1);
                const Index same = ir::modulo(j, 2, ranges) + ir::floor_div(j, 2, ranges) * 2;
                f.set_root(f.dag.load(0, ElementType::kFloat32, {Index::axis(0), same}));
              }).empty());
}

TEST(VerifyForm, FindsRegionsThatOverlapOrMissPoints) {
  EXPECT_THAT(damaged([](LoopForm& f) { f.regions.push_back(f.regions[0]); }),
              Contains(HasSubstr("regions 0 and 1 overlap")));
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.regions[0].box[1] = {0, 2};
              }),
              Contains(HasSubstr("the regions cover 4 of 6 points")));
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.regions[0].box[1] = {0, 4};
              }),
              Contains(HasSubstr("region 0 leaves axis 1")));
}

TEST(VerifyForm, FindsStoresThatAreNoBijection) {
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.store = {Index::axis(0), Index::axis(0)};
              }),
              Contains(HasSubstr("the store writes an element twice")));
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.store = {Index::axis(1), Index::axis(0)};
              }),
              Contains(HasSubstr("the store leaves axis 0 of the result")));
  EXPECT_THAT(damaged([](LoopForm& f) { f.store = {Index::axis(0)}; }),
              Contains(HasSubstr("the store has 1 indices")));
  // Mirrored rows are a bijection.
  EXPECT_TRUE(damaged([](LoopForm& f) { f.store = {Index(1) - Index::axis(0), Index::axis(1)}; }).empty());
}

TEST(VerifyForm, FindsTypesAndAccumulatorsThatDoNotFit) {
  EXPECT_THAT(damaged([](LoopForm& f) { f.set_root(f.dag.constant(ElementType::kInt32, 1)); }),
              Contains(HasSubstr("region 0 computes int32, not the type of the result")));
  EXPECT_THAT(damaged([](LoopForm& f) { f.set_root(f.dag.accumulator(0, ElementType::kFloat32)); }),
              Contains(HasSubstr("uses accumulator 0, which it does not have")));
  EXPECT_THAT(damaged([](LoopForm& f) {
                f.parallel = 1;
                f.store = {Index::axis(0), Index(0)};
              }),
              Contains(HasSubstr("a map has reduced axes")));
}

TEST(VerifyForm, FindsBadContractionsAndLibraryCalls) {
  Sample s;
  ir::ContractForm contract;
  contract.base_operands = 5;
  EXPECT_THAT(texts(ir::verify_form(s.graph, s.relu, contract)),
              Contains(HasSubstr("names more operands than the node has")));
  EXPECT_THAT(texts(ir::verify_form(s.graph, s.relu, ir::LibraryForm{ir::ScanWork{}, 3})),
              Contains(HasSubstr("the operand to overwrite does not exist")));
  EXPECT_THAT(texts(ir::verify_form(s.graph, s.plus, ir::LibraryForm{ir::ScanWork{}, 1})),
              Contains(HasSubstr("has not the type of the result")));
  EXPECT_TRUE(ir::verify_form(s.graph, s.relu, ir::LibraryForm{ir::ScanWork{}, 0}).empty());
}

TEST(Print, SpellsNodesConstantsAndOrigins) {
  EXPECT_EQ(ir::print(Sample().graph),
            "graph sample (%0 x f32[2,3]) -> (%3 y)\n"
            "  %1 one f32[1] = constant [1]\n"
            "  %2 f32[2,3] = Add(%0, %1)\n"
            "  %3 f32[2,3] = Relu(%2)  # Relu 'relu'\n");
}

TEST(Print, QuotesAndEscapesHostileNames) {
  Graph graph;
  graph.name = "a\nb";
  graph.add_output(graph.add_input("x y", {ElementType::kInt64, {}}), "*/");
  EXPECT_EQ(ir::print(graph), "graph 'a\\x0ab' (%0 'x y' i64[]) -> (%0 '*/')\n");
}

// If --------------------------------------------------------------------------------------------------------

/// A branch of one capture f32[2] that applies `op`; an empty op returns the capture itself.
Graph branch(const std::string& op) {
  Graph graph;
  graph.name = op.empty() ? "same" : op;
  ValueId v = graph.add_input("captured", {ElementType::kFloat32, {2}});
  if (!op.empty()) v = result(graph, add(graph, op.c_str(), {v}, op));
  graph.add_output(v, "out");
  return graph;
}

struct Choice {
  Graph graph;
  NodeId node;
  explicit Choice(std::optional<bool> condition, Graph then_branch = branch("Neg"),
                  Graph else_branch = branch("")) {
    const ir::Tensor value = integers(ElementType::kBool, {condition.value_or(false) ? 1 : 0}, {});
    const ValueId c = condition ? graph.add_constant(value, "c") : graph.add_input("c", value.type());
    const ValueId x = graph.add_input("x", {ElementType::kFloat32, {2}});
    node = graph.add_node(ir::operator_named("If"), {c, x}, {}, 1, "if");
    graph.node(node).subgraphs = {std::move(then_branch), std::move(else_branch)};
    ir::infer_node(graph, node);
    graph.add_output(result(graph, node), "y");
  }
};

TEST(If, RunsTheBranchThatTheConditionChooses) {
  const Choice choice(std::nullopt);
  EXPECT_TRUE(ir::verify(choice.graph).empty());
  const ir::Tensor x = floats({1, 2}, {2});
  const auto run_with = [&](bool c) {
    return ir::evaluate_graph(choice.graph, {integers(ElementType::kBool, {c}, {}), x})[0];
  };
  EXPECT_TRUE(run_with(true).identical(floats({-1, -2}, {2})));
  EXPECT_TRUE(run_with(false).identical(x));
}

TEST(If, DissolvesWhenTheConditionIsKnown) {
  const ir::Tensor x = floats({1, 2}, {2});
  Choice negated(true);
  decompose_all(negated.graph);
  EXPECT_TRUE(ir::verify(negated.graph).empty());
  ASSERT_EQ(negated.graph.node_count(), 1u);
  EXPECT_EQ(negated.graph.node(negated.graph.nodes()[0]).name, "Neg");
  EXPECT_TRUE(ir::evaluate_graph(negated.graph, {x})[0].identical(floats({-1, -2}, {2})));
  Choice same(false);
  decompose_all(same.graph);
  EXPECT_EQ(same.graph.node_count(), 0u);
  EXPECT_EQ(same.graph.outputs()[0], same.graph.inputs()[0]);
}

TEST(If, RefusesBranchesThatDisagreeUnlessOneIsATrap) {
  Graph wide = branch("");
  wide.set_output(0, wide.add_constant(floats({1, 2, 3}, {3})));
  EXPECT_EQ(error_of([&] { Choice(std::nullopt, branch("Neg"), wide); }),
            "output 0 is float32[2] in one branch and float32[3] in the other");
  EXPECT_EQ(error_of([&] { Choice(true, branch("Neg"), wide); }), "no error");
  Graph trap;
  trap.add_input("captured", {ElementType::kFloat32, {2}});
  trap.trap = "shapes do not fit";
  const Choice choice(std::nullopt, trap, wide);
  EXPECT_EQ(choice.graph.value(choice.graph.outputs()[0]).type, (TensorType{ElementType::kFloat32, {3}}));
  EXPECT_EQ(error_of([&] { Choice(std::nullopt, trap, trap); }),
            "neither branch can run: shapes do not fit; shapes do not fit");
  EXPECT_EQ(error_of([&] { Choice(true, trap, wide); }),
            "the condition is known and selects a branch that cannot run: shapes do not fit");
}

TEST(Verify, LooksIntoBranches) {
  Choice choice(std::nullopt);
  Graph& inner = choice.graph.node(choice.node).subgraphs[0];
  inner.value(inner.inputs()[0]).uses.clear();
  EXPECT_EQ(texts(ir::verify(choice.graph)),
            (std::vector<std::string>{
                "node 0 'if' (If), branch 0: node 0 'Neg' (Neg): operand 0 does not know this use"}));
}

TEST(Inline, CopiesConstantsNamesOriginsAndNestedBranches) {
  Choice inner(std::nullopt);
  inner.graph.node(inner.node).origins = {{"If", "if"}};
  Graph outer;
  const ValueId c = outer.add_input("condition", {ElementType::kBool, {}});
  const ValueId x = outer.add_input("x", {ElementType::kFloat32, {2}});
  const ValueId arguments[] = {c, x};
  const std::vector<ValueId> values = ir::inline_graph(outer, inner.graph, arguments);
  outer.add_output(values[0], "y");
  ASSERT_EQ(outer.node_count(), 1u);
  const ir::Node& copy = outer.node(outer.nodes()[0]);
  EXPECT_EQ(copy.origins, (std::vector<ir::Origin>{{"If", "if"}}));
  EXPECT_EQ(copy.subgraphs.size(), 2u);
  EXPECT_TRUE(ir::verify(outer).empty());
  const ValueId swapped[] = {x, c};
  EXPECT_THROW(ir::inline_graph(outer, inner.graph, swapped), CompileError);
}

}  // namespace
}  // namespace gcompile::testing
