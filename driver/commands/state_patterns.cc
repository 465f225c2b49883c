#include "driver/commands/state_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "base/diagnostics.h"
#include "driver/command_line/option_table.h"
#include "driver/machine/local_files.h"

namespace gcompile {
namespace {

std::string shown(const StatePair& pair) {
  return fmt::format("--state {}={}", printable(pair.first), printable(pair.second));
}

/// A name with one star, as what stands before and behind it.
struct Pattern {
  std::string_view before, behind;

  explicit Pattern(std::string_view name)
      : before(name.substr(0, name.find('*'))), behind(name.substr(name.find('*') + 1)) {}

  /// What the star stands for in `name`; nothing where it does not fit.
  std::optional<std::string_view> star_of(std::string_view name) const {
    const bool fits = name.size() >= before.size() + behind.size() &&
                      name.substr(0, before.size()) == before &&
                      name.substr(name.size() - behind.size()) == behind;
    if (!fits) return std::nullopt;
    return name.substr(before.size(), name.size() - before.size() - behind.size());
  }

  std::string name_of(std::string_view star) const { return fmt::format("{}{}{}", before, star, behind); }
};

void expect_one_star_each(const StatePair& pair) {
  const auto stars = [](const std::string& name) { return std::count(name.begin(), name.end(), '*'); };
  if (stars(pair.first) == 1 && stars(pair.second) == 1) return;
  usage_error(fmt::format("{}: a pattern has one star on either side", shown(pair)),
              "for example --state 'past_*=present_*'");
}

std::string names_of(const std::vector<frontend::ModelPort>& ports) {
  std::vector<std::string> names;
  for (const frontend::ModelPort& port : ports) names.push_back(printable(port.name));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// What stands in the name of an input where the output of the run before has the other word.
struct WordsOfState {
  std::string_view before, after;
};
constexpr WordsOfState kWordsOfStates[] = {
    {"past_key_values", "present_key_values"},
    {"past_key_values", "present"},
    {"past", "present"},
    {"past", "new"},
    {"previous", "next"},
    {"prev", "next"},
    {"prev", "new"},
    {"last", "next"},
    {"old", "new"},
    {"initial", "final"},
    {"init", "final"},
    {"input", "output"},
    {"_in", "_out"},
    {"in", "out"},
    {"0", "n"},
    {"", "_out"},
    {"", "_next"},
    {"", "_new"},
    {"", "new_"},
    {"", "next_"},
    {"", "n"},
    {"", "N"},
};

/// Where `input` says `words.before` and `output` says `words.after` at the same place, no word of letters goes on
/// there, and both names go on alike: the place. Names that have nothing but these words are those of any input
/// and output.
std::optional<std::size_t> place_of_words(std::string_view input, std::string_view output,
                                          const WordsOfState& words) {
  if (input.size() == words.before.size() && output.size() == words.after.size()) return std::nullopt;
  if (input.size() + words.after.size() != output.size() + words.before.size()) return std::nullopt;
  for (std::size_t at = 0; at + words.before.size() <= input.size(); ++at) {
    if (input.substr(0, at) != output.substr(0, at)) break;
    const std::size_t end = at + words.before.size();
    const bool goes_on = !words.before.empty() && end < input.size() &&
                         std::islower(static_cast<unsigned char>(input[end])) != 0;
    if (!goes_on && input.substr(at, words.before.size()) == words.before &&
        output.substr(at, words.after.size()) == words.after &&
        input.substr(at + words.before.size()) == output.substr(at + words.after.size()))
      return at;
  }
  return std::nullopt;
}

/// Whether a run could leave `after` for the next one that takes `before`: alike but for one axis that is a size
/// of its own before.
bool could_follow(const ir::TensorType& before, const ir::TensorType& after) {
  if (before.element != after.element || before.rank() != after.rank()) return false;
  int unlike = 0;
  for (std::size_t axis = 0; axis < before.shape.size(); ++axis) {
    if (before.shape[axis] == after.shape[axis]) continue;
    if (!before.shape[axis].as_symbol()) return false;
    ++unlike;
  }
  return unlike <= 1;
}

/// One pattern for all `pairs`, where it fits no other of `inputs`; else none.
std::optional<StatePair> pattern_of(const std::vector<StatePair>& pairs, const WordsOfState& words,
                                    const std::vector<std::string>& inputs) {
  if (pairs.size() < 2 || words.before.empty()) return std::nullopt;
  const auto& [first_input, first_output] = pairs.front();
  const std::size_t at = *place_of_words(first_input, first_output, words);
  const std::string before(words.before), after(words.after), stem = first_input.substr(0, at);
  const std::string tail = first_input.substr(at + before.size());
  for (const StatePair& pattern : {StatePair{stem + before + "*", stem + after + "*"},
                                   StatePair{"*" + before + tail, "*" + after + tail}}) {
    const Pattern of_input(pattern.first), of_output(pattern.second);
    const auto is_told = [&](const StatePair& pair) {
      const std::optional<std::string_view> star = of_input.star_of(pair.first);
      return star && of_output.name_of(*star) == pair.second;
    };
    const auto fits = [&](const std::string& input) { return of_input.star_of(input).has_value(); };
    if (std::all_of(pairs.begin(), pairs.end(), is_told) &&
        std::count_if(inputs.begin(), inputs.end(), fits) == static_cast<std::ptrdiff_t>(pairs.size()))
      return pattern;
  }
  return std::nullopt;
}

}  // namespace

bool has_star(const StatePair& pair) {
  return pair.first.find('*') != std::string::npos || pair.second.find('*') != std::string::npos;
}

std::vector<StatePair> without_patterns(const std::vector<StatePair>& pairs,
                                        const frontend::ModelPorts& ports) {
  std::vector<StatePair> out;
  std::set<std::string> inputs, outputs;
  const auto add = [&](const StatePair& given, std::string input, std::string output) {
    for (const auto& [names, name, what] :
         {std::tuple(&inputs, &input, "input"), std::tuple(&outputs, &output, "output")}) {
      if (names->insert(*name).second) continue;
      usage_error(fmt::format("{}: the {} '{}' has a pair already", shown(given), what, printable(*name)),
                  "leave out one of the two");
    }
    out.emplace_back(std::move(input), std::move(output));
  };
  for (const StatePair& pair : pairs) {
    if (!has_star(pair) || (ports.input(pair.first) && ports.output(pair.second))) {
      add(pair, pair.first, pair.second);
      continue;
    }
    expect_one_star_each(pair);
    const Pattern of_input(pair.first), of_output(pair.second);
    bool fits = false;
    for (const frontend::ModelPort& port : ports.inputs) {
      const std::optional<std::string_view> star = of_input.star_of(port.name);
      if (!star) continue;
      fits = true;
      const std::string output = of_output.name_of(*star);
      if (!ports.output(output)) {
        usage_error(fmt::format("{}: the input '{}' fits, but there is no output '{}'", shown(pair),
                                printable(port.name), printable(output)),
                    fmt::format("outputs: {}", names_of(ports.outputs)));
      }
      add(pair, port.name, output);
    }
    if (!fits) {
      usage_error(fmt::format("{}: no input fits '{}'", shown(pair), printable(pair.first)),
                  fmt::format("inputs: {}", names_of(ports.inputs)));
    }
  }
  return out;
}

std::vector<StatePair> likely_states(const ir::Graph& graph) {
  std::vector<StatePair> out;
  std::vector<std::string> inputs;
  for (const ir::ValueId input : graph.inputs()) inputs.push_back(graph.value(input).name);
  std::set<std::string> taken_inputs, taken_outputs;
  for (const WordsOfState& words : kWordsOfStates) {
    std::vector<StatePair> pairs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
        const std::string& output = graph.output_names()[k];
        const bool are_free = taken_inputs.count(inputs[i]) + taken_outputs.count(output) == 0;
        if (!are_free || !place_of_words(inputs[i], output, words) ||
            !could_follow(graph.value(graph.inputs()[i]).type, graph.value(graph.outputs()[k]).type))
          continue;
        taken_inputs.insert(inputs[i]);
        taken_outputs.insert(output);
        pairs.emplace_back(inputs[i], output);
      }
    }
    if (const std::optional<StatePair> pattern = pattern_of(pairs, words, inputs)) pairs = {*pattern};
    out.insert(out.end(), pairs.begin(), pairs.end());
  }
  const bool has_more = taken_inputs.size() < inputs.size() && taken_outputs.size() < graph.outputs().size();
  return has_more ? out : std::vector<StatePair>{};
}

std::string hint_of_states(const ir::Graph& graph) {
  constexpr std::size_t kMost = 8;
  const std::vector<StatePair> pairs = likely_states(graph);
  if (pairs.empty()) return "";
  std::string text = "outputs that look like inputs of the next run could stay in the project's memory:";
  for (std::size_t i = 0; i < std::min(kMost, pairs.size()); ++i)
    text += " --state " + shell_quoted(pairs[i].first + "=" + pairs[i].second);
  return pairs.size() > kMost ? text + fmt::format(" and {} more", pairs.size() - kMost) : text;
}

}  // namespace gcompile
