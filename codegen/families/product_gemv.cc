// product.gemv. CUDA: at most eight rows by packed weights, which are read once, at the speed of memory. CPU:
// one row by a matrix of the run, as a cache of keys is, which is read where it lies; one row by packed
// weights is product.tile's, which reads them at the speed of memory:
// one panel after the other was no faster.

#include "codegen/kinds/product_gemv.h"

#include <fmt/format.h>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/head_coordinates.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/cuda_product.h"
#include "codegen/kinds/dense_plan.h"
#include "codegen/kinds/image_windows.h"

namespace gcompile {
namespace {

/// Whether the right side lies along the depth, from one column to the next,
/// and not from one row to the next.
bool is_along_depth(const ir::Problem& problem) {
  const ir::ProblemOperand& b = problem.operands[1];
  return b.strides.back() != 1 && b.strides[b.strides.size() - 2] == 1;
}

Refusal refuses(const ir::Problem& problem, const Machine&) {
  if (Refusal right_side = refuse_in_place(problem)) return right_side;
  if (Product(problem).axes.row_count != 1) return "more than one row";
  return std::nullopt;
}

/// Whatever is typical: a single row in every run.
bool takes_formulas(const ir::Problem& problem) {
  const ir::ProblemOperand& b = problem.operands[1];
  return takes_dense_formulas(problem) && Product(problem).axes.row_count.is_constant() &&
         (is_along_depth(problem) || b.strides.back() == 1);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(),
                                              0.7 * float_rate(dense_work(product, 4), machine));
  only.cost.code_key = "gemv";
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const Product product(problem);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/product/gemv.h"};
  writer.operand(0, "a");
  const ir::Shape b_strides = writer.operand(1, "b").strides;
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  write_gemv(problem, b_strides, epilogue, code, out);
  out.body = code.text();
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (!is_gemv(problem, machine)) return "more than eight rows, or a right side of the run";
  return std::nullopt;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  return {product_plan(problem, machine)};
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  write_tensor_core_product(problem, plan, writer);
}

}  // namespace

Refusal refuse_in_place(const ir::Problem& problem) {
  if (problem.operands[1].constant) return "product.tile reads packed weights as fast";
  if (problem.operands[1].shape.size() < 2) return "a right side of one axis";
  if (!is_along_depth(problem) && problem.operands[1].strides.back() != 1)
    return "a right side that is contiguous along neither axis";
  return std::nullopt;
}

void write_gemv(const ir::Problem& problem, const ir::Shape& b_strides, const EpilogueWriter& epilogue,
                CodeText& code, KernelCall& out) {
  SizeParameters& sizes = out.sizes;
  const Product product(problem);
  ir::Shape entries(product.out.begin(), product.out.end() - 1);
  for (const int row : product.axes.rows) entries[row] = 1;
  ir::Shape along_a, along_b;
  for (std::size_t axis = 0; axis < entries.size(); ++axis) {
    along_a.push_back(product.along_a(axis));
    along_b.push_back(product.along_b(b_strides, axis));
  }
  const std::size_t last = b_strides.size() - 1;
  const bool along_depth = is_along_depth(problem);
  const std::string count = sizes(ir::element_count(entries)), columns = sizes(product.columns),
                    depth = sizes(product.depth), step = sizes(b_strides[along_depth ? last : last - 1]);
  const HeadOffset to_a = moved(along_a, entries, sizes), to_b = moved(along_b, entries, sizes);
  std::set<int> axes = to_a.axes;
  axes.insert(to_b.axes.begin(), to_b.axes.end());
  axes.insert(epilogue.named_axes().begin(), epilogue.named_axes().end());
  code.open(
      fmt::format("for_columns({}, /*products*/ {}, {}, [&](std::ptrdiff_t{}, std::ptrdiff_t begin, "
                  "std::ptrdiff_t end) {{",
                  threads_argument(out), count, columns, axes.empty() ? "" : " entry"));
  declare_coordinates(code, "entry", axes, entries, sizes);
  code.line(epilogue.declaration());
  code.line(fmt::format("gemv</*along the depth*/ {}>({}, a{}, b{}, {}, epilogue, begin, end);", along_depth,
                        depth, to_a.text, to_b.text, step));
  code.close("});");
}

const KernelFamily& family_product_gemv() {
  static const KernelFamily family = {"product.gemv",
                                      ir::Kind::kProduct,
                                      refuse_unless_float32,
                                      {{{.refuses = refuses,
                                         .takes_formulas = takes_formulas,
                                         .needs = needs_dense_rows,
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = cuda_refuses,
                                         .needs = needs_dense_rows,
                                         .fields = tile_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call,
                                         .device = {.takes_made_rows = takes_made_rows}}}}};
  return family;
}

}  // namespace gcompile
