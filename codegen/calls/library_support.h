#pragma once
// What families of kernels with their own control share.

#include "codegen/calls/call_writer.h"

namespace gcompile {

/// Dense row-major operands.
/// Takes a problem of any formulas, as kernels can that take every size as an argument.
bool takes_all_formulas(const ir::Problem& problem);
NeededOrder needs_row_major(const ir::Problem& problem, std::size_t i);
Refusal refuse_half(const ir::Problem& problem);
/// One plan, bound by the bytes that it moves.
std::vector<PlannedCost> streaming_plan(const ir::Problem& problem, const Machine& machine);
std::vector<PlannedCost> cuda_streaming_plan(const ir::Problem& problem, const Machine& machine);

/// Adds the parameters values and positions of a TopK; results that nothing reads need a place all the same.
void top_k_results(const ir::Problem& problem, CallWriter& writer);

/// Lines along an axis of a dense shape.
struct Lines {
  ir::Dim outer = 1, extent, inner = 1;
  Lines(const ir::Shape& shape, int axis);
};

/// On a device: how lines are spread over the grid, for the model of time, at the typical sizes.
struct LineWalks {
  std::int64_t blocks = 1;  // of all lines
  std::int64_t walks = 1;   // over each line
  double rounds = 1;        // in which a thread waits for memory, one behind the other
};
void note_line_walks(DeviceCall& call, const LineWalks& lines, std::int64_t bytes);

/// Adds x, the rows of the trees, values and y, and returns the sizes: "/*rows, columns, groups, trees, width*/ 8, 4...".
std::string tree_operands(const ir::Problem& problem, CallWriter& writer);
/// "const Trees<float, NODE> all{x, ..., SHAPE};"
std::string trees_text(const std::string& element, const std::string& node, const std::string& shape);
/// "TreeSum".
std::string combine_of(const ir::TreesWork& work);

}  // namespace gcompile
