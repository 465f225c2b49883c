// product.integer: exact sums in int32 over 8-bit operands, by a constant matrix (DESIGN law 7).

#include <fmt/format.h>

#include <algorithm>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/dense_plan.h"
#include "codegen/kernels/image_weights.h"
#include "codegen/kernels/integer_weights.h"
#include "codegen/kernels/matrix_product.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (!problem.operands[1].constant || problem.shape(1).size() != 2)
    return "the right side is no constant matrix";
  return refuse_unless_integer(problem);
}

/// Opens the loops over the batch; returns the pointer to the left matrix there.
std::string open_batch(const Product& product, CodeText& code) {
  std::string pointer = "a";
  for (std::size_t axis = 0; axis + 2 < product.rank(); ++axis) {
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, product.out[axis]));
    const std::size_t lead = product.rank() - product.a.size();
    if (axis >= lead && product.a[axis - lead] != 1) {
      pointer += fmt::format(" + {} * b{}", product.a_strides[axis - lead], axis);
    }
  }
  return pointer;
}

void close_batch(const Product& product, CodeText& code) {
  for (std::size_t axis = 0; axis + 2 < product.rank(); ++axis) code.close();
}

/// Of one entry of the batch.
DenseWork row_work(const Product& product) {
  DenseWork work = dense_work(product, 1);
  work.left_bytes = work.left_bytes / std::max<std::int64_t>(1, work.rows) * product.out[product.rank() - 2];
  work.rows = product.out[product.rank() - 2];
  work.has_tile = false;
  return work;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.plan = dense_plan(row_work(Product(problem)), machine);
  only.cost.picoseconds =
      machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.7 * machine.level.byte_rate);
  only.cost.code_key = "gemm_integer";
  return {only};
}

void call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const Product product(problem);
  const std::size_t rank = product.rank();
  const ZeroPoints zero = zero_points(writer);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/gemm_int8.h"};
  out.threaded = true;
  writer.operand(0, "a");
  const IntegerWeights packed =
      integer_panels(*writer.constant(1), product_matrices(product.b), zero, problem.operands[0].element);
  integer_parameters(writer, packed, "gemm", "b", "zero point times column sums");
  const std::string split = split_parameter(writer, packed);
  const EpilogueWriter epilogue(writer, {static_cast<int>(rank) - 2}, static_cast<int>(rank) - 1);
  CodeText code(1);
  const std::string pointer = open_batch(product, code);
  code.line(epilogue.declaration());
  write_dense_plan(plan, code);
  call_in_parallel(
      code, fmt::format("gemm_integer_work_items({}, {}, blocking)", product.out[rank - 2], product.columns),
      fmt::format("gemm_integer({}, {}, {}, {}, {}, b, offsets, {}, blocking, epilogue, begin, end)",
                  product.out[rank - 2], product.columns, product.depth, pointer,
                  product.a_strides[product.a.size() - 2], split));
  close_batch(product, code);
  out.body = code.text();
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  std::int64_t entries = 1;
  for (std::size_t axis = 0; axis + 2 < product.rank(); ++axis) entries *= product.out[axis];
  return {planned(gcrt::plan_gemm(machine.gpu, Precision::kInt8, product.out[product.rank() - 2],
                                  product.columns, product.depth, 1, true),
                  entries)};
}

void cuda_call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const Product product(problem);
  const std::size_t rank = product.rank();
  const ZeroPoints zero = zero_points(writer);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/gemm_integer.h"};
  writer.operand(0, "a");
  const std::int64_t stride = gcrt::integer_weight_stride(product.depth);
  const IntegerWeights packed = integer_rows(*writer.constant(1), product_matrices(product.b), zero, stride);
  integer_parameters(writer, packed, "gemm", "b", "zero point times sums of rows");
  const EpilogueWriter epilogue(writer, {static_cast<int>(rank) - 2}, static_cast<int>(rank) - 1);
  const std::string split =
      split_argument(writer, splits_of(plan),
                     gcrt::gemm_workspace_size(product.out[rank - 2], product.columns, 1, splits_of(plan)));
  note_plan(out, plan, Precision::kInt8);
  CodeText code(1);
  const std::string pointer = open_batch(product, code);
  code.line(epilogue.declaration());
  code.line(fmt::format(
      "gemm_integer<Tile::{}>(queue, /*rows, columns, depth*/ {}, {}, {}, {}, {}, b, {}, offsets, {},",
      tile_name(tile_of(plan)), product.out[rank - 2], product.columns, product.depth, pointer,
      product.a_strides[product.a.size() - 2], stride, split));
  code.line("    epilogue);");
  close_batch(product, code);
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_product_integer() {
  static const KernelFamily family = {
      "product.integer",
      ir::Kind::kProduct,
      refuses,
      {{{.needs = needs_dense_rows, .fields = dense_fields(), .plans = plans, .call = call},
        {.refuses = refuse_beyond_32_bits,
         .needs = needs_dense_rows,
         .fields = tile_fields(),
         .plans = cuda_plans,
         .call = cuda_call}}}};
  return family;
}

}  // namespace gcompile
