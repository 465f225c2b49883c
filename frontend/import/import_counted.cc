// Results of which only data knows how many elements there are (ir/ops/counted.h): which axes a run fills in part is
// followed from node to node, up to outputs, which get another output beside them that says how far.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/import/importer.h"

namespace gcompile::frontend {

bool Importer::count_by_data(ir::NodeId id, Scope& scope) {
  ir::Graph& graph = *scope.graph;
  const std::optional<ir::CountedResults> results = ir::count_results(graph, id, counted_[&graph]);
  if (!results) return false;
  const ir::Node& node = graph.node(id);
  for (std::size_t i = 0; i < node.results.size() && i < results->size(); ++i) {
    const ir::CountedResult& result = (*results)[i];
    if (!node.results[i].valid()) continue;
    standing_for_[{&graph, node.results[i]}] = result.value;
    graph.value(result.value).name = graph.value(node.results[i]).name;
    note_counts(result, graph);
  }
  return true;
}

void Importer::note_counts(const ir::CountedResult& result, const ir::Graph& graph) {
  ir::CountedFacts& facts = counted_[&graph];
  if (result.counted)
    facts.axes[result.value] = {result.counted->axis, facts.known_count(graph, result.counted->count)};
  if (result.sizes.empty()) return;
  ir::CountedSizes& sizes = facts.sizes[result.value] = result.sizes;
  for (ir::CountedSize& size : sizes) {
    if (size.count.valid()) size.count = facts.known_count(graph, size.count);
  }
}

void Importer::follow_counts(ir::NodeId id, Scope& scope) {
  const ir::CountedFacts& facts = counted_[scope.graph];
  if (facts.axes.empty()) return;
  for (const ir::CountedResult& result : ir::follow_counts(*scope.graph, id, facts))
    note_counts(result, *scope.graph);
}

bool Importer::is_replaced(ir::NodeId id, const Scope& scope) const {
  for (const ir::ValueId result : scope.graph->node(id).results) {
    if (result.valid() && standing_for(scope, result) != result) return true;
  }
  return false;
}

ir::ValueId Importer::standing_for(const Scope& scope, ir::ValueId result) const {
  const auto at = standing_for_.find({scope.graph, result});
  return at == standing_for_.end() ? result : at->second;
}

const ir::CountedAxis* Importer::counted_axis(const ir::Graph& graph, ir::ValueId value) const {
  const auto of_graph = counted_.find(&graph);
  if (of_graph == counted_.end()) return nullptr;
  const auto at = of_graph->second.axes.find(value);
  return at == of_graph->second.axes.end() ? nullptr : &at->second;
}

void Importer::enter_branch(const ir::Graph& branch) {
  counted_.erase(&branch);
  const auto is_of = [&](const auto& entry) { return entry.first.first == &branch; };
  std::erase_if(standing_for_, is_of);
  std::erase_if(words_, is_of);
}

void Importer::leave_branch(const ir::Graph& branch) {
  for (const ir::ValueId output : branch.outputs()) {
    if (!counted_axis(branch, output)) continue;
    error(
        "E0201",
        fmt::format("an output of the branch '{}' has as many elements as data says", printable(branch.name)),
        {}, "choose them outside of the If, or make its condition known by --set");
  }
}

void Importer::add_counts(Scope& scope, std::set<std::string>& taken) {
  ir::Graph& graph = *scope.graph;
  std::map<ir::ValueId, std::string> names;              // of counts
  std::map<std::string, std::vector<std::string>> told;  // of each, what it counts
  const std::vector<ir::ValueId> outputs = graph.outputs();
  const std::vector<std::string> output_names = graph.output_names();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ir::CountedAxis* const axis = counted_axis(graph, outputs[i]);
    if (!axis) continue;
    const auto feeds = [&](const auto& state) { return state.second == output_names[i]; };
    if (std::any_of(options_.states.begin(), options_.states.end(), feeds)) {
      error("E0201",
            fmt::format("only data knows the size of the output '{}', which --state keeps for the next run",
                        printable(output_names[i])),
            {}, "leave it out of --state");
      continue;
    }
    const auto [at, is_new] = names.emplace(axis->count, output_names[i] + "_count");
    if (is_new) {
      while (!taken.insert(at->second).second) at->second += "_";
      graph.add_output(axis->count, at->second);
    }
    counted_outputs_.push_back({output_names[i], axis->axis, at->second});
    const ir::Dim room = graph.value(outputs[i]).type.shape[static_cast<std::size_t>(axis->axis)];
    told[at->second].push_back(fmt::format("axis {} of '{}', which has room for {}", axis->axis,
                                           printable(output_names[i]), ir::to_string(room)));
  }
  if (is_trial_) return;
  for (const auto& [count, axes] : told) {
    warning("W0208", fmt::format("only data knows the size of {}: the output '{}' says how many there are",
                                 fmt::join(axes, ", and of "), printable(count)));
  }
}

}  // namespace gcompile::frontend
