#include "passes/engine/pass_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/graph/verify.h"

namespace gcompile::passes {
namespace {

/// Rounds of a loop of passes. Each round of the required ones takes apart one level of nested Ifs.
constexpr int kRoundLimit = 100;

/// The graphs that the nodes of a graph hold.
void add_subgraphs(std::vector<ir::Graph*>& graphs, ir::Graph& of) {
  for (const ir::NodeId id : of.nodes()) {
    for (ir::Graph& branch : of.node(id).subgraphs) graphs.push_back(&branch);
  }
}

/// A bug of ours: the graph was sound before the pass.
void verify_after(const std::string& pass, const ir::Graph& graph) {
  const std::vector<ir::Violation> violations = ir::verify(graph);
  if (violations.empty()) return;
  std::string text = fmt::format("internal compiler error: pass '{}' broke the graph", pass);
  for (const ir::Violation& violation : violations) text += "\n  " + ir::to_string(violation);
  throw CompileError(ExitCode::kInternal, text);
}

class Runner {
 public:
  Runner(ir::Graph& graph, const Options& options) : graph_(graph), options_(options) { context_.see(graph); }

  /// Runs passes [begin, end) of a loop, or the one pass that stands alone.
  void run(const Pass* begin, const Pass* end) {
    for (int round = 0; round < kRoundLimit; ++round) {
      bool changed = false;
      for (const Pass* pass = begin; pass != end; ++pass) changed |= run(*pass);
      if (!changed || begin->loop == 0) return;
    }
  }
  Report take_report() { return std::move(report_); }

 private:
  bool run(const Pass& pass) {
    const bool wanted = pass.level <= options_.level && options_.disabled.count(pass.name) == 0 &&
                        (options_.pass_limit < 0 || position_ < options_.pass_limit);
    if (!pass.required && !wanted) return false;
    ++position_;
    context_.enter(pass.name);
    const auto start = std::chrono::steady_clock::now();
    bool changed = false;
    // A pass changes its graph and what lies in it alone, but may delete or move all of that (by inlining a
    // branch): subgraphs are looked for when the pass has gone over the graph that holds them.
    std::vector<ir::Graph*> graphs = {&graph_};
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      poll_interrupt();
      changed |= run(pass, *graphs[i]);
      add_subgraphs(graphs, *graphs[i]);
    }
    PassStatistics& statistics = statistics_of(pass.name);
    ++statistics.runs;
    statistics.changes += changed ? 1 : 0;
    statistics.nodes = graph_.node_count();
    statistics.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (changed) {
      verify_after(pass.name, graph_);
      if (options_.dump) options_.dump(pass.name, position_, graph_);
    }
    return changed;
  }

  /// Where only a run knows the sizes, what a pass refuses stays as it is.
  bool run(const Pass& pass, ir::Graph& graph) {
    if (!ir::SizesScope::in_force()) return pass.run(graph, context_);
    ir::Graph before = graph;
    try {
      return pass.run(graph, context_);
    } catch (const OperatorError& error) {
      if (pass.required) {
        throw CompileError(ExitCode::kModel, fmt::format("{}: {}", pass.name, error.message));
      }
      graph = std::move(before);
      context_.refused(pass.name, error.message);
      return false;
    }
  }

  PassStatistics& statistics_of(const std::string& name) {
    const auto at = std::find_if(report_.passes.begin(), report_.passes.end(),
                                 [&](const PassStatistics& row) { return row.name == name; });
    if (at != report_.passes.end()) return *at;
    report_.passes.push_back({name});
    return report_.passes.back();
  }

  ir::Graph& graph_;
  const Options& options_;
  Report report_;
  PassContext context_{options_, report_};
  int position_ = 0;
};

}  // namespace

std::vector<ir::Graph*> PassContext::graphs() const {
  std::vector<ir::Graph*> graphs = {model_};
  for (std::size_t i = 0; i < graphs.size(); ++i) add_subgraphs(graphs, *graphs[i]);
  return graphs;
}

void PassContext::remark(const std::string& subject, const std::string& text, bool refused) {
  if (refused && !refusals_.insert({subject, text}).second) return;
  report_.remarks.push_back({pass_, subject, text, refused});
}

Report run_passes(ir::Graph& graph, const std::vector<Pass>& passes, const Options& options) {
  Runner runner(graph, options);
  const Pass* const last = passes.data() + passes.size();
  for (const Pass* pass = passes.data(); pass != last;) {
    const Pass* end = pass + 1;
    while (pass->loop != 0 && end != last && end->loop == pass->loop) ++end;
    runner.run(pass, end);
    pass = end;
  }
  return runner.take_report();
}

Report optimise(ir::Graph& graph, const Options& options) { return run_passes(graph, pipeline(), options); }

}  // namespace gcompile::passes
