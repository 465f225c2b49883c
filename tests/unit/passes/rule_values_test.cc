// Every rule of every table on what floats can be: zeros of both signs, denormal numbers, infinities, NaN,
// and the ends of the range, in every type of floats, as inputs and as constants. Rules of tier `exact` keep
// every bit, but those of a NaN. The others give what the model gives, or what its real arithmetic gives
// where the model's own leaves the range on the way: (x * 3e38) * 1e-38 may be x * 3, where the model
// overflows; it may not be the other way round.

#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <set>

#include "tests/unit/passes/pass_fixture.h"
#include "tests/unit/passes/rule_cases.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct FloatType {
  ElementType type;
  std::string name, number;  // in ONNX text, and of Cast
  double max, least, least_denormal;
  double rounding;                  // relative, of a few operations
  bool exact = true, other = true;  // the tiers whose rules see it
};

/// Nothing is wider than float64 to say what its real arithmetic gives, so that rules which are not exact see
/// a third of its range.
const std::vector<FloatType>& float_types() {
  static const std::vector<FloatType> types = {
      {ElementType::kFloat32, "float", "1", 3.4028234663852886e38, 0x1p-126, 0x1p-149, 1e-5},
      {ElementType::kFloat16, "float16", "10", 65504, 0x1p-14, 0x1p-24, 8e-3},
      {ElementType::kBFloat16, "bfloat16", "16", 3.3895313892515355e38, 0x1p-126, 0x1p-133, 6e-2},
      {ElementType::kFloat64, "double", "11", 0x1p300, 0x1p-300, 0x1p-320, 1e-13, false, true},
      {ElementType::kFloat64, "double", "11", 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, 1e-13, true,
       false},
  };
  return types;
}

std::string in_type(std::string text, const FloatType& type) {
  text = std::regex_replace(text, std::regex("\\bTO\\b"), type.number);
  return std::regex_replace(text, std::regex("\\bT\\b"), type.name);
}

// Numbers ---------------------------------------------------------------------------------------------------

std::vector<double> special_numbers(const FloatType& t) {
  return {0.0,       -0.0,       kInfinity,     -kInfinity,           std::nan(""), t.max,
          -t.max,    t.least,    -t.least,      t.least_denormal,     1.0,          -t.least / 4,
          t.max / 3, -t.max / 5, t.least * 300, -std::sqrt(t.max) * 2};
}

/// How the constants of a case are filled.
enum class Fill {
  kOrdinary,
  kLarge,
  kLargest,
  kRootOfLargest,
  kRootOfLeast,
  kTiny,
  kDenormal,
  kMixed,
  kZero,
  kInfinite,
  kNaN,
  kCount
};

double constant_of(Fill fill, const FloatType& t, Numbers& numbers, std::int64_t i) {
  const double number = numbers.real(), sign = number < 0 ? -1 : 1;
  switch (fill) {
    case Fill::kLarge:
      return t.max / 3 * number / 2;
    case Fill::kLargest:
      return sign * t.max;
    case Fill::kRootOfLargest:
      return sign * std::sqrt(t.max) * 1.5;
    case Fill::kRootOfLeast:
      return sign * std::sqrt(t.least) / 1.5;
    case Fill::kTiny:
      return sign * t.least * 3;
    case Fill::kDenormal:
      return number * t.least / 4;
    case Fill::kMixed:
      return sign * (i % 2 == 0 ? std::sqrt(t.max) * 4 : 1 / (std::sqrt(t.max) * 4));
    case Fill::kZero:
      return sign * 0.0;
    case Fill::kInfinite:
      return i % 3 == 1 ? sign * kInfinity : number;
    case Fill::kNaN:
      return i % 3 == 1 ? std::nan("") : number;
    default:
      return number;
  }
}

double integer_of(ElementType type, std::int64_t i) {
  const double low = type == ElementType::kBool ? 0 : static_cast<double>(ir::integer_lowest(type));
  const double high = type == ElementType::kBool ? 1 : static_cast<double>(ir::integer_highest(type));
  const double values[] = {low, high, 0, 1, low + 1, high - 1, std::floor(high / 2)};
  return ir::bits_of(type) > 32 ? static_cast<double>(i % 7) : values[i % 7];
}

template <class Element>
Tensor filled(const ir::TensorType& type, Element element) {
  Tensor out(type);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const double value = element(i);
    out.set(i, ir::is_float(type.element)
                   ? ir::Scalar::of_real(type.element, value)
                   : ir::Scalar::of_integer(type.element, static_cast<std::int64_t>(value)));
  }
  return out;
}

/// All of the special numbers, in turn from number `step` on; then each of them among ordinary ones.
constexpr int kSteps = 4 + 16;

Tensor input_of(const ir::TensorType& type, const FloatType& t, int step, bool is_ordinary,
                Numbers& numbers) {
  const std::vector<double> special = special_numbers(t);
  const auto count = static_cast<std::int64_t>(special.size());
  return filled(type, [&](std::int64_t i) {
    if (!ir::is_float(type.element)) return integer_of(type.element, i + step);
    if (is_ordinary) return numbers.real();
    if (step < 4) return special[static_cast<std::size_t>((i + step * 5) % count)];
    return i % 5 == step % 5 ? special[static_cast<std::size_t>(step - 4)] : numbers.real();
  });
}

// Graphs ----------------------------------------------------------------------------------------------------

/// The number with an error of about `rounding`.
double moved(double number, double rounding, Numbers& numbers) {
  return number * (1 + rounding * numbers.real() / 2);
}

bool is_weight(const std::string& name) { return name.rfind("w_", 0) == 0; }

ir::Graph import(const std::string& text) {
  Diagnostics diagnostics;
  const std::string header = "<ir_version: 8, opset_import: [\"\" : 20]>\n";
  return frontend::import_model_text(header + text, {}, diagnostics).graph;
}

/// Makes constants of the inputs that are. Values are those of type `t`,
/// whatever type the graph is written in.
ir::Graph with_constants(ir::Graph graph, const RuleCase& row, const FloatType& t, Fill fill,
                         double rounding = 0) {
  Numbers numbers(7), noise(11);
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const ir::ValueId input = graph.inputs()[i];
    const std::string name = graph.value(input).name;
    const ir::TensorType type = graph.value(input).type;
    const auto number = std::find_if(row.numbers.begin(), row.numbers.end(),
                                     [&](const auto& pair) { return pair.first == name; });
    if (number == row.numbers.end() && !is_weight(name)) continue;
    Tensor tensor = filled(type, [&](std::int64_t at) {
      if (number != row.numbers.end()) return number->second;
      if (!ir::is_float(type.element)) return integer_of(type.element, at);
      return moved(ir::round_to(t.type, constant_of(fill, t, numbers, at)), rounding, noise);
    });
    graph.replace_uses(input, graph.add_constant(std::move(tensor), name));
    graph.remove_input(i);
  }
  return graph;
}

// Comparison ------------------------------------------------------------------------------------------------

bool same_bits(double a, double e) {
  return (std::isnan(a) && std::isnan(e)) || (a == e && std::signbit(a) == std::signbit(e));
}

bool close(double a, double e, const FloatType& t, double more = 0) {
  if (std::isnan(a) || std::isnan(e)) return std::isnan(a) && std::isnan(e);
  const double room = t.rounding * std::abs(e) + more + 4 * t.least;
  if (a == e || std::abs(a - e) <= room) return true;
  // What lies at the end of the range may be rounded to infinity.
  return std::isinf(a) && (a > 0) == (e > 0) && std::abs(e) + room >= t.max;
}

/// The model's real arithmetic on the same numbers:
/// in float64, with how far rounding of what it reads moves it.
class RealArithmetic {
 public:
  RealArithmetic(const RuleCase& row, const FloatType& t, Fill fill) : t_(t) {
    const ir::Graph wide = import(in_type(row.graph, float_types()[3]));
    for (int run = 0; run < kRuns; ++run)
      graphs_.push_back(with_constants(wide, row, t, fill, run * t.rounding));
  }

  void read(const std::vector<Tensor>& inputs) {
    runs_.clear();
    for (int run = 0; run < kRuns; ++run) {
      const ir::Graph& graph = graphs_[static_cast<std::size_t>(run)];
      Numbers numbers(static_cast<std::uint64_t>(run));
      std::vector<Tensor> wide;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        wide.push_back(filled(graph.value(graph.inputs()[i]).type, [&](std::int64_t at) {
          const double value = inputs[i].real_at(at);
          return ir::is_float(inputs[i].element()) ? moved(value, run * t_.rounding, numbers) : value;
        }));
      }
      runs_.push_back(ir::evaluate_graph(graph, wide));
    }
  }

  bool accepts(std::size_t result, std::int64_t element, double actual) const {
    const double exact = runs_[0][result].real_at(element);
    double noise = 0;
    for (const auto& run : runs_) {
      const double distance = std::abs(run[result].real_at(element) - exact);
      noise = std::isnan(distance) ? noise : std::max(noise, distance);
    }
    return close(actual, exact, t_, noise);
  }

 private:
  static constexpr int kRuns = 4;
  const FloatType& t_;
  std::vector<ir::Graph> graphs_;
  std::vector<std::vector<Tensor>> runs_;
};

// Cells -----------------------------------------------------------------------------------------------------

int fire(ir::Graph& graph, const passes::Rule& rule) {
  passes::Options options;
  passes::Report report;
  passes::PassContext context(options, report);
  context.enter("rules");
  passes::apply_rules(graph, {&rule}, context);
  const auto count = report.rule_counts.find(std::string(rule.name));
  return count == report.rule_counts.end() ? 0 : count->second;
}

struct Tally {
  int cells = 0, failed = 0;
  std::map<std::string, int> failed_of;
};

double largest(const Tensor& tensor) {
  double out = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (std::isfinite(tensor.real_at(i))) out = std::max(out, std::abs(tensor.real_at(i)));
  }
  return out;
}

/// The first element that is not good; empty: all are.
template <class IsGood>
std::string difference_of(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                          IsGood is_good) {
  for (std::size_t r = 0; r < expected.size(); ++r) {
    for (std::int64_t i = 0; i < expected[r].count(); ++i) {
      if (is_good(r, i)) continue;
      return "element " + std::to_string(i) + ": " + std::to_string(actual[r].real_at(i)) + " for " +
             std::to_string(expected[r].real_at(i));
    }
  }
  return "";
}

/// One graph with one filling of its constants: all inputs. Returns whether the rule fires.
bool run_cells(const passes::Rule& rule, const RuleCase& row, const FloatType& t, Fill fill,
               const ir::Graph& parsed, Tally& tally) {
  const ir::Graph before = with_constants(parsed, row, t, fill);
  ir::Graph after = before;
  if (fire(after, rule) == 0) return false;
  const bool exact = rule.tier == passes::Tier::kExact;
  std::optional<RealArithmetic> real;
  if (!exact && !row.float32_only) real.emplace(row, t, fill);
  for (int step = 0; step < kSteps; ++step) {
    Numbers numbers(static_cast<std::uint64_t>(step) + 1);
    std::vector<Tensor> inputs;
    for (const ir::ValueId input : before.inputs()) {
      const ir::Value& value = before.value(input);
      inputs.push_back(input_of(value.type, t, step, value.name.rfind("n_", 0) == 0, numbers));
    }
    const std::vector<Tensor> expected = ir::evaluate_graph(before, inputs);
    const std::vector<Tensor> actual = ir::evaluate_graph(after, inputs);
    if (real) real->read(inputs);
    const std::string difference = difference_of(actual, expected, [&](std::size_t r, std::int64_t i) {
      const double a = actual[r].real_at(i), e = expected[r].real_at(i);
      if (exact) return same_bits(a, e);
      return close(a, e, t, real ? 0 : t.rounding * largest(expected[r])) || (real && real->accepts(r, i, a));
    });
    ++tally.cells;
    if (difference.empty()) continue;
    ++tally.failed;
    if (++tally.failed_of[std::string(rule.name)] > 2) continue;
    ADD_FAILURE() << rule.name << ", " << t.name << ", constants " << static_cast<int>(fill) << ", inputs "
                  << step << ": " << difference << "\n"
                  << row.graph;
  }
  return true;
}

/// All fillings of the constants of a graph, in every row of its rule. Returns the rows that fired.
std::set<const passes::Rule*> run_case(const RuleCase& row, const FloatType& t, Tally& tally) {
  std::set<const passes::Rule*> fired;
  const ir::Graph parsed = import(in_type(row.graph, t));
  bool ordinary = !row.must_fire || !t.exact || !t.other;
  for (int i = 0; i < static_cast<int>(Fill::kCount); ++i) {
    const Fill fill = static_cast<Fill>(i);
    if (i > 0 && row.graph.find("w_") == std::string::npos) break;
    if (fill == Fill::kDenormal && row.weights_flush) continue;
    for (const passes::Rule* rule : passes::all_rules()) {
      if (rule->name != row.rule || !(rule->tier == passes::Tier::kExact ? t.exact : t.other)) continue;
      if (!run_cells(*rule, row, t, fill, parsed, tally)) continue;
      fired.insert(rule);
      ordinary |= i == 0;
    }
  }
  EXPECT_TRUE(ordinary) << row.rule << " does not fire in " << t.name << "\n" << row.graph;
  return fired;
}

TEST(EveryRule, KeepsWhatFloatsCanBe) {
  Tally tally;
  std::set<const passes::Rule*> fired;
  for (const RuleCase& row : rule_cases()) {
    if (!row.refuses.empty()) continue;
    for (const FloatType& t : float_types()) {
      if (row.float32_only && t.type != ElementType::kFloat32) continue;
      fired.merge(run_case(row, t, tally));
    }
  }
  for (const passes::Rule* rule : passes::all_rules()) {
    EXPECT_TRUE(fired.count(rule)) << "no graph in rule_cases.h in which a row of '" << rule->name
                                   << "' fires";
  }
  std::string failed;
  for (const auto& [name, count] : tally.failed_of) failed += " " + name + " " + std::to_string(count);
  std::cout << tally.cells << " cells, " << tally.failed << " differ" << failed << "\n";
}

TEST(EveryRule, RefusesWithItsReason) {
  for (const RuleCase& row : rule_cases()) {
    if (!row.refuses.empty()) expect_refuses(row.rule, in_type(row.graph, float_types()[0]), row.refuses);
  }
}

}  // namespace
}  // namespace gcompile::testing
