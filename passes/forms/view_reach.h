#pragma once
// Whether what a kernel writes can be read where it lies by all that read it, through any number of views.

#include <string>

#include "ir/graph/graph.h"

namespace gcompile::passes {

/// Why a value of these strides would be copied by a reader, by name, or is an output as it is or through a
/// view; empty: every reader computes on it or contracts it where it lies. Forms need not be attached.
std::string unless_views_reach(const ir::Graph& graph, ir::ValueId value, ir::Shape strides);

}  // namespace gcompile::passes
