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
  for (const DimBounds& given : bindings.bounds) {
    if (given.names.size() > 1) continue;
    const std::string& name = given.names[0];
    const std::int64_t multiple = given.multiple;
    const int symbol = sizes.add_symbol({name,
                                         {given.bounds.low / multiple, given.bounds.high / multiple},
                                         given.typical / multiple,
                                         multiple});
    if (!by_name.emplace(name, ir::Dim::symbol(symbol) * multiple).second) {
      throw CompileError(ExitCode::kUsage, fmt::format("--dim gives sizes for '{}' twice", name));
    }
  }
  for (const DimBounds& given : bindings.bounds) {
    if (given.names.size() == 1) continue;
    const std::string text = fmt::format("{}", fmt::join(given.names, "+"));
    ir::Dim sum = 0;
    for (const std::string& name : given.names) {
      const auto at = by_name.find(name);
      if (at == by_name.end()) {
        throw CompileError(ExitCode::kUsage,
                           fmt::format("--dim {}: '{}' has no size of its own", text, name));
      }
      sum += at->second;
    }
    const ir::Bounds reach = sizes.bounds(sum);
    if (reach.high < given.bounds.low || reach.low > given.bounds.high) {
      throw CompileError(ExitCode::kUsage,
                         fmt::format("--dim {}: the sum is {} to {}, never {} to {}", text, reach.low,
                                     reach.high, given.bounds.low, given.bounds.high));
    }
    if (!sizes.resolved(sum).is_constant()) sizes.add_fact(sum, given.bounds);
  }
  return sizes;
}

}  // namespace gcompile::frontend
