#pragma once
// What calls of kernels of decision trees share.

#include <string>

#include "codegen/calls/call_writer.h"

namespace gcompile {

/// Adds x, the rows of the trees, values and y, and returns the sizes: "/*rows, columns, groups, trees, width*/ 8, 4...".
std::string tree_operands(const ir::Problem& problem, CallWriter& writer);
/// "const Trees<float, NODE> all{x, ..., SHAPE};"
std::string trees_text(const std::string& element, const std::string& node, const std::string& shape);
/// "TreeSum".
std::string combine_of(const ir::TreesWork& work);

}  // namespace gcompile
