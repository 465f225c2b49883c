#include "codegen/program/statistics.h"

#include "codegen/calls/cuda_time.h"
#include "codegen/memory/bare_tensors.h"
#include "ir/graph/operator.h"

namespace gcompile {

std::vector<std::pair<std::string, double>> terms_of(const gcrt::KernelTime& time) {
  std::vector<std::pair<std::string, double>> terms = {
      {"launch", time.launch}, {"fill", time.fill},       {"memory", time.memory}, {"cache", time.cache},
      {"math", time.math},     {"latency", time.latency}, {"join", time.join}};
  std::erase_if(terms, [](const auto& term) { return term.second <= 0; });
  return terms;
}
namespace {

std::int64_t parameter_bytes(const ir::Graph& graph) {
  std::int64_t bytes = 0;
  for (const ir::ValueId id : graph.values()) {
    const ir::Value& value = graph.value(id);
    if (value.constant && !value.producer.valid()) bytes += value.type.bytes();
  }
  return bytes;
}

/// Branches of an If behind it.
void add_nodes(std::vector<ModelNode>& nodes, const ir::Graph& graph) {
  for (const ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    ModelNode row{node.name, std::string(node.op->name), 0, node.op->traits.keeps_elements};
    for (const ir::ValueId result : node.results) {
      if (!result.valid()) continue;
      row.bytes += ir::highest(graph.value(result).type.bytes());
    }
    nodes.push_back(std::move(row));
    for (const ir::Graph& branch : node.subgraphs) add_nodes(nodes, branch);
  }
}

}  // namespace

std::int64_t weights_file_bytes(const Program& program) {
  if (program.weights_bytes == 0) return 0;
  return program.weights_bytes + static_cast<std::int64_t>(kWeightsHeaderBytes);
}

std::int64_t predicted_picoseconds(const Schedule& schedule, std::size_t architecture) {
  std::int64_t picoseconds = 0;
  for (const Layer& layer : schedule.layers)
    picoseconds += picoseconds_of(layer.executions.at(architecture).time);
  return picoseconds;
}

void add_graph_statistics(Schedule& schedule, const ir::Graph& imported, const ir::Graph& optimised) {
  Statistics& statistics = schedule.statistics;
  add_nodes(schedule.nodes, imported);
  statistics.nodes_imported = static_cast<std::int64_t>(imported.node_count());
  statistics.nodes_optimised = static_cast<std::int64_t>(optimised.node_count());
  statistics.bare_first_fit = bare_tensors_first_fit(imported);
  statistics.parameter_bytes = parameter_bytes(optimised);
}

}  // namespace gcompile
