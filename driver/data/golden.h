#pragma once

#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// Test vectors for tests/selftest.cpp: seeded random inputs and what the evaluator makes of them on `graph`,
/// which is as imported. A model with state runs several times in a row.
///
///     "GCGOLDEN", version 1, number of runs (8 bytes each), then for each run the bytes of all inputs and of
///     all outputs, in order
std::string golden_vectors(const ir::Graph& graph, const std::vector<StateTensor>& states);

}  // namespace gcompile
