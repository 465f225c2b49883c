#pragma once
// Pairs of --state whose names have a star: one for each input that fits.

#include <string>
#include <utility>
#include <vector>

#include "frontend/files/model_ports.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// The names of input and output of a pair.
using StatePair = std::pair<std::string, std::string>;

/// `pairs` in their order, where one such as `past_*=present_*` is replaced by a pair for each input of the
/// model whose name fits, in the model's order: the star of the output stands for what the star of the input
/// stands for. A name that the model has is that name, whatever stars are in it. Throws CompileError with
/// kUsage: a star on one side alone or several on one, no input that fits, an output that there is not, an
/// input or output that is paired twice.
std::vector<StatePair> without_patterns(const std::vector<StatePair>& pairs,
                                        const frontend::ModelPorts& ports);
/// Whether a pair may be a pattern.
bool has_star(const StatePair& pair);

/// What --state would say of inputs and outputs whose names tell that one run's output is the next one's
/// input, as `past_0` and `present_0` or `h_in` and `h_out`: of the same rank, with at most one axis that
/// grows. With a star for what several pairs have in common. Empty also where there is no other input, or
/// no other output.
std::vector<StatePair> likely_states(const ir::Graph& graph);
/// A sentence with the flags to type; "" where there are none.
std::string hint_of_states(const ir::Graph& graph);

}  // namespace gcompile
