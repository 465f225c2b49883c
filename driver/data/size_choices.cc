#include "driver/data/size_choices.h"

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "driver/command_line/option_table.h"

namespace gcompile {
namespace {

/// Each is a schedule of its own: more are better served by fewer sizes and padding.
constexpr std::size_t kMostChoices = 64;

/// What the caller tells, and what else --dim bounds, in the order of the command line.
struct Combination {
  std::string text;
  std::vector<frontend::DimRange> ranges;
};

/// Each combination with each size of `dim`, before which `dims_before` others were chosen.
std::vector<Combination> longer(const std::vector<Combination>& combinations, const frontend::DimChoices& dim,
                                std::size_t dims_before) {
  const auto place = static_cast<std::ptrdiff_t>(dim.ranges_before + dims_before);
  std::vector<Combination> out;
  for (const Combination& shorter : combinations) {
    for (const std::int64_t size : dim.sizes) {
      Combination& own = out.emplace_back(shorter);
      own.text += fmt::format("{}{}={}", own.text.empty() ? "" : ", ", printable(dim.name), size);
      own.ranges.insert(own.ranges.begin() + place, {{dim.name}, {size, size}, 1, size});
    }
  }
  return out;
}

/// Numbers where all sizes are chosen. Beside bounds, bounds that leave one number: a symbol is the same size
/// in all schedules.
SizeChoice choice_of(const Options& options, Combination combination) {
  SizeChoice choice{{}, std::move(combination.text), options};
  choice.options.choices.clear();
  if (!choice.text.empty() && !options.dump_dir.empty()) choice.options.dump_dir += "/" + choice.text;
  frontend::InputBindings& bindings = choice.options.import.bindings;
  const bool has_bounds = !bindings.ranges.empty();
  for (const frontend::DimRange& range : combination.ranges) {
    if (range.names.size() > 1) continue;
    choice.sizes.push_back(range);
    if (!has_bounds) bindings.dims.push_back({range.names[0], range.bounds.low});
  }
  if (has_bounds) bindings.ranges = std::move(combination.ranges);
  return choice;
}

}  // namespace

std::vector<SizeChoice> size_choices(const Options& options) {
  std::size_t count = 1;
  std::vector<Combination> combinations = {{"", options.import.bindings.ranges}};
  for (std::size_t i = 0; i < options.choices.size(); ++i) {
    count *= options.choices[i].sizes.size();
    if (count > kMostChoices) {
      usage_error(fmt::format("--dim: more than {} combinations of sizes", kMostChoices),
                  "give fewer sizes, and pad inputs to the next larger one");
    }
    combinations = longer(combinations, options.choices[i], i);
  }
  std::vector<SizeChoice> choices;
  for (Combination& combination : combinations) choices.push_back(choice_of(options, std::move(combination)));
  return choices;
}

}  // namespace gcompile
