#include "driver/commands/state_patterns.h"

#include <gtest/gtest.h>

#include "base/diagnostics.h"

namespace gcompile {
namespace {

using Pairs = std::vector<StatePair>;
using Names = std::vector<std::string>;

frontend::ModelPorts ports_of(const Names& inputs, const Names& outputs) {
  frontend::ModelPorts ports;
  for (const std::string& name : inputs) ports.inputs.push_back({name});
  for (const std::string& name : outputs) ports.outputs.push_back({name});
  return ports;
}

std::string refusal_of(const Pairs& pairs, const frontend::ModelPorts& ports) {
  try {
    without_patterns(pairs, ports);
  } catch (const CompileError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(StatePatterns, AStarStandsForTheSameOnBothSides) {
  const auto ports = ports_of({"ids", "past.0.key", "past.0.value", "past.1.key", "h"},
                              {"logits", "present.0.value", "present.0.key", "present.1.key", "h_out"});
  EXPECT_EQ(without_patterns({{"h", "h_out"}, {"past.*", "present.*"}}, ports),
            (Pairs{{"h", "h_out"},
                   {"past.0.key", "present.0.key"},
                   {"past.0.value", "present.0.value"},
                   {"past.1.key", "present.1.key"}}));
  EXPECT_EQ(without_patterns({{"past.*.key", "present.*.key"}}, ports).size(), 2u);
  EXPECT_EQ(without_patterns({{"*", "*_out"}}, ports_of({"a", "b"}, {"b_out", "a_out"})),
            (Pairs{{"a", "a_out"}, {"b", "b_out"}}));
  // The star may stand for nothing.
  EXPECT_EQ(without_patterns({{"h*", "g*"}}, ports_of({"h", "h2"}, {"g2", "g"})),
            (Pairs{{"h", "g"}, {"h2", "g2"}}));
}

TEST(StatePatterns, ANameThatTheModelHasIsNoPattern) {
  const auto ports = ports_of({"a*", "ab"}, {"b*", "bb"});
  EXPECT_EQ(without_patterns({{"a*", "b*"}}, ports), (Pairs{{"a*", "b*"}}));
  // Names without a star are not looked up here.
  EXPECT_EQ(without_patterns({{"x", "y"}}, ports), (Pairs{{"x", "y"}}));
}

TEST(StatePatterns, WhatDoesNotFitIsRefused) {
  const auto ports = ports_of({"x", "past_0", "past_1"}, {"y", "present_0"});
  EXPECT_EQ(refusal_of({{"past_*", "present_*"}}, ports),
            "--state past_*=present_*: the input 'past_1' fits, but there is no output 'present_1'");
  EXPECT_EQ(refusal_of({{"cache_*", "present_*"}}, ports),
            "--state cache_*=present_*: no input fits 'cache_*'");
  EXPECT_EQ(refusal_of({{"past_*", "present_0"}}, ports),
            "--state past_*=present_0: a pattern has one star on either side");
  EXPECT_EQ(refusal_of({{"p*_*", "present_*"}}, ports),
            "--state p*_*=present_*: a pattern has one star on either side");
  EXPECT_EQ(refusal_of({{"past_0", "present_0"}, {"past_*", "present_*"}}, ports),
            "--state past_*=present_*: the input 'past_0' has a pair already");
  EXPECT_EQ(refusal_of({{"x", "present_0"}, {"past_*", "present_*"}}, ports),
            "--state past_*=present_*: the output 'present_0' has a pair already");
}

/// A graph whose inputs and outputs have these names, all of one type.
ir::Graph graph_of(const Names& inputs, const Names& outputs) {
  ir::Graph graph;
  for (const std::string& name : inputs) graph.add_input(name, {ir::ElementType::kFloat32, {2, 4}});
  for (std::size_t i = 0; i < outputs.size(); ++i) graph.add_output(graph.inputs().front(), outputs[i]);
  return graph;
}

TEST(StatePatterns, NamesTellWhatIsLikelyAState) {
  EXPECT_EQ(likely_states(graph_of({"x", "h0", "c0"}, {"y", "hn", "cn"})), (Pairs{{"*0", "*n"}}));
  EXPECT_EQ(likely_states(graph_of({"input", "sr", "state"}, {"output", "stateN"})),
            (Pairs{{"state", "stateN"}}));
  EXPECT_EQ(likely_states(graph_of({"ids", "past_key_values.0.key", "past_key_values.0.value"},
                                   {"logits", "present.0.key", "present.0.value"})),
            (Pairs{{"past_key_values*", "present*"}}));
  EXPECT_EQ(likely_states(graph_of({"x", "h_in", "c_in"}, {"y", "h_out", "c_out"})),
            (Pairs{{"*_in", "*_out"}}));
  // A pattern that would take in another input is not proposed.
  EXPECT_EQ(
      likely_states(graph_of({"x", "past_length", "past_0", "past_1"}, {"y", "present_0", "present_1"})),
      (Pairs{{"past_0", "present_0"}, {"past_1", "present_1"}}));
  EXPECT_EQ(likely_states(graph_of({"x", "mask"}, {"y", "scores"})), Pairs{});
  EXPECT_EQ(likely_states(graph_of({"input"}, {"output"})), Pairs{});
}

}  // namespace
}  // namespace gcompile
