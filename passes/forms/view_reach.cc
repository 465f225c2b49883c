#include "passes/forms/view_reach.h"

#include <fmt/format.h>

#include "ir/forms/form.h"
#include "ir/graph/operator.h"

namespace gcompile::passes {

std::string unless_views_reach(const ir::Graph& graph, ir::ValueId value, ir::Shape strides) {
  std::vector<std::pair<ir::ValueId, ir::Shape>> open = {{value, std::move(strides)}};
  while (!open.empty()) {
    const auto [view, view_strides] = std::move(open.back());
    open.pop_back();
    for (const ir::Use& use : graph.value(view).uses) {
      if (!use.node.valid()) return "a view of it is an output";
      const ir::Node& reader = graph.node(use.node);
      const std::string copies =
          fmt::format("{} '{}' would copy it", reader.op->name, printable(reader.name));
      if (!reader.subgraphs.empty() || !reader.op->lower) return copies;
      const ir::Form form = reader.form ? *reader.form : ir::form_of(graph, use.node);
      if (const auto* loops = std::get_if<ir::LoopForm>(&form)) {
        const ir::ScalarNode* load = ir::pure_load(*loops);
        if (!load || load->operand != use.slot) continue;  // computes, or does not look at this operand
        auto further = ir::view_strides(*loops, view_strides);
        if (!further) return copies;
        open.emplace_back(reader.results[0], std::move(further->strides));
        continue;
      }
      const bool rows = use.slot == 0;
      if (!reader.op->traits.takes_strides || (rows && view_strides.back() != 1)) return copies;
    }
  }
  return "";
}

}  // namespace gcompile::passes
