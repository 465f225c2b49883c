#pragma once

#include <vector>

#include "codegen/order/node_forms.h"

namespace gcompile {

/// An order of the nodes in which fewer bytes live at a time. Views count as their operand.
/// `given`: an order.
std::vector<ir::NodeId> lowest_peak_order(const ir::Graph& graph, const NodeForms& forms,
                                          const std::vector<ir::NodeId>& given);

}  // namespace gcompile
