#pragma once
// Recognises outputs that may be written where an input lies:
// states that grow or change in place (DESIGN law 13).

#include "ir/graph/graph.h"

namespace gcompile {

/// Whether every element of `result` whose index along `axis` lies inside `input` is the element of `input`
/// of that very index: a Concat, a stack or a transposition of such, written however. The shapes differ
/// along `axis` alone. Of forms, not of operators: what is read is followed through everything that only
/// moves, and through what is scattered into rows that nothing else reads.
bool keeps_rows(const ir::Graph& graph, ir::ValueId result, ir::ValueId input, int axis);

/// The same for shapes that do not differ. Elements may also be computed, each from the one in its place,
/// where nothing else reads that.
bool changes_in_place(const ir::Graph& graph, ir::ValueId result, ir::ValueId input);

}  // namespace gcompile
