// product.tile: tiles of accumulators in registers over panels of B. Source: the micro-kernels of BLIS (Van
// Zee and van de Geijn, 2015); CUDA: tensor cores fed through shared memory.

#include <fmt/format.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/cuda_product.h"
#include "codegen/kernels/dense_plan.h"
#include "codegen/kernels/image_weights.h"
#include "codegen/kernels/product_gemv.h"

namespace gcompile {
namespace {

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  const std::int64_t panels = (product.columns + 15) / 16 * 16 * product.depth;
  const bool packs = !problem.operands[1].constant;
  PlannedCost only;
  DenseWork work = dense_work(product, 4);
  work.may_cut_depth = !machine.smallest_scratch;
  only.plan = dense_plan(work, machine);
  only.cost.picoseconds =
      machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.7 * float_rate(work, machine));
  only.cost.scratch = (packs ? panels * 4 : 0) + parked_bytes(work, only.plan);
  only.cost.code_key = "gemm";
  return {only};
}

/// Whether some run, but not every one, is one row by a matrix that need not be packed: product.gemv.
bool may_be_in_place(const ir::Problem& problem, const Product& product) {
  const ir::Dim rows = product.axes.row_count;
  return !rows.is_constant() && ir::lowest(rows) <= 1 && !refuse_unless_float32(problem) &&
         !refuse_in_place(problem);
}

void call(const ir::Problem& problem, const Plan& chosen, CallWriter& writer) {
  const Plan plan = ir::are_constant(problem) ? chosen : without_cuts_of_depth(chosen);
  const Product product(problem);
  const ProductAxes& axes = product.axes;
  const ir::Problem typical = ir::at_typical(problem);
  const DenseWork work = dense_work(Product(typical), 4);
  const ir::Tensor* b_constant = writer.constant(1);
  KernelCall& out = writer.call();
  const std::string rows = out.sizes(axes.row_count), columns = out.sizes(product.columns),
                    depth = out.sizes(product.depth), row_stride = out.sizes(axes.row_stride);
  out.headers = {"gcrt/cpu/gemm.h"};
  writer.operand(0, "a");
  const ir::Dim panel_floats = ceil_div(product.columns, 16) * 16 * product.depth;
  ir::Shape b_strides;
  if (b_constant) {
    // One packed matrix per batch entry of the constant.
    writer.packed(1, pack_panels(*b_constant, product_matrices(product.b)), "packed for gemm", "b");
    b_strides = product.packed_strides(panel_floats);
  } else {
    b_strides = writer.operand(1, "b").strides;
    writer.scratch(ir::highest(panel_floats * 4), "packed", "float");
  }
  if (cuts_depth(plan)) writer.scratch(parked_bytes(work, plan), "sums", "float");
  const EpilogueWriter epilogue(writer, axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  if (may_be_in_place(problem, product)) {
    out.headers.push_back("gcrt/cpu/gemv.h");
    out.threaded = true;
    code.open(fmt::format("if ({} == 1) {{  // b is read where it lies", rows));
    write_gemv(problem, b_strides, epilogue, code, out.sizes);
    code.line("return;");
    code.close();
  }
  const BatchLoops batch = open_batch_loops(product, code, out.sizes);
  const std::string b_source = batch_entry_of_b(product, b_strides, out.sizes);
  if (!b_constant) {
    const std::size_t last = product.b.size() - 1;
    const std::string along_k = out.sizes(b_strides[last - 1]), along_n = out.sizes(b_strides[last]);
    code.line(fmt::format("pack_b({}, {}, {}, {}, {}, packed);", depth, columns, b_source, along_k, along_n));
  }
  code.line(epilogue.declaration());
  write_dense_plan(plan, code, in_bfloat16(work, writer));
  call_in_parallel(out, code, fmt::format("gemm_work_items<Tile>({}, {}, blocking)", rows, columns),
                   fmt::format("gemm<Tile>({}, {}, {}, {}, {}, {}, blocking, epilogue, begin, end{})", rows,
                               columns, depth, batch.a, row_stride, b_constant ? b_source : "packed",
                               cuts_depth(plan) ? ", sums" : ""));
  for (int i = 0; i < batch.loops; ++i) code.close();
  out.body = code.text();
}

Refusal refuses_elements(const ir::Problem& problem, const Machine& machine) {
  return refuse_unless_factors(problem, machine, 2, {0});
}

/// Few rows of a constant B are product.gemv's.
Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuses_elements(problem, machine)) return elements;
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (element_bytes(problem, 0) != 4 && Product(problem).axes.row_stride % 2 != 0) {
    return "rows of an odd number of elements of 16 bits";
  }
  if (is_gemv(problem, machine)) return "at most eight rows of packed weights";
  return std::nullopt;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  return {product_plan(problem, machine)};
}

void cuda_call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  write_tensor_core_product(problem, plan, writer);
}

}  // namespace

const KernelFamily& family_product_tile() {
  static const KernelFamily family = {"product.tile",
                                      ir::Kind::kProduct,
                                      refuse_block_weights,
                                      {{{.refuses = refuses_elements,
                                         .takes_formulas = takes_dense_formulas,
                                         .needs = needs_dense_rows,
                                         .fields = dense_fields(),
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = cuda_refuses,
                                         .takes_formulas = takes_open_products,
                                         .needs = needs_dense_rows,
                                         .fields = tile_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call}}}};
  return family;
}

}  // namespace gcompile
