#include "frontend/import/name_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>

#include "base/nearest_name.h"

namespace gcompile::frontend {
namespace {

void append_new(std::vector<std::string>& names, std::set<std::string>& seen, const std::string& name) {
  if (!name.empty() && seen.insert(name).second) names.push_back(name);
}

bool is_constant(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && (node.domain().empty() || node.domain() == "ai.onnx");
}

struct Producers {
  std::map<std::string, int> node_of;  // by name
  std::set<int> superseded;            // Constant nodes that a later one replaces
};

void report_duplicates(Severity severity, std::vector<std::string> details, const std::string& graph_name,
                       Diagnostics& diagnostics) {
  if (details.empty()) return;
  const bool error = severity == Severity::kError;
  const std::string what =
      details.size() == 1 ? "one value is" : fmt::format("{} values are", details.size());
  diagnostics.add(
      {severity, error ? "E0502" : "W0506",
       fmt::format("{} made twice{}", what, error ? "" : ", by Constant nodes; the last one counts"),
       fmt::format("graph '{}'", printable(graph_name)), std::move(details),
       error ? "every name must have one definition" : ""});
}

/// Names made twice are one error that lists them. Of Constant nodes the last one counts, as in ONNX Runtime:
/// tools that fold constants leave the old ones behind.
Producers producers_of(const NodeList& nodes, const NameTest& defined_here, const std::string& graph_name,
                       Diagnostics& diagnostics, std::set<std::string>& unusable) {
  Producers producers;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].output()) {
      if (output.empty()) continue;
      const auto [at, added] = producers.node_of.emplace(output, i);
      if (added && !defined_here(output)) continue;
      std::string detail = fmt::format(
          "'{}' by node {} ({}) and by {}", printable(output), shown_name(nodes[i]),
          printable(nodes[i].op_type()),
          added ? "an input or initializer of the graph" : "node " + shown_name(nodes[at->second]));
      const bool is_again = !added && at->second != i;  // and not twice by one node
      if (is_again && is_constant(nodes[i]) && is_constant(nodes[at->second]) && !defined_here(output)) {
        producers.superseded.insert(at->second);
        at->second = i;
        warnings.push_back(std::move(detail));
      } else {
        unusable.insert(output);
        errors.push_back(std::move(detail));
      }
    }
  }
  report_duplicates(Severity::kError, std::move(errors), graph_name, diagnostics);
  report_duplicates(Severity::kWarning, std::move(warnings), graph_name, diagnostics);
  return producers;
}

void report_unknown(const onnx::NodeProto& node, const std::string& name,
                    const std::map<std::string, int>& producers, const std::string& graph_name,
                    Diagnostics& diagnostics) {
  std::vector<std::string> names;
  // Hints cost time per name; a model with very many of them gets none.
  if (producers.size() < 10'000) {
    for (const auto& producer : producers) names.push_back(producer.first);
  }
  diagnostics.add({Severity::kError,
                   "E0501",
                   fmt::format("node {} uses '{}', which nothing makes", shown_name(node), printable(name)),
                   fmt::format("graph '{}', node {} ({})", printable(graph_name), shown_name(node),
                               printable(node.op_type())),
                   {},
                   did_you_mean(name, names)});
}

/// Follows producers among the nodes that could not be ordered until one repeats.
std::vector<int> find_cycle(const std::vector<std::vector<int>>& producers_of_node,
                            const std::vector<int>& waiting, int start) {
  std::vector<int> path;
  std::map<int, std::size_t> position;
  int node = start;
  while (position.emplace(node, path.size()).second) {
    path.push_back(node);
    for (const int producer : producers_of_node[static_cast<std::size_t>(node)]) {
      if (waiting[producer] == 0) continue;
      node = producer;
      break;
    }
  }
  return {path.begin() + static_cast<std::ptrdiff_t>(position.at(node)), path.end()};
}

}  // namespace

std::string shown_name(const onnx::NodeProto& node) {
  if (!node.name().empty()) return fmt::format("'{}'", printable(node.name()));
  for (const std::string& output : node.output()) {
    if (!output.empty()) return fmt::format("making '{}'", printable(output));
  }
  return "without name";
}

std::string name_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return {};
}

std::vector<std::string> free_names(const onnx::GraphProto& graph) {
  std::set<std::string> defined;
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) defined.insert(tensor.values().name());
  for (const auto& node : graph.node()) defined.insert(node.output().begin(), node.output().end());
  std::vector<std::string> names;
  std::set<std::string> seen = std::move(defined);
  for (const auto& node : graph.node()) {
    for (const std::string& name : used_names(node)) append_new(names, seen, name);
  }
  for (const auto& output : graph.output()) append_new(names, seen, output.name());
  return names;
}

std::vector<std::string> used_names(const onnx::NodeProto& node) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string& input : node.input()) append_new(names, seen, input);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) {
      for (const std::string& name : free_names(attribute.g())) append_new(names, seen, name);
    }
    for (const auto& graph : attribute.graphs()) {
      for (const std::string& name : free_names(graph)) append_new(names, seen, name);
    }
  }
  return names;
}

std::vector<int> order_nodes(const NodeList& nodes, const NameTest& known, const NameTest& defined_here,
                             const std::string& graph_name, Diagnostics& diagnostics,
                             std::set<std::string>& unusable) {
  const Producers found = producers_of(nodes, defined_here, graph_name, diagnostics, unusable);
  const std::map<std::string, int>& producers = found.node_of;
  const auto count = static_cast<std::size_t>(nodes.size());
  std::vector<std::vector<int>> users(count), inputs(count);
  std::vector<int> waiting(count, 0);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (found.superseded.count(i) > 0) continue;
    for (const std::string& name : used_names(nodes[i])) {
      if (const auto at = producers.find(name); at != producers.end()) {
        users[static_cast<std::size_t>(at->second)].push_back(i);
        inputs[i].push_back(at->second);
        ++waiting[i];
      } else if (!known(name) && unusable.insert(name).second) {
        report_unknown(nodes[i], name, producers, graph_name, diagnostics);
      }
    }
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const int user : users[static_cast<std::size_t>(node)]) {
      if (--waiting[static_cast<std::size_t>(user)] == 0) ready.push(user);
    }
  }
  if (order.size() + found.superseded.size() == count) return order;

  const auto start = std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; });
  Diagnostic cycle;
  cycle.code = "E0503";
  cycle.message = "the nodes of a cycle use each other's results";
  cycle.location = fmt::format("graph '{}'", printable(graph_name));
  for (const int i : find_cycle(inputs, waiting, static_cast<int>(start - waiting.begin()))) {
    if (cycle.details.size() == 20) {
      cycle.details.push_back("...");
      break;
    }
    cycle.details.push_back(fmt::format("node {} ({})", shown_name(nodes[i]), printable(nodes[i].op_type())));
  }
  diagnostics.add(std::move(cycle));
  return order;
}

}  // namespace gcompile::frontend
