#include "driver/size_choices.h"

#include <fmt/format.h>

#include "driver/command_line/option_table.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

/// Each is a schedule of its own: more are better served by fewer sizes and padding.
constexpr std::size_t kMostChoices = 64;

SizeChoice with(const SizeChoice& choice, const std::string& name, std::int64_t size) {
  SizeChoice out = choice;
  out.sizes.push_back(size);
  out.text += fmt::format("{}{}={}", out.text.empty() ? "" : ", ", ir::printable(name), size);
  out.options.import.bindings.dims.push_back({name, size});
  return out;
}

}  // namespace

std::vector<SizeChoice> size_choices(const Options& options) {
  std::size_t count = 1;
  for (const frontend::DimChoices& dim : options.choices) {
    count *= dim.sizes.size();
    if (count <= kMostChoices) continue;
    usage_error(fmt::format("--dim: more than {} combinations of sizes", kMostChoices),
                "give fewer sizes, and pad inputs to the next larger one");
  }
  if (!options.choices.empty() && !options.import.bindings.ranges.empty()) {
    throw ir::CompileError(ir::ExitCode::kUsage,
                           "--dim gives choices for one dimension and bounds for another: either for all");
  }
  std::vector<SizeChoice> choices(1);
  choices[0].options = options;
  choices[0].options.choices.clear();
  for (const frontend::DimChoices& dim : options.choices) {
    std::vector<SizeChoice> longer;
    for (const SizeChoice& choice : choices) {
      for (const std::int64_t size : dim.sizes) longer.push_back(with(choice, dim.name, size));
    }
    choices = std::move(longer);
  }
  for (SizeChoice& choice : choices) {
    if (choice.text.empty()) continue;
    if (!options.dump_dir.empty()) choice.options.dump_dir += "/" + choice.text;
  }
  return choices;
}

}  // namespace gcompile
