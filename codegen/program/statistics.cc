#include "codegen/program/statistics.h"

#include "codegen/memory/bare_tensors.h"

namespace gcompile {
namespace {

std::int64_t parameter_bytes(const ir::Graph& graph) {
  std::int64_t bytes = 0;
  for (const ir::ValueId id : graph.values()) {
    const ir::Value& value = graph.value(id);
    if (value.constant && !value.producer.valid()) bytes += value.type.bytes();
  }
  return bytes;
}

}  // namespace

void add_graph_statistics(Statistics& statistics, const ir::Graph& imported, const ir::Graph& optimised) {
  statistics.nodes_imported = static_cast<std::int64_t>(imported.node_count());
  statistics.nodes_optimised = static_cast<std::int64_t>(optimised.node_count());
  statistics.bare_first_fit = bare_tensors_first_fit(imported);
  statistics.parameter_bytes = parameter_bytes(optimised);
}

}  // namespace gcompile
