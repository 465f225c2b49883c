#include "driver/verify/verify_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "driver/verify/compare.h"
#include "ir/graph/operator.h"

namespace gcompile {
namespace {

/// The node that decides an index output, seen through casts and changes of shape.
ir::NodeId deciding_node(const ir::Graph& graph, ir::ValueId value) {
  for (;;) {
    const ir::NodeId id = graph.value(value).producer;
    if (!id.valid()) return {};
    const ir::Node& node = graph.node(id);
    if (!node.op->traits.keeps_elements) return id;
    value = node.operands[0];
  }
}

}  // namespace

bool is_quantised(const ir::Graph& graph) {
  const std::vector<ir::NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](ir::NodeId id) { return graph.node(id).op->traits.quantised; });
}

std::vector<ir::Tensor> Reference::in_order(const std::map<std::string, ir::Tensor>& inputs) const {
  std::vector<ir::Tensor> out;
  for (const ir::ValueId id : graph_.inputs()) {
    const ir::Value& value = graph_.value(id);
    const auto found = inputs.find(value.name);
    if (found == inputs.end()) {
      throw CompileError(ExitCode::kInputOutput,
                         fmt::format("no tensor for the input '{}'", printable(value.name)));
    }
    out.push_back(found->second);
  }
  return out;
}

ReferenceValues Reference::evaluate(const std::map<std::string, ir::Tensor>& inputs) const {
  return named(ir::evaluate_all(graph_, in_order(inputs)));
}

ReferenceNoise Reference::noise(const std::map<std::string, ir::Tensor>& inputs,
                                const ReferenceValues& values, Precision precision) const {
  const bool quantised = is_quantised(graph_);
  ReferenceNoise out;
  out.outputs.resize(values.outputs.size());
  for (int run = 0; run < kNoiseRuns; ++run) {
    MovedRounding rounding(static_cast<std::uint64_t>(run) + 1);
    const ir::RoundingScope scope(&rounding);
    const ReferenceValues other = evaluate(inputs);
    for (std::size_t i = 0; i < out.outputs.size(); ++i) {
      out.outputs[i].include(compare(values.outputs[i], other.outputs[i], quantised, precision));
    }
    for (const auto& [name, value] : values.by_name) {
      out.by_name[name].include(compare(value, other.by_name.at(name), quantised, precision));
    }
  }
  // Which integer takes a step is another one in each run, so no element has a noise of its own.
  if (quantised) {
    for (Noise& noise : out.outputs) noise.elements.clear();
    for (auto& [name, noise] : out.by_name) noise.elements.clear();
  }
  return out;
}

ReferenceValues Reference::named(const std::vector<std::optional<ir::Tensor>>& all) const {
  ReferenceValues out;
  for (const ir::ValueId id : graph_.outputs()) {
    const std::optional<ir::Tensor>& value = all.at(id.index);
    GC_CHECK(value.has_value());
    out.outputs.push_back(*value);
  }
  std::set<std::string> ambiguous;
  for (const ir::ValueId id : graph_.values()) {
    const std::string& name = graph_.value(id).name;
    // What nobody reads need not have been computed.
    if (name.empty() || id.index >= all.size() || !all[id.index] || graph_.use_count(id) == 0) continue;
    if (!out.by_name.emplace(name, *all[id.index]).second) ambiguous.insert(name);
  }
  for (const std::string& name : ambiguous) out.by_name.erase(name);
  return out;
}

bool Reference::is_close_decision(const std::string& output, const std::map<std::string, ir::Tensor>& inputs,
                                  const ir::Tensor& expected, const ir::Tensor& actual,
                                  Precision precision) const {
  if (is_float(expected.element()) || expected.type() != actual.type()) return false;
  const auto& names = graph_.output_names();
  const auto at = std::find(names.begin(), names.end(), output);
  if (at == names.end()) return false;
  const ir::NodeId id = deciding_node(graph_, graph_.outputs()[static_cast<std::size_t>(at - names.begin())]);
  if (!id.valid()) return false;
  const ir::Node& node = graph_.node(id);
  if (!node.op->traits.gives_positions) return false;

  const auto all = ir::evaluate_all(graph_, in_order(inputs));
  const std::optional<ir::Tensor>& data = all.at(node.operands[0].index);
  if (!data || !is_float(data->element())) return false;
  const ir::Shape& shape = data->shape();
  std::int64_t axis = node.attributes.int_of("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(shape.size());
  std::int64_t inner = 1, length = shape[axis];
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  if (length == 0 || data->count() == 0) return false;
  const std::int64_t kept = expected.count() / (data->count() / length);  // indices along the axis
  const double rms = root_mean_square(*data);
  const Tolerance tolerance = tolerance_of(data->element(), precision);
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const std::int64_t e = expected.int_at(i), a = actual.int_at(i);
    if (e == a) continue;
    if (a < 0 || a >= length || e < 0 || e >= length) return false;
    const std::int64_t row = i / (inner * kept), column = i % inner;
    const auto value = [&](std::int64_t position) {
      return data->real_at((row * length + position) * inner + column);
    };
    // Both values may have moved, each by the tolerance.
    const double margin = std::fabs(value(e) - value(a));
    if (!(margin <= 2 * tolerance.typical(value(e), rms))) return false;
  }
  return true;
}

const ReferenceValues& CaseReference::get() const {
  if (!values_) values_ = reference_.evaluate(inputs_);
  return *values_;
}

const ReferenceNoise& CaseReference::noise() const {
  if (!noise_) noise_ = reference_.noise(inputs_, get(), precision_);
  return *noise_;
}

}  // namespace gcompile
