#include "driver/verify/verify_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/choice/precision.h"
#include "ir/forms/form.h"
#include "ir/graph/operator.h"
#include "ir/graph/packed_ports.h"

namespace gcompile {
namespace {

using Operands = std::vector<const ir::Tensor*>;

/// How far one result moves when the kernel rounds: as far as moving its operands by one rounding moves it,
/// but at least by one rounding of its own, `unit`, times the roundings that meet in an element; and as far
/// as rounding `inside` of it does.
Noise kernel_noise(const ir::Tensor& expected, const Comparison& moved, const Comparison& inside, double unit,
                   double roundings) {
  Noise noise;
  noise.include(moved);
  noise.worst_ratio *= roundings;
  noise.rms = roundings * std::max(noise.rms, unit * root_mean_square(expected));
  noise.include(inside);
  noise.elements.clear();
  return noise;
}

std::vector<ir::Tensor> evaluate_rounded(const ir::Graph& graph, ir::NodeId id, const Operands& operands) {
  MovedRounding rounding(id.index + 1);
  const ir::RoundingScope scope(&rounding);
  return ir::evaluate_node(graph, id, operands);
}

/// The float type of the fewest digits that a kernel rounds to on its way, `type` where there is no shorter.
ir::ElementType shortest_within(const ir::Form& form, ir::ElementType type) {
  const ir::Dag* dag = nullptr;
  if (const auto* loop = std::get_if<ir::LoopForm>(&form)) dag = &loop->dag;
  if (const auto* contract = std::get_if<ir::ContractForm>(&form)) dag = &contract->epilogue.dag;
  if (dag == nullptr || !is_float(type)) return type;
  for (const ir::ScalarNode& scalar : dag->nodes()) {
    const bool is_shorter = unit_roundoff(scalar.type) > unit_roundoff(type);
    if (scalar.op != ir::ScalarOp::kLoad && is_shorter) type = scalar.type;
  }
  return type;
}

/// The precision whose tolerance results of that type are given.
Precision precision_of(ir::ElementType type, Precision otherwise) {
  if (type == ir::ElementType::kBFloat16) return Precision::kBf16;
  return type == ir::ElementType::kFloat16 && otherwise != Precision::kBf16 ? Precision::kFp16 : otherwise;
}

std::string joined(const std::vector<ir::Origin>& origins) {
  std::string out;
  for (const ir::Origin& origin : origins) out += (out.empty() ? "" : ", ") + to_string(origin);
  return out;
}

}  // namespace

KernelCheck::KernelCheck(ir::Graph& graph) : graph_(graph) {
  std::set<std::string> taken(graph.output_names().begin(), graph.output_names().end());
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    exposed_.emplace(graph.outputs()[i].index, graph.output_names()[i]);
  }
  for (const ir::NodeId id : graph.topological_order()) {
    for (const ir::ValueId result : graph.node(id).results) {
      if (!result.valid() || exposed_.count(result.index) != 0) continue;
      std::string name = graph.value(result).name;
      const bool is_own = !name.empty() && taken.insert(name).second;
      while (!is_own && !taken.insert(name = fmt::format("value_{}", taken.size())).second) {
      }
      if (is_own) names_.push_back(name);
      exposed_.emplace(result.index, name);
      graph.add_output(result, name);
    }
  }
}

std::vector<KernelFinding> KernelCheck::run(const std::map<std::string, ir::Tensor>& inputs,
                                            const std::map<std::string, ir::Tensor>& actual, bool quantised,
                                            Precision precision) const {
  std::map<std::uint32_t, ir::Tensor> computed;  // by index of the value
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const ir::ValueId id = graph_.inputs()[i];
    const auto given = inputs.find(graph_.value(id).name);
    computed.emplace(id.index, given != inputs.end() ? ir::stored_input(graph_, i, given->second)
                                                     : ir::Tensor(graph_.value(id).type));
  }
  std::vector<KernelFinding> findings;
  for (const ir::NodeId id : graph_.topological_order()) {
    const ir::Node& node = graph_.node(id);
    Operands operands, moved_operands;
    std::vector<ir::Tensor> moved_tensors;
    moved_tensors.reserve(node.operands.size());
    for (const ir::ValueId operand : node.operands) {
      operands.push_back(nullptr);
      moved_operands.push_back(nullptr);
      if (!operand.valid()) continue;
      const ir::Tensor* const constant = graph_.constant(operand);
      operands.back() = constant != nullptr ? constant : &computed.at(operand.index);
      moved_tensors.push_back(moved(*operands.back(), 1, operand.index));
      moved_operands.back() = &moved_tensors.back();
    }
    for (const ir::ValueId result : node.results) {
      if (!result.valid()) continue;
      computed.emplace(result.index,
                       ir::as_stored(actual.at(exposed_.at(result.index)), graph_.value(result).type));
    }
    if (!node.op->deterministic) continue;
    const ir::Form form = ir::form_of(graph_, id);
    const std::vector<ir::Tensor> expected = ir::evaluate_node(graph_, id, operands);
    const std::vector<ir::Tensor> other = ir::evaluate_node(graph_, id, moved_operands);
    const std::vector<ir::Tensor> inside = evaluate_rounded(graph_, id, operands);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const ir::ValueId result = node.results[i];
      if (!result.valid()) continue;
      KernelFinding finding;
      finding.value = exposed_.at(result.index);
      finding.origins = joined(node.origins);
      finding.type = expected[i].type();
      const ir::ElementType shortest = shortest_within(form, finding.type.element);
      const Precision tolerance = precision_of(shortest, precision);
      finding.comparison = compare(expected[i], computed.at(result.index), quantised, tolerance);
      finding.noise = kernel_noise(expected[i], compare(expected[i], other[i], quantised, tolerance),
                                   compare(expected[i], inside[i], quantised, tolerance),
                                   std::max(unit_roundoff(shortest), product_tolerance(precision)),
                                   ir::roundings(graph_, id));
      const double rms = root_mean_square(expected[i]);
      finding.relative = rms > 0 ? finding.noise.rms / rms : 0;
      finding.is_right = (finding.comparison.same || is_noise(finding.comparison, finding.noise)) &&
                         finding.comparison.rms_error <= kNoiseMargin * finding.noise.rms;
      finding.comparison.ratios.clear();
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace gcompile
