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
  if (facts.axes.empty() || !scope.graph->node(id).subgraphs.empty()) return;  // branches count themselves
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

void Importer::refuse_counts(const Branch& branch) {
  for (const ir::ValueId output : branch.graph.outputs()) {
    if (branch.counts.axes.count(output) == 0) continue;
    error("E0201",
          fmt::format("an output of the body '{}' has as many elements as data says",
                      printable(branch.graph.name)),
          {}, "choose them outside of the loop");
  }
}

namespace {

/// The counts that tell of a value.
std::vector<ir::ValueId> counts_of(const ir::CountedFacts& facts, ir::ValueId value) {
  std::vector<ir::ValueId> out;
  if (const auto axis = facts.axes.find(value); axis != facts.axes.end()) out.push_back(axis->second.count);
  const auto sizes = facts.sizes.find(value);
  if (sizes == facts.sizes.end()) return out;
  for (const ir::CountedSize& size : sizes->second) {
    if (size.count.valid()) out.push_back(size.count);
  }
  return out;
}

/// How many elements a branch gives along an axis: by data, or always.
struct CountOfBranch {
  ir::ValueId count = {};
  std::int64_t always = 0;
  auto operator<=>(const CountOfBranch&) const = default;
};

CountOfBranch count_of_output(const ir::Graph& graph, const ir::CountedFacts& facts, ir::ValueId output,
                              int axis) {
  const auto counted = facts.axes.find(output);
  if (counted != facts.axes.end()) return {counted->second.count};
  const ir::Dim size = graph.value(output).type.shape[static_cast<std::size_t>(axis)];
  if (!size.is_constant())
    operator_error("one branch chooses elements by data, the other has a size that the caller chooses");
  return {{}, size.constant()};
}

/// Makes room for `room` elements along the axis of an output.
void widen_output(ir::Graph& graph, std::size_t position, int axis, ir::Dim room) {
  const ir::ValueId output = graph.outputs()[position];
  ir::TensorType rest = graph.value(output).type;
  ir::Dim& size = rest.shape[static_cast<std::size_t>(axis)];
  if (size == room) return;
  size = room - size;
  if (!ir::are_constant(rest.shape))
    operator_error("the branches choose elements by data, of sizes that the caller chooses");
  const ir::Operator& concat = ir::operator_named("Concat");
  ir::Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(axis));
  ir::complete_attributes(concat, attributes);
  const ir::NodeId id = graph.add_node(concat, {output, graph.add_constant(ir::Tensor(rest))},
                                       std::move(attributes), 1, graph.name);
  ir::infer_node(graph, id);
  graph.set_output(position, graph.node(id).results[0]);
}

}  // namespace

void Importer::capture_counts(const ir::Graph& graph, Captures& captures) const {
  const auto facts = counted_.find(&graph);
  if (facts == counted_.end()) return;
  for (std::size_t i = 0; i < captures.values.size(); ++i) {
    for (const ir::ValueId count : counts_of(facts->second, captures.values[i])) {
      if (!graph.constant(count) && captures.seen.insert(count).second) captures.values.push_back(count);
    }
  }
}

void Importer::carry_counts(const ir::Graph& from, const std::map<ir::ValueId, ir::ValueId>& inside,
                            ir::Graph& branch) {
  const auto found = counted_.find(&from);
  if (found == counted_.end()) return;
  const auto within = [&](ir::ValueId count) {
    const ir::Tensor* constant = from.constant(count);
    return constant ? branch.add_constant(*constant) : inside.at(count);
  };
  const ir::CountedFacts& facts = found->second;
  for (const auto& [outside, own] : inside) {
    ir::CountedResult result{own};
    if (const auto axis = facts.axes.find(outside); axis != facts.axes.end())
      result.counted = ir::CountedAxis{axis->second.axis, within(axis->second.count)};
    if (const auto sizes = facts.sizes.find(outside); sizes != facts.sizes.end()) {
      for (const ir::CountedSize& size : sizes->second)
        result.sizes.push_back({size.size, size.count.valid() ? within(size.count) : ir::ValueId{}});
    }
    note_counts(result, branch);
  }
}

/// Results of which a branch fills an axis by data have room for the most of both, and a count beside them.
std::vector<Importer::CountOfResult> Importer::join_counts(const std::vector<Branch*>& branches) {
  std::vector<CountOfResult> out;
  std::map<std::vector<CountOfBranch>, std::size_t> known;  // results that count
  const std::size_t results = branches.front()->graph.outputs().size();
  for (std::size_t i = 0; i < results; ++i) {
    std::optional<int> axis;
    for (const Branch* branch : branches) {
      const auto counted = branch->counts.axes.find(branch->graph.outputs()[i]);
      if (counted == branch->counts.axes.end()) continue;
      if (axis && *axis != counted->second.axis)
        operator_error(
            fmt::format("output {} has as many elements as data says, along another axis in each branch", i));
      axis = counted->second.axis;
    }
    if (!axis) continue;
    ir::Dim room = 0;
    std::vector<CountOfBranch> counts;
    for (const Branch* branch : branches) {
      const ir::ValueId output = branch->graph.outputs()[i];
      const ir::TensorType& type = branch->graph.value(output).type;
      if (type.rank() <= *axis) operator_error(fmt::format("output {} has another rank in each branch", i));
      const ir::Dim size = type.shape[static_cast<std::size_t>(*axis)];
      if (!ir::always_less_equal(size, room)) {
        if (!ir::always_less_equal(room, size))
          operator_error(fmt::format("output {} has room for {} in one branch and for {} in the other", i,
                                     ir::to_string(room), ir::to_string(size)));
        room = size;
      }
      counts.push_back(count_of_output(branch->graph, branch->counts, output, *axis));
    }
    for (Branch* branch : branches) widen_output(branch->graph, i, *axis, room);
    const auto [at, is_new] = known.emplace(counts, results + known.size());
    for (std::size_t k = 0; is_new && k < branches.size(); ++k) {
      ir::Graph& graph = branches[k]->graph;
      const auto always = [&] {
        return graph.add_constant(ir::Tensor::of_ints(std::vector{counts[k].always}, {}));
      };
      graph.add_output(counts[k].count.valid() ? counts[k].count : always(),
                       graph.output_names()[i] + "_count");
    }
    out.push_back({i, at->second, *axis});
  }
  return out;
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
