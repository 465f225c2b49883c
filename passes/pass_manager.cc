#include "passes/pass_manager.h"

#include <chrono>

#include "ir/diagnostics.h"

namespace gcompile::passes {
namespace {

/// The graph and every subgraph below it, innermost last.
std::vector<ir::Graph*> all_graphs(ir::Graph& graph) {
  std::vector<ir::Graph*> graphs = {&graph};
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    for (const ir::NodeId id : graphs[i]->nodes()) {
      for (ir::Graph& branch : graphs[i]->node(id).subgraphs) graphs.push_back(&branch);
    }
  }
  return graphs;
}

}  // namespace

void PassContext::remark(const std::string& subject, const std::string& text, bool refused) {
  report_.remarks.push_back({pass_, subject, text, refused});
}

Report optimise(ir::Graph& graph, const Options& options) {
  Report report;
  PassContext context(options, report);
  int position = 0;
  for (const Pass& pass : pipeline()) {
    const bool wanted = pass.level <= options.level && options.disabled.count(pass.name) == 0 &&
                        (options.pass_limit < 0 || position < options.pass_limit);
    if (!pass.required && !wanted) continue;
    ++position;
    context.enter(pass.name);
    const auto start = std::chrono::steady_clock::now();
    bool changed = false;
    // Inlining a branch deletes the graph it came from, so the list is taken anew after every change outside.
    std::vector<ir::Graph*> graphs = all_graphs(graph);
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      if (!pass.run(*graphs[i], context)) continue;
      changed = true;
      graphs = all_graphs(graph);
    }
    PassStatistics statistics{pass.name, 1, changed ? 1 : 0, 0};
    statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.passes.push_back(std::move(statistics));
    if (changed && options.dump) options.dump(pass.name, position, graph);
  }
  return report;
}

}  // namespace gcompile::passes
