#pragma once
// Recognises outputs that are an input with more rows behind its own: states that grow in place (DESIGN law
// 13).

#include "ir/graph.h"

namespace gcompile {

/// Whether every element of `result` whose index along `axis` lies inside `input` is the element of `input`
/// of that very index: a Concat, a stack or a transposition of such, written however. The shapes differ
/// along `axis` alone. Of forms, not of operators: what is read is followed through everything that only
/// moves.
bool keeps_rows(const ir::Graph& graph, ir::ValueId result, ir::ValueId input, int axis);

}  // namespace gcompile
