#pragma once

#include <map>

#include "ir/forms/form.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// The form of every node of a graph that is put in order and lowered.
using NodeForms = std::map<ir::NodeId, ir::Form>;

}  // namespace gcompile
