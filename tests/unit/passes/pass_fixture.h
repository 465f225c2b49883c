#pragma once
// Tests of passes and rules: a model in ONNX text, evaluated before and after on the same random inputs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "frontend/import/import.h"
#include "ir/graph/print.h"
#include "ir/graph/verify.h"
#include "passes/engine/passes.h"
#include "passes/engine/rule.h"

namespace gcompile::testing {

/// Numbers that are a function of the seed alone.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
    return state_ >> 33;
  }
  /// In [-2, 2), never 0.
  double real() { return (static_cast<double>(next() % 4096) - 2047.5) / 1024.0; }

 private:
  std::uint64_t state_;
};

/// `hostile`: zeros of both signs, infinities and NaN among the floats.
inline ir::Tensor random_tensor(const ir::TensorType& type, Numbers& numbers, bool hostile = false) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 1e-40, 1e30};
  ir::Tensor tensor(type);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (!ir::is_float(type.element)) {
      const auto value =
          static_cast<std::int64_t>(numbers.next() % 7) - (ir::is_signed(type.element) ? 3 : 0);
      tensor.set(i, ir::Scalar::of_integer(type.element, value));
    } else {
      const bool chosen = hostile && numbers.next() % 4 == 0;
      tensor.set(i, ir::Scalar::of_real(type.element, chosen ? special[numbers.next() % 7] : numbers.real()));
    }
  }
  return tensor;
}

/// The model `graph_text` ("name (inputs) => (outputs) <initialisers> { nodes }") in opset 20. Inputs whose
/// names begin with "w_" become random constants. Composite operators are taken apart.
inline ir::Graph parse(const std::string& graph_text, int opset = 20) {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph_text;
  Diagnostics diagnostics;
  ir::Graph graph = frontend::import_model_text(text, {}, diagnostics).graph;
  Numbers numbers(7);
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const ir::ValueId input = graph.inputs()[i];
    const std::string name = graph.value(input).name;
    if (name.rfind("w_", 0) != 0) continue;
    graph.replace_uses(input, graph.add_constant(random_tensor(graph.value(input).type, numbers), name));
    graph.remove_input(i);
  }
  return graph;
}

inline std::vector<ir::Tensor> random_inputs(const ir::Graph& graph, bool hostile, std::uint64_t seed = 1) {
  Numbers numbers(seed);
  std::vector<ir::Tensor> inputs;
  for (const ir::ValueId input : graph.inputs()) {
    inputs.push_back(random_tensor(graph.value(input).type, numbers, hostile));
  }
  return inputs;
}

/// Equal values (NaN equals NaN), or within `tolerance` times 1 + |expected|.
inline void expect_equal(const ir::Tensor& actual, const ir::Tensor& expected, double tolerance) {
  ASSERT_EQ(ir::to_string(actual.type()), ir::to_string(expected.type()));
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double a = actual.real_at(i), e = expected.real_at(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    ASSERT_LE(std::abs(a - e), tolerance * (1 + std::abs(e))) << "element " << i << ": " << a << " for " << e;
  }
}

/// Both graphs give the same results; exactly so, hostile inputs included, when the tolerance is 0.
inline void expect_same(const ir::Graph& before, const ir::Graph& after, double tolerance) {
  ASSERT_EQ(before.output_names(), after.output_names());
  for (const bool hostile : {false, true}) {
    if (hostile && tolerance > 0) continue;
    const std::vector<ir::Tensor> inputs = random_inputs(before, hostile);
    const std::vector<ir::Tensor> expected = ir::evaluate_graph(before, inputs);
    const std::vector<ir::Tensor> actual = ir::evaluate_graph(after, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) expect_equal(actual[i], expected[i], tolerance);
  }
  for (const ir::Violation& violation : ir::verify(after)) ADD_FAILURE() << ir::to_string(violation);
}

/// The whole pipeline. Both graphs give the same results within `tolerance`, which is not 0.
inline ir::Graph run_pipeline(ir::Graph graph, const passes::Options& options, double tolerance) {
  const ir::Graph before = graph;
  passes::optimise(graph, options);
  try {
    expect_same(before, graph, tolerance);
  } catch (const OperatorError& error) {
    ADD_FAILURE() << error.message;
  }
  return graph;
}

/// Operators of the graph in topological order: "Conv Relu".
inline std::string operators(const ir::Graph& graph) {
  std::string out;
  for (const ir::NodeId id : graph.topological_order()) {
    out += (out.empty() ? "" : " ") + std::string(graph.node(id).op->name);
  }
  return out;
}

inline const passes::Pass& pass_named(const std::string& name) {
  for (const passes::Pass& pass : passes::pipeline()) {
    if (pass.name == name) return pass;
  }
  throw std::runtime_error("no pass " + name);
}

/// Runs one pass of the pipeline.
inline passes::Report run_pass(ir::Graph& graph, const std::string& name, passes::Options options = {}) {
  passes::Pass pass = pass_named(name);
  pass.loop = 0;
  return passes::run_passes(graph, {pass}, options);
}

/// The passes before the rules: composite operators are taken apart, quantised layers become integers.
inline void prepare_integers(ir::Graph& graph, const passes::Options& options = {}) {
  std::vector<passes::Pass> table;
  for (const passes::Pass& pass : passes::pipeline()) {
    if (pass.loop == 1) table.push_back(pass);
  }
  passes::run_passes(graph, table, options);
}

/// The same, but quantised layers stay as they are.
inline void prepare(ir::Graph& graph) {
  passes::Options options;
  options.disabled = {"integers", "scales"};
  prepare_integers(graph, options);
}

/// Applies the rules of one name.
inline passes::Report apply_rule(ir::Graph& graph, const std::string& name, passes::Options options = {}) {
  std::vector<const passes::Rule*> rules;
  for (const passes::Rule* rule : passes::all_rules()) {
    if (rule->name == name) rules.push_back(rule);
  }
  if (rules.empty()) throw std::runtime_error("no rule " + name);
  options.all_remarks = true;
  passes::Report report;
  passes::PassContext context(options, report);
  context.enter("rules");
  passes::apply_rules(graph, rules, context);
  return report;
}

inline double tolerance_of(const std::string& rule) {
  for (const passes::Rule* row : passes::all_rules()) {
    if (row->name == rule) return row->tier == passes::Tier::kExact ? 0 : 2e-5;
  }
  return 0;
}

/// The rule fires `times` times, leaves `operators_after`, and keeps the results.
inline void expect_fires(const std::string& rule, const std::string& text, const std::string& operators_after,
                         int times = 1) {
  SCOPED_TRACE(rule + " on " + text);
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  passes::Report report = apply_rule(graph, rule);
  EXPECT_EQ(report.rule_counts[rule], times) << ir::print(graph);
  EXPECT_EQ(operators(graph), operators_after);
  expect_same(before, graph, tolerance_of(rule));
}

/// The rule's guard refuses with a reason that contains `reason`; "" when the pattern must not match at all.
inline void expect_refuses(const std::string& rule, const std::string& text, const std::string& reason) {
  SCOPED_TRACE(rule + " on " + text);
  ir::Graph graph = parse(text);
  prepare(graph);
  const std::string before = ir::print(graph);
  const passes::Report report = apply_rule(graph, rule);
  EXPECT_EQ(ir::print(graph), before);
  EXPECT_TRUE(report.rule_counts.empty());
  if (reason.empty()) {
    EXPECT_TRUE(report.remarks.empty()) << report.remarks[0].text;
    return;
  }
  ASSERT_FALSE(report.remarks.empty()) << "the pattern does not match";
  EXPECT_TRUE(report.remarks[0].refused);
  EXPECT_NE(report.remarks[0].text.find(reason), std::string::npos) << report.remarks[0].text;
}

}  // namespace gcompile::testing
