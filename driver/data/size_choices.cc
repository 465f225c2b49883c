#include "driver/data/size_choices.h"

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "driver/command_line/option_table.h"

namespace gcompile {
namespace {

/// Each is a schedule of its own: more are better served by fewer sizes and padding.
constexpr std::size_t kMostChoices = 64;

/// What the caller tells, and what else --dim bounds, in the order of the command line.
struct Chosen {
  std::string text;
  std::vector<frontend::DimBounds> bounds;
};

/// Each choice with each size of `dim`, before which `dims_before` others were chosen.
std::vector<Chosen> longer(const std::vector<Chosen>& choices_so_far, const frontend::DimList& dim,
                           std::size_t dims_before) {
  const auto place = static_cast<std::ptrdiff_t>(dim.bounds_before + dims_before);
  std::vector<Chosen> out;
  for (const Chosen& shorter : choices_so_far) {
    for (const std::int64_t size : dim.sizes) {
      Chosen& own = out.emplace_back(shorter);
      own.text += fmt::format("{}{}={}", own.text.empty() ? "" : ", ", printable(dim.name), size);
      own.bounds.insert(own.bounds.begin() + place, {{dim.name}, {size, size}, 1, size});
    }
  }
  return out;
}

/// Numbers where all sizes are chosen. Beside bounds, bounds that leave one number: a symbol is the same size
/// in all schedules.
SizeChoice choice_of(const Options& options, Chosen chosen) {
  SizeChoice choice{{}, std::move(chosen.text), options};
  choice.options.size_lists.clear();
  if (!choice.text.empty() && !options.dump_dir.empty()) choice.options.dump_dir += "/" + choice.text;
  frontend::InputBindings& bindings = choice.options.import.bindings;
  const bool has_bounds = !bindings.bounds.empty();
  for (const frontend::DimBounds& dim : chosen.bounds) {
    if (dim.names.size() > 1) continue;
    choice.sizes.push_back(dim);
    if (!has_bounds) bindings.dims.push_back({dim.names[0], dim.bounds.low});
  }
  if (has_bounds) bindings.bounds = std::move(chosen.bounds);
  return choice;
}

}  // namespace

std::vector<SizeChoice> size_choices(const Options& options) {
  std::size_t count = 1;
  std::vector<Chosen> choices_so_far = {{"", options.import.bindings.bounds}};
  for (std::size_t i = 0; i < options.size_lists.size(); ++i) {
    count *= options.size_lists[i].sizes.size();
    if (count > kMostChoices) {
      usage_error(fmt::format("--dim: more than {} choices of sizes", kMostChoices),
                  "give fewer sizes, and pad inputs to the next larger one");
    }
    choices_so_far = longer(choices_so_far, options.size_lists[i], i);
  }
  std::vector<SizeChoice> choices;
  for (Chosen& chosen : choices_so_far) choices.push_back(choice_of(options, std::move(chosen)));
  return choices;
}

}  // namespace gcompile
