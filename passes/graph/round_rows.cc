#include <fmt/format.h>

#include <algorithm>

#include "ir/forms/form.h"
#include "ir/graph/operator.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {

bool allows_rounding(const ir::Graph& graph) {
  constexpr const char* kAttribute = "accuracy_level";
  constexpr std::int64_t kBytes = 4;
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.attributes.has(kAttribute) && node.attributes.int_of(kAttribute) == kBytes) return true;
    if (std::any_of(node.subgraphs.begin(), node.subgraphs.end(), allows_rounding)) return true;
  }
  return false;
}

namespace {

/// Why the rows of a product stay floats; empty: they are rounded.
std::string reason_against(ir::Problem problem, const ir::KernelPrices& prices) {
  const ir::Price floats = prices.price(problem);
  std::get<ir::ProductWork>(problem.work).rounding = ir::RowRounding::kDone;
  const ir::Price rounded = prices.price(problem);
  if (!rounded.picoseconds) return "no kernel of the target multiplies them by packed weights";
  if (floats.picoseconds && *floats.picoseconds < *rounded.picoseconds) return "floats are faster";
  return "";
}

std::int64_t round_products(ir::Graph& graph, const ir::KernelPrices& prices, Report& report) {
  std::int64_t count = 0;
  for (const ir::NodeId id : graph.topological_order()) {
    for (ir::Graph& branch : graph.node(id).subgraphs) count += round_products(branch, prices, report);
    if (!graph.node(id).op->lower) continue;
    const ir::Form form = ir::form_of(graph, id);
    const ir::Work* work = ir::work_of(form);
    const auto* product = work ? std::get_if<ir::ProductWork>(work) : nullptr;
    if (!product || product->rounding != ir::RowRounding::kAllowed) continue;
    const auto row_major = [&](ir::ValueId v) { return ir::row_major_strides(graph.value(v).type.shape); };
    const std::string reason = reason_against(*ir::problem_of(graph, id, form, row_major, false), prices);
    report.remarks.push_back(
        {"round-rows", graph.node(id).name,
         reason.empty() ? fmt::format("rounds its rows to int8, with a scale for {} elements", product->block)
                        : "rounded: " + reason,
         !reason.empty()});
    if (!reason.empty()) continue;
    graph.node(id).attributes.set("rounding", static_cast<std::int64_t>(ir::RowRounding::kDone));
    ++count;
  }
  return count;
}

}  // namespace

void round_rows(ir::Graph& graph, const PreparationOptions& options, Prepared& prepared) {
  prepared.rounded_products += round_products(graph, *options.prices, prepared.report);
}

}  // namespace gcompile::passes
