#include "driver/commands/state_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace gcompile {
namespace {

/// Names longer than this are compared by their ends, where layers and kinds stand.
constexpr std::size_t kLongest = 80;

/// How much two names have in common: twice the longest common subsequence, of both lengths. As a fraction of
/// integers, so that equal ones are equal.
struct Likeness {
  std::int64_t common = 0, lengths = 1;
  bool operator<(const Likeness& other) const { return common * other.lengths < other.common * lengths; }
};

Likeness likeness(const std::string& left, const std::string& right) {
  const std::string a = left.size() > kLongest ? left.substr(left.size() - kLongest) : left;
  const std::string b = right.size() > kLongest ? right.substr(right.size() - kLongest) : right;
  std::vector<std::int64_t> row(b.size() + 1, 0);
  for (const char c : a) {
    std::int64_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t above = row[j + 1];
      row[j + 1] = c == b[j] ? diagonal + 1 : std::max(row[j + 1], row[j]);
      diagonal = above;
    }
  }
  return {2 * row.back(), static_cast<std::int64_t>(std::max<std::size_t>(1, a.size() + b.size()))};
}

/// The name that is nearer to `name` than all others; nullptr: several are.
const std::string* nearest(const std::string& name, const std::vector<std::string>& others) {
  const std::string* best = nullptr;
  Likeness most{-1, 1};
  for (const std::string& other : others) {
    const Likeness here = likeness(name, other);
    if (most < here) {
      most = here;
      best = &other;
    } else if (!(here < most)) {
      best = nullptr;
    }
  }
  return best;
}

}  // namespace

std::vector<Diagnostic> crossed_states(const ir::Graph& graph,
                                       const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<Diagnostic> out;
  for (const auto& [input, output] : pairs) {
    const auto is_named = [&graph, &input = input](ir::ValueId id) { return graph.value(id).name == input; };
    const auto in = std::find_if(graph.inputs().begin(), graph.inputs().end(), is_named);
    if (in == graph.inputs().end()) continue;  // told elsewhere
    const ir::TensorType& type = graph.value(*in).type;
    std::vector<std::string> inputs, outputs;
    for (const ir::ValueId id : graph.inputs()) {
      if (graph.value(id).type == type) inputs.push_back(graph.value(id).name);
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      if (graph.value(graph.outputs()[i]).type == type) outputs.push_back(graph.output_names()[i]);
    }
    if (std::find(outputs.begin(), outputs.end(), output) == outputs.end())
      continue;  // it grows, or is an error
    const std::string* const other = nearest(input, outputs);
    if (!other || *other == output) continue;
    const std::string* const back = nearest(*other, inputs);
    if (!back || *back != input) continue;
    Diagnostic diagnostic;
    diagnostic.severity = Severity::kWarning;
    diagnostic.code = "W0409";
    diagnostic.message = fmt::format("--state {}={}: the output '{}' is of the same type, and nearer by name",
                                     printable(input), printable(output), printable(*other));
    out.push_back(std::move(diagnostic));
  }
  return out;
}

}  // namespace gcompile
