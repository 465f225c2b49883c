#include "codegen/calls/library_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/calls/cuda_time.h"
#include "codegen/loops/c_types.h"
#include "codegen/packing/tree_nodes.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

bool takes_all_formulas(const ir::Problem&) { return true; }

NeededOrder needs_row_major(const ir::Problem& problem, std::size_t i) {
  const ir::ProblemOperand& operand = problem.operands[i];
  const ir::Shape dense = ir::row_major_strides(operand.shape);
  for (std::size_t axis = 0; axis < operand.shape.size(); ++axis) {
    if (operand.shape[axis] != 1 && operand.strides[axis] != dense[axis]) return std::vector<int>{};
  }
  return std::nullopt;
}

Refusal refuse_half(const ir::Problem& problem) {
  const ir::ElementType element = problem.operands[0].element;
  if (compute_type(element) != element) return fmt::format("elements of {}", name_of(element));
  return std::nullopt;
}

std::vector<PlannedCost> streaming_plan(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes());
  return {only};
}

std::vector<PlannedCost> cuda_streaming_plan(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = streaming_picoseconds(problem, machine);
  return {only};
}

void top_k_results(const ir::Problem& problem, CallWriter& writer) {
  const auto& work = std::get<ir::TopKWork>(problem.work);
  const Lines lines(problem.shape(0), work.axis);
  const std::array<const char*, 2> names = {"values", "positions"};
  const std::array<ir::ElementType, 2> elements = {problem.operands[0].element, ir::ElementType::kInt64};
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (writer.has_result(i)) {
      writer.result(i, names[at]);
    } else {
      writer.scratch(bytes_of(elements[at], ir::highest(lines.outer * lines.inner * work.k)), names[at],
                     kernel_type(elements[at]));
    }
  }
}

void note_line_walks(DeviceCall& call, const LineWalks& lines, std::int64_t bytes) {
  call.time.blocks = lines.blocks;
  call.rounds = lines.rounds;
  call.bytes_again = static_cast<double>((lines.walks - 1) * bytes);
}

Lines::Lines(const ir::Shape& shape, int axis) : extent(shape[axis]) {
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (i != axis) (i < axis ? outer : inner) *= shape[i];
  }
}

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
