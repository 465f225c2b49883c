#pragma once
// Sizes for dimensions that the user has left open, as the error about them proposes.

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/sizes/dims.h"

namespace gcompile::frontend {

/// One size for the first axis of every input, which mostly counts a batch, and one for the other axes.
struct SuggestedSizes {
  std::int64_t first = 1;
  std::int64_t other = 1;
  bool fail = false;                      // they were tried, and so were others, and the model refuses all
  std::string name = {};                  // a dimension whose caller may choose, the others being as they are
  std::string choices = {}, bounds = {};  // of it, as --dim takes them; empty: none that fit are known
  std::int64_t of(std::size_t axis) const { return axis == 0 ? first : other; }
};

/// resolve_inputs() of dims.h, whose error about open dimensions proposes these sizes.
std::vector<ResolvedInput> resolve_inputs(const std::vector<DeclaredInput>& inputs,
                                          const InputBindings& bindings, const Limits& limits,
                                          const SuggestedSizes& suggested, Diagnostics& diagnostics);

/// `bindings` and these sizes for whatever they leave open.
InputBindings with_sizes(const std::vector<DeclaredInput>& inputs, const InputBindings& bindings,
                         const Limits& limits, const SuggestedSizes& sizes);

}  // namespace gcompile::frontend
