#include "driver/verify/verify_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "codegen/report/quantities.h"
#include "driver/data/random_inputs.h"
#include "driver/verify/compare.h"
#include "driver/verify/verify_reference.h"
#include "ir/graph/at_sizes.h"
#include "ir/graph/checks.h"
#include "ir/graph/operator.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Numbers of a float type: the largest, the smallest normal one, the smallest of all.
struct Edges {
  double largest, smallest, denormal;
};

Edges edges_of(ir::ElementType type) {
  switch (type) {
    case ir::ElementType::kFloat16:
      return {65504, 0x1p-14, 0x1p-24};
    case ir::ElementType::kBFloat16:
      return {0x1.fep127, 0x1p-126, 0x1p-133};
    case ir::ElementType::kFloat64:
      return {std::numeric_limits<double>::max(), std::numeric_limits<double>::min(), 0x1p-1074};
    default:
      return {static_cast<double>(std::numeric_limits<float>::max()), 0x1p-126, 0x1p-149};
  }
}

/// One of the numbers that the kind is for.
double number_of_kind(InputKind kind, ir::ElementType type, std::uint64_t choice) {
  const Edges edges = edges_of(type);
  const double sign = choice % 2 == 0 ? 1 : -1;
  if (kind == InputKind::kSpecial) {
    const double numbers[] = {0.0, edges.denormal, 100 * edges.denormal, kInfinity, std::nan(""), 1.0, 0.0};
    return sign * numbers[choice / 2 % std::size(numbers)];
  }
  const double root = std::sqrt(edges.largest);
  const double numbers[] = {edges.largest,  edges.largest / 2, root, 1.5 * root,
                            edges.smallest, 1 / root,          88.0};
  return sign * numbers[choice / 2 % std::size(numbers)];
}

/// `usual`, with numbers of the kind among its floats.
ir::Tensor filled(const ir::Tensor& usual, InputKind kind, RandomInputs& random) {
  ir::Tensor out = usual;
  const ir::TensorType& type = usual.type();
  if (kind == InputKind::kRandom || !ir::is_float(type.element)) return out;
  // Every other tensor holds many of them, the others few: one NaN spoils a whole product.
  const std::uint64_t each = random.next() % 2 == 0 ? 2 : 16;
  for (std::int64_t i = 0; i < out.count(); ++i) {
    if (random.next() % each != 0) continue;
    out.set(i, ir::Scalar::of_real(type.element, number_of_kind(kind, type.element, random.next() >> 8)));
  }
  return out;
}

/// The outputs, or why there are none.
std::string evaluate_into(std::vector<ir::Tensor>& outputs, const ir::Graph& graph,
                          const std::vector<ir::Tensor>& inputs) {
  try {
    outputs = ir::evaluate_graph(graph, inputs);
    return "";
  } catch (const CompileError& error) {
    if (error.exit_code() != ExitCode::kModel) throw;
    outputs.clear();
    return error.what();
  }
}

bool is_all_finite(const ir::Tensor& tensor) {
  if (!ir::is_float(tensor.element())) return true;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (!std::isfinite(tensor.real_at(i))) return false;
  }
  return true;
}

/// Whether a value along the way is not finite, in the branches taken too. Where a float program overflows
/// (the square of a normalisation that is spelled out), an order of its arithmetic that does not has other
/// results, finite ones too.
bool has_overflow(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs) {
  const std::vector<std::optional<ir::Tensor>> values = ir::evaluate_all(graph, inputs);
  for (const std::optional<ir::Tensor>& value : values) {
    if (value && !is_all_finite(*value)) return true;
  }
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.subgraphs.empty()) continue;
    std::vector<ir::Tensor> operands;
    for (const ir::ValueId operand : node.operands) {
      // What no result needs has no value.
      if (!values[operand.index]) break;
      operands.push_back(*values[operand.index]);
    }
    if (operands.size() != node.operands.size()) continue;
    const ir::Graph& branch = node.subgraphs[operands[0].int_at(0) ? 0 : 1];
    operands.erase(operands.begin());
    if (has_overflow(branch, operands)) return true;
  }
  return false;
}

std::string element_text(const ir::Tensor& tensor, std::int64_t i) {
  return ir::is_float(tensor.element()) ? fmt::format("{:.9g}", tensor.real_at(i))
                                        : std::to_string(tensor.int_at(i));
}

/// What the first element that differs is and was; empty where all bits agree.
std::string bit_difference(const ir::Tensor& expected, const ir::Tensor& actual) {
  if (expected.type() != actual.type())
    return fmt::format("{} became {}", to_string(expected.type()), to_string(actual.type()));
  std::int64_t count = 0, first = -1;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const ir::Scalar a = expected.at(i), b = actual.at(i);
    const bool same = ir::is_float(expected.element())
                          ? (std::isnan(a.real) && std::isnan(b.real)) ||
                                (a.real == b.real && std::signbit(a.real) == std::signbit(b.real))
                          : a.integer == b.integer;
    if (same) continue;
    if (first < 0) first = i;
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("{} of {} elements differ, first {}: {} became {}", count, expected.count(),
                     position_text(expected.shape(), first), element_text(expected, first),
                     element_text(actual, first));
}

/// With zeros where either is not finite.
std::pair<ir::Tensor, ir::Tensor> where_finite(ir::Tensor a, ir::Tensor b) {
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (std::isfinite(a.real_at(i)) && std::isfinite(b.real_at(i))) continue;
    a.set(i, ir::Scalar::of_real(a.element(), 0));
    b.set(i, ir::Scalar::of_real(b.element(), 0));
  }
  return {std::move(a), std::move(b)};
}

ir::Graph graph_at(const ir::Graph& graph, const SymbolValues& values) {
  return ir::at_sizes(graph, [&](int symbol) { return values[static_cast<std::size_t>(symbol)]; });
}

/// Whether the pass keeps every bit where rewrites of the tier are allowed.
bool keeps_bits(const std::string& pass, passes::Tier allowed) {
  for (const passes::Pass& row : passes::pipeline()) {
    if (row.name == pass) return !row.rounds && std::min(row.tier, allowed) == passes::Tier::kExact;
  }
  return true;
}

}  // namespace

std::pair<ir::Tensor, ir::Tensor> PassChecker::Set::comparable(const ir::Tensor& before,
                                                               const ir::Tensor& behind) const {
  // Where sums overflow is a matter of their order.
  if (kind == InputKind::kRandom || !ir::is_float(before.element())) return {before, behind};
  return where_finite(before, behind);
}

std::vector<ir::Tensor> inputs_of_kind(const ir::Graph& graph, InputKind kind, std::uint64_t seed) {
  RandomInputs random(seed * 3 + static_cast<std::uint64_t>(kind));
  std::vector<ir::Tensor> inputs = random.inputs_of(graph);
  const std::vector<ir::Demand> demands = ir::demands_of(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = graph.value(graph.inputs()[i]).name;
    const bool is_checked = std::any_of(demands.begin(), demands.end(),
                                        [&](const ir::Demand& demand) { return demand.input == name; });
    if (!is_checked) inputs[i] = filled(inputs[i], kind, random);
  }
  return inputs;
}

std::string to_string(const PassDifference& d) {
  return fmt::format("pass '{}' (number {}) changes the output '{}' of {} inputs{}: {}", d.pass, d.position,
                     printable(d.output), d.inputs, d.sizes.empty() ? "" : " at " + d.sizes, d.text);
}

PassChecker::PassChecker(const ir::Graph& imported, std::uint64_t seed, bool random_only) {
  const ir::Sizes* sizes = ir::SizesScope::in_force();
  if (!sizes || sizes->symbols().empty()) {
    instances_.push_back({.imported = imported});
  } else {
    for (const SymbolValues& values : judged_sizes(*sizes, imported))
      instances_.push_back({values, to_string(*sizes, values), graph_at(imported, values)});
    if (instances_.empty()) {
      throw CompileError(ExitCode::kUsage, "--verify-passes finds no sizes that the model allows",
                         "give each dimension one with --dim NAME=SIZE");
    }
    check_.sizes = static_cast<std::int64_t>(instances_.size());
  }
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    add_set({"random", InputKind::kRandom, i}, seed);
    // Sizes add nothing to what floats can be.
    if (random_only || i > 0) continue;
    add_set({"special", InputKind::kSpecial, i}, seed);
    add_set({"extreme", InputKind::kExtreme, i}, seed);
  }
}

void PassChecker::add_set(Set set, std::uint64_t seed) {
  const ir::Graph& graph = imported(set);
  set.inputs = inputs_of_kind(graph, set.kind, seed);
  set.error = evaluate_into(set.outputs, graph, set.inputs);
  check_.refused += set.error.empty() ? 0 : 1;
  set.overflows = set.error.empty() && set.kind == InputKind::kExtreme && has_overflow(graph, set.inputs);
  sets_.push_back(std::move(set));
}

void PassChecker::after(const std::string& pass, int position, const ir::Graph& graph, passes::Tier allowed) {
  ++check_.passes;
  const bool is_exact = keeps_bits(pass, allowed);
  const ir::Sizes* sizes = ir::SizesScope::in_force();
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    const Instance& instance = instances_[i];
    // What a pass learns of the sizes may exclude some.
    if (!instance.sizes.empty() && !are_allowed(*sizes, instance.sizes)) continue;
    const ir::Graph at = instance.sizes.empty() ? ir::Graph() : graph_at(graph, instance.sizes);
    for (Set& set : sets_) {
      if (set.instance != i || set.differs) continue;
      compare_set(set, {pass, position, set.name, {}, {}, instance.text}, instance.sizes.empty() ? graph : at,
                  is_exact);
    }
  }
}

void PassChecker::compare_set(Set& set, const PassDifference& where, const ir::Graph& graph, bool is_exact) {
  std::vector<ir::Tensor> outputs;
  const std::string error = evaluate_into(outputs, graph, set.inputs);
  if (!set.error.empty() && !error.empty()) return;
  if (set.error != error) {
    // What a pass finds out of use need not be evaluated any more.
    set.differs = set.error.empty();
    if (set.differs) check_.differences.push_back(where);
    if (set.differs) check_.differences.back().text = "there is none: " + error;
    set.error = error;
    set.outputs = std::move(outputs);
    return;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ++check_.compared;
    const std::string text = judge(set, i, outputs[i], is_exact);
    if (text.empty()) continue;
    set.differs = true;
    check_.differences.push_back(where);
    check_.differences.back().output = imported(set).output_names()[i];
    check_.differences.back().text = text;
  }
  set.outputs = std::move(outputs);
}

std::string PassChecker::judge(Set& set, std::size_t i, const ir::Tensor& actual, bool is_exact) const {
  const ir::Tensor& expected = set.outputs[i];
  const std::string difference = bit_difference(expected, actual);
  if (is_exact || difference.empty() || expected.type() != actual.type()) return difference;
  if (set.overflows) return "";
  const bool is_real = ir::is_float(expected.element()), quantised = is_quantised(imported(set));
  // A quotient that is no number decides as it likes.
  if (!is_real && set.kind != InputKind::kRandom) return "";
  const auto [before, behind] = set.comparable(expected, actual);
  const Comparison comparison = compare(before, behind, quantised);
  if (quantised || !is_real || set.kind != InputKind::kRandom) {
    return comparison.same || is_noise(comparison, noise_of(set, i)) ? "" : difference;
  }
  // What another order of sums makes is rounding, far below the tolerance of most models.
  const Noise& noise = noise_of(set, i);
  const bool is_rounding = comparison.rms_error <= kNoiseMargin * noise.rms;
  return is_rounding && (comparison.same || is_noise(comparison, noise)) ? "" : difference;
}

const Noise& PassChecker::noise_of(Set& set, std::size_t i) const {
  if (!set.noise) {
    const ir::Graph& graph = imported(set);
    std::map<std::string, ir::Tensor> inputs;
    for (std::size_t k = 0; k < set.inputs.size(); ++k) {
      inputs[graph.value(graph.inputs()[k]).name] = set.inputs[k];
    }
    const Reference reference(graph);
    set.noise = reference.noise(inputs, reference.evaluate(inputs), Precision::kFp32);
  }
  return set.noise->outputs[i];
}

void tell(const PassCheck& check, Terminal& terminal) {
  terminal.note(fmt::format(
      "{} changed something: {} compared{}{}", counted(check.passes, "pass", "passes"),
      counted(check.compared, "output"),
      check.sizes > 0 ? fmt::format(" at {} choices of sizes", check.sizes) : "",
      check.refused > 0 ? fmt::format("; {} of inputs have none", counted(check.refused, "set")) : ""));
  if (check.differences.empty()) return;
  const auto first = std::min_element(
      check.differences.begin(), check.differences.end(),
      [](const PassDifference& a, const PassDifference& b) { return a.position < b.position; });
  Diagnostic diagnostic;
  diagnostic.code = "E0703";
  diagnostic.message = to_string(*first);
  for (const PassDifference& each : check.differences) {
    if (&each != &*first) diagnostic.details.push_back(to_string(each));
  }
  diagnostic.help = fmt::format(
      "--pass-limit {} stops before it, --disable-pass leaves out what may be left out", first->position - 1);
  throw CompileError(ExitCode::kMismatch, {diagnostic});
}

PassCheck check_passes(ir::Graph& graph, passes::Options options, std::uint64_t seed, bool random_only) {
  PassChecker checker(graph, seed, random_only);
  const auto dump = options.dump;
  options.dump = [&](const std::string& pass, int position, const ir::Graph& after) {
    if (dump) dump(pass, position, after);
    checker.after(pass, position, after, options.tier);
  };
  passes::optimise(graph, options);
  return checker.result();
}

}  // namespace gcompile
