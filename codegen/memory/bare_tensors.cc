#include "codegen/memory/bare_tensors.h"

#include <map>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile {
namespace {

/// Adds the tensors of a graph and, at the step of their If, of its branches.
void collect_bare_tensors(const ir::Graph& graph, std::int64_t& step, std::vector<Buffer>& buffers) {
  std::map<ir::ValueId, std::size_t> buffer_of;
  for (const ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    const std::int64_t begin = step;
    for (const ir::Graph& branch : node.subgraphs) collect_bare_tensors(branch, step, buffers);
    for (const ir::ValueId operand : node.operands) {
      const auto found = buffer_of.find(operand);
      if (found != buffer_of.end()) buffers[found->second].end_step = step + 1;
    }
    for (const ir::ValueId result : node.results) {
      if (!result.valid() || graph.value(result).constant || graph.is_output(result)) continue;
      Buffer buffer;
      buffer.name = graph.value(result).name;
      buffer.size = ir::highest(graph.value(result).type.bytes());
      buffer.begin_step = begin;
      buffer.end_step = step + 1;
      buffer_of[result] = buffers.size();
      buffers.push_back(std::move(buffer));
    }
    ++step;
  }
}

}  // namespace

std::int64_t bare_tensors_first_fit(const ir::Graph& graph) {
  std::vector<Buffer> buffers;
  std::int64_t step = 0;
  collect_bare_tensors(graph, step, buffers);
  return first_fit_reference(buffers);
}

}  // namespace gcompile
