// product.tile: tiles of accumulators in registers over panels of B. Source: the micro-kernels of BLIS (Van
// Zee and van de Geijn, 2015); CUDA: tensor cores fed through shared memory.

#include <fmt/format.h>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/batch_items.h"
#include "codegen/kinds/cuda_product.h"
#include "codegen/kinds/dense_plan.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/kinds/product_gemv.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

bool is_of_floats(const ir::Problem& problem) {
  return problem.operands[0].element == ir::ElementType::kFloat32;
}

std::int64_t bytes_of_element(const ir::Problem& problem) {
  return ir::bits_of(problem.operands[0].element) / 8;
}

/// The work of one entry of the batch, cut as the entries beside it leave work for threads. Plans choose tiles
/// for elements of four bytes.
DenseWork entry_work(const ir::Problem& problem) {
  const Product product(problem);
  DenseWork work = dense_work(product, bytes_of_element(problem));
  for (const std::size_t axis : product.axes.batch) work.groups *= product.out[axis];
  work.has_tile = bytes_of_element(problem) == 4;
  return work;
}

/// Elements of the right side of an entry.
ir::Dim panel_elements(const Product& product) { return ceil_div(product.columns, 16) * 16 * product.depth; }

std::int64_t scratch_bytes(const ir::Problem& problem, const KernelPlan& plan) {
  const bool packs = !problem.operands[1].constant;
  return (packs ? std::int64_t{panel_elements(Product(problem))} * bytes_of_element(problem) : 0) +
         parked_bytes(entry_work(problem), plan);
}

/// The share of the peak of float32 that multiply-adds of the elements have.
double rate_of(const ir::Problem& problem, const DenseWork& work, const Machine& machine) {
  switch (problem.operands[0].element) {
    case ir::ElementType::kFloat32:
      return float_rate(work, machine);
    case ir::ElementType::kInt64:
    case ir::ElementType::kUInt64:
      return 0.12;  // a vector has half of the lanes, and the product of two is made of three of 32 bits
    default:
      return 0.5;  // half of the lanes, or a product of 32 bits that takes two steps
  }
}

std::int64_t time_of(const ir::Problem& problem, const DenseWork& work, const Machine& machine) {
  return machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.7 * rate_of(problem, work, machine));
}

std::int64_t parts_of(const ir::Problem& problem, const KernelPlan& plan, const Machine& machine) {
  return batch_parts(problem, scratch_bytes(problem, plan), time_of(problem, entry_work(problem), machine),
                     machine);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  DenseWork work = entry_work(problem);
  work.may_cut_depth = !machine.smallest_scratch && is_of_floats(problem);
  only.plan = dense_plan(work, machine);
  only.cost.picoseconds = time_of(problem, work, machine);
  only.cost.scratch = parts_of(problem, only.plan, machine) * scratch_bytes(problem, only.plan);
  only.cost.code_key = "gemm";
  return {only};
}

/// Whether some run, but not every one, is one row by a matrix that need not be packed: product.gemv.
bool may_be_in_place(const ir::Problem& problem, const Product& product) {
  const ir::Dim rows = product.axes.row_count;
  return !rows.is_constant() && ir::lowest(rows) <= 1 && !refuse_unless_float32(problem) &&
         !refuse_in_place(problem);
}

void call(const ir::Problem& problem, const KernelPlan& chosen, CallWriter& writer) {
  const KernelPlan plan = ir::are_constant(problem) ? chosen : without_cuts_of_depth(chosen);
  const Product product(problem);
  const ProductAxes& axes = product.axes;
  const DenseWork work = entry_work(ir::at_typical(problem));
  const ir::Tensor* b_constant = writer.constant(1);
  KernelCall& out = writer.call();
  const std::string rows = out.sizes(axes.row_count), columns = out.sizes(product.columns),
                    depth = out.sizes(product.depth), row_stride = out.sizes(axes.row_stride);
  out.headers = {"gcrt/cpu/product/gemm.h"};
  writer.operand(0, "a");
  // Memory is that of the largest sizes, whatever is typical.
  const BatchItems batch(product, parts_of(ir::at_highest(problem), plan, writer.machine()), out.sizes);
  const ir::Dim panels = panel_elements(product);
  const std::string element = kernel_type(problem.operands[0].element);
  ir::Shape b_strides;
  if (b_constant) {
    // One packed matrix per batch entry of the constant.
    writer.packed(1, pack_panels(*b_constant, product_matrices(product.b)), "packed for gemm", "b", element);
    b_strides = product.packed_strides(panels);
  } else {
    b_strides = writer.operand(1, "b").strides;
    writer.scratch(ir::highest(batch.elements(panels) * bytes_of_element(problem)), "packed", element);
  }
  const std::int64_t parked = parked_bytes(work, plan);
  if (parked > 0) writer.scratch(batch.elements(parked), "sums", "float");
  const EpilogueWriter epilogue(writer, axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  if (may_be_in_place(problem, product)) {
    out.headers.push_back("gcrt/cpu/product/gemv.h");
    code.open(fmt::format("if ({} == 1) {{  // b is read where it lies", rows));
    write_gemv(problem, b_strides, epilogue, code, out);
    code.line("return;");
    code.close();
  }
  const std::string packed = batch.of_part("packed", panels), sums = batch.of_part("sums", parked / 4);
  const auto pack = [&] {
    const std::size_t last = product.b.size() - 1;
    const std::string step = out.sizes(b_strides[last - 1]) + ", " + out.sizes(b_strides[last]);
    code.line(fmt::format("pack_b({}, {}, {}, {}, {});", depth, columns, batch.b(b_strides), step, packed));
  };
  const std::string tile = is_of_floats(problem) ? dense_tile(plan, in_bfloat16(work, writer))
                           : work.has_tile       ? dense_tile(plan)
                                                 : "WideTile";
  if (!batch.is_one()) {
    write_blocking(plan, code);
    const std::string counted = is_of_floats(problem) ? tile : tile + ", " + element;
    batch.open(out, code, fmt::format("gemm_work_items<{}>({}, {}, blocking)", counted, rows, columns),
               epilogue.named_axes(), b_strides, !b_constant || parked > 0);
  }
  if (!b_constant) pack();
  const Text operands = fmt::format("{}, {}, {}, {}, {}, {}, blocking, ", rows, columns, depth, batch.a(),
                                    row_stride, b_constant ? batch.b(b_strides) : packed);
  const std::string parts = parked > 0 ? ", " + sums : "";
  if (batch.is_one()) {
    write_blocking(plan, code);
    call_with_threads(out, code, fmt::format("gemm<{}>", tile), operands + epilogue.value() + parts);
  } else {
    code.line(epilogue.declaration());
    code.line(fmt::format("gemm<{}>(", tile) + operands + "epilogue, begin, end" + parts + ");");
    batch.close(code);
  }
  out.body = code.text();
}

/// Elements of the accumulator, which a MatMul's are. Where no kernel reads the right side as it lies
/// (product.gemv), to pack it takes longer than to multiply a few rows by it.
Refusal refuses_elements(const ir::Problem& problem, const Machine&) {
  constexpr std::int64_t kFewRows = 4;
  for (std::size_t i = 0; i < 2; ++i) {
    const ir::ElementType element = problem.operands[i].element;
    if (element != problem.accumulator || ir::bits_of(element) < 32)
      return fmt::format("elements of {}", name_of(element));
  }
  if (!is_of_floats(problem) && !problem.operands[1].constant &&
      ir::highest(Product(problem).axes.row_count) < kFewRows)
    return "few rows by a matrix of the run";
  return std::nullopt;
}

/// Few rows of a constant B are product.gemv's.
Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuse_unless_factors(problem, machine, 2, {0})) return elements;
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

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  write_tensor_core_product(problem, plan, writer);
}

}  // namespace

const KernelFamily& family_product_tile() {
  static const KernelFamily family = {"product.tile",
                                      ir::Kind::kProduct,
                                      refuse_packed_weights,
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
