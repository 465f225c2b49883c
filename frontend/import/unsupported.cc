#include "frontend/import/unsupported.h"

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "frontend/files/opset_table.h"
#include "frontend/import/name_order.h"
#include "ir/graph/operator.h"

namespace gcompile::frontend {
namespace {

std::string hint(const std::string& domain, const std::string& name) {
  std::vector<std::string> same_domain, all;
  std::string elsewhere;
  for (const ir::Operator* op : ir::all_operators()) {
    if (op->domain == "gcompile") continue;
    if (op->domain == domain) same_domain.emplace_back(op->name);
    if (op->domain != domain && op->name == name) elsewhere = op->domain.empty() ? "ai.onnx" : op->domain;
    all.emplace_back(op->name);
  }
  if (!elsewhere.empty()) return fmt::format("the domain {} has an operator of that name", elsewhere);
  std::string nearest = did_you_mean(name, same_domain);
  if (nearest.empty()) nearest = did_you_abbreviate(name, all);
  if (same_domain.empty()) {
    return fmt::format("the domain '{}' is not supported; export the model with standard operators{}{}",
                       printable(domain), nearest.empty() ? "" : "; ", nearest);
  }
  return nearest.empty() ? "`gcompile ops` lists the operators that are supported" : nearest;
}

}  // namespace

void Unsupported::add(const onnx::NodeProto& node, std::optional<int> opset, const std::string& operands,
                      const std::string& place) {
  Entry& entry = entries_[{canonical_domain(node.domain()), node.op_type()}];
  entry.opset = opset;
  entry.nodes.push_back(fmt::format("node {}({}){}", shown_name(node), operands, place));
}

void Unsupported::report(Diagnostics& diagnostics) const {
  for (const auto& [key, entry] : entries_) {
    const auto& [domain, name] = key;
    Diagnostic diagnostic;
    diagnostic.code = "E0101";
    diagnostic.message =
        fmt::format("operator {}{}{} ({}) is not supported; the model has {} node{} of it", printable(domain),
                    domain.empty() ? "" : ".", printable(name),
                    entry.opset ? fmt::format("opset {}", *entry.opset) : "its domain is not imported",
                    entry.nodes.size(), entry.nodes.size() == 1 ? "" : "s");
    diagnostic.details = entry.nodes;
    diagnostic.help = hint(domain, name);
    diagnostics.add(std::move(diagnostic));
  }
}

}  // namespace gcompile::frontend
