// What --dim bounds, as symbols and facts.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "frontend/sizes/dims.h"

namespace gcompile::frontend {

ir::Sizes size_symbols(const InputBindings& bindings) {
  ir::Sizes sizes;
  std::map<std::string, ir::Dim> by_name;
  for (const DimBinding& dim : bindings.dims) by_name.emplace(dim.name, dim.size);
  for (const DimRange& range : bindings.ranges) {
    if (range.names.size() > 1) continue;
    const std::string& name = range.names[0];
    const std::int64_t unit = range.multiple;
    const int symbol = sizes.add_symbol(
        {name, {range.bounds.low / unit, range.bounds.high / unit}, range.typical / unit, unit});
    if (!by_name.emplace(name, ir::Dim::symbol(symbol) * unit).second) {
      throw CompileError(ExitCode::kUsage, fmt::format("--dim gives sizes for '{}' twice", name));
    }
  }
  for (const DimRange& range : bindings.ranges) {
    if (range.names.size() == 1) continue;
    const std::string text = fmt::format("{}", fmt::join(range.names, "+"));
    ir::Dim sum = 0;
    for (const std::string& name : range.names) {
      const auto at = by_name.find(name);
      if (at == by_name.end()) {
        throw CompileError(ExitCode::kUsage,
                           fmt::format("--dim {}: '{}' has no size of its own", text, name));
      }
      sum += at->second;
    }
    const ir::Bounds reach = sizes.bounds(sum);
    if (reach.high < range.bounds.low || reach.low > range.bounds.high) {
      throw CompileError(ExitCode::kUsage,
                         fmt::format("--dim {}: the sum is {} to {}, never {} to {}", text, reach.low,
                                     reach.high, range.bounds.low, range.bounds.high));
    }
    if (!sizes.resolved(sum).is_constant()) sizes.add_fact(sum, range.bounds);
  }
  return sizes;
}

}  // namespace gcompile::frontend
