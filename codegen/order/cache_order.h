#pragma once
// An order in which what appends rows to a cache comes right before the attention that reads it, so that one
// kernel can do both.

#include <vector>

#include "codegen/order/node_forms.h"

namespace gcompile {

bool is_attention(const ir::Form& form);
/// Whether the node joins two values, moved as they may be.
bool joins_two_parts(const ir::Graph& graph, const NodeForms& forms, ir::NodeId id);

/// `order`, in which every node comes before its readers, with the Concats of keys and of values, and views
/// of them, moved right before their attention where nothing that it needs reads them.
std::vector<ir::NodeId> with_caches_late(const ir::Graph& graph, const NodeForms& forms,
                                         std::vector<ir::NodeId> order);

}  // namespace gcompile
