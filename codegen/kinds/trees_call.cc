#include "codegen/kinds/trees_call.h"

#include <fmt/format.h>

#include "codegen/kinds/tree_nodes.h"

namespace gcompile {

std::string tree_operands(const ir::Problem& problem, CallWriter& writer) {
  const auto& work = std::get<ir::TreesWork>(problem.work);
  writer.operand(0, "x");
  writer.packed(1, pack_tree_rows(*writer.constant(1), work.trees), "trees", "trees", "std::uint8_t");
  writer.operand(2, "values");
  writer.result(0, "y");
  const ir::Shape& x = problem.shape(0);
  return fmt::format(
      "/*rows, columns, groups, trees of one, width*/ {}",
      writer.call().sizes.list({x[0], x[1], work.groups, work.trees / work.groups, problem.shape(2)[1]}));
}

std::string trees_text(const std::string& element, const std::string& node, const std::string& shape) {
  return fmt::format(
      "  using Node = {};\n"
      "  const Trees<{}, Node> all{{x, table<TreeRow>(trees), table<Node>(nodes), values, y,\n"
      "                           {}}};\n",
      node, element, shape);
}

std::string combine_of(const ir::TreesWork& work) {
  return work.combine == ir::TreeCombine::kMin   ? "TreeMin"
         : work.combine == ir::TreeCombine::kMax ? "TreeMax"
                                                 : "TreeSum";
}

}  // namespace gcompile
