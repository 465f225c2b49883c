// product.integer: exact sums in int32 (DESIGN law 7): over operands of 8 bits, on the CPU also of 16, by a
// constant matrix, packed when the model is compiled; or over two operands of 8 bits that only the run knows,
// which the kernel prepares for each product.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/batch_items.h"
#include "codegen/kinds/dense_plan.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/kinds/integer_weights.h"
#include "codegen/kinds/matrix_product.h"
#include "codegen/loops/c_types.h"
#include "gcrt/cpu/product/sides_plan.h"

namespace gcompile {
namespace {

/// Whether the right side is packed when the model is compiled.
bool is_packed(const ir::Problem& problem) {
  return problem.operands[1].constant && problem.shape(1).size() == 2 &&
         !refuse_unless_short_integer(problem);
}

Refusal refuses(const ir::Problem& problem) {
  if (is_packed(problem)) return std::nullopt;
  if (Refusal elements = refuse_unless_bytes(problem)) return elements;
  for (std::size_t i = 2; i < problem.operands.size(); ++i) {
    const ir::ProblemOperand& zero = problem.operands[i];
    if (zero.present && ir::element_count(zero.shape) != 1)
      return "several zero points beside a right side that is no constant matrix";
  }
  return std::nullopt;
}

/// The work of one entry of the batch, which has the others beside it.
DenseWork row_work(const Product& product, const ir::Problem& problem) {
  DenseWork work = dense_work(product, bits_of(problem.operands[0].element) / 8);
  work.has_tile = false;
  if (are_bytes(problem)) work.run_bytes = work.depth;
  for (const std::size_t axis : product.axes.batch) work.groups *= product.out[axis];
  return work;
}

/// The words that both computed sides of an entry take, which grow with each of its sizes.
std::int64_t side_words(const Product& product) {
  return gcrt::integer_sides_size(product.axes.row_count, product.columns, product.depth);
}

std::int64_t time_of(const ir::Problem& problem, const KernelPlan& plan, const Machine& machine) {
  // Computed sides are multiplied by the faster of two forms (gcrt/cpu/product/product_int8.h). To prepare them
  // takes about as long as to pack floats.
  const DenseWork work = row_work(Product(problem), problem);
  const double of_words =
      is_in_tiles(plan) ? byte_rate(work, plan, machine) : integer_rate(problem, machine.level);
  const double rate = is_packed(problem) ? of_words : std::max(of_words, machine.level.int16_rate);
  return machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.7 * rate);
}

std::int64_t parts_of(const ir::Problem& problem, const Machine& machine) {
  const KernelPlan plan = dense_plan(row_work(Product(problem), problem), machine);
  return batch_parts(problem, 4 * side_words(Product(problem)), time_of(problem, plan, machine), machine);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  const bool packed = is_packed(problem);
  PlannedCost only;
  only.plan = dense_plan(row_work(product, problem), machine);
  only.cost.picoseconds = time_of(problem, only.plan, machine);
  only.cost.code_key = packed ? "gemm_integer" : "multiply_integers";
  if (!packed) only.cost.scratch = parts_of(problem, machine) * 4 * side_words(product);
  return {only};
}

void call_packed(const Product& product, const ir::Problem& problem, const KernelPlan& plan,
                 CallWriter& writer) {
  const ZeroPoints zero = zero_points(writer);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/product/gemm_int8.h"};
  writer.operand(0, "a");
  const IntegerWeights packed =
      integer_panels(*writer.constant(1), product_matrices(product.b), zero, problem.operands[0].element);
  integer_parameters(writer, packed, "gemm", "b", "zero point times column sums");
  const std::string split = split_parameter(writer, packed);
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  const BatchItems batch(product, 1, out.sizes);
  const std::string rows = out.sizes(product.axes.row_count), row_stride = out.sizes(product.axes.row_stride);
  const char* const tiles = in_tiles(plan, packed.narrow, writer);
  if (batch.is_one()) code.line(epilogue.declaration());
  write_blocking(plan, code);
  const ir::Shape same_for_all(product.b.size(), 0);
  batch.open(out, code,
             fmt::format("gemm_integer_work_items{}({}, {}, blocking)", tiles, rows, product.columns),
             epilogue.named_axes(), same_for_all, false);
  if (!batch.is_one()) code.line(epilogue.declaration());
  code.line(fmt::format("gemm_integer{}({}, {}, {}, {}, {}, b, offsets, {}, blocking, epilogue, begin, end);",
                        tiles, rows, product.columns, product.depth, batch.a(), row_stride, split));
  batch.close(code);
  out.body = code.text();
}

/// The zero point of operand `i` - 2 in the call.
std::string zero_point(CallWriter& writer, int i, const std::string& parameter) {
  if (!writer.has_operand(i)) return "0";
  if (const ir::Tensor* known = writer.constant(i)) return std::to_string(known->int_at(0));
  writer.operand(i, parameter);
  return "*" + parameter;
}

void call_computed(const Product& product, const ir::Problem& problem, const KernelPlan& plan,
                   CallWriter& writer) {
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/product/product_int8.h"};
  writer.operand(0, "a");
  const ir::Shape b_strides = writer.operand(1, "b").strides;
  const std::string a_zero = zero_point(writer, 2, "a_zero"), b_zero = zero_point(writer, 3, "b_zero");
  const ProductAxes& axes = product.axes;
  SizeParameters& sizes = out.sizes;
  const ir::Problem largest = ir::at_highest(problem);
  const BatchItems batch(product, parts_of(largest, writer.machine()), sizes);
  const std::int64_t words = side_words(Product(largest));
  writer.scratch(batch.elements(4 * words), "sides", "std::int32_t");
  const EpilogueWriter epilogue(writer, axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  const std::size_t last = product.b.size() - 1;
  const std::string rows = sizes(axes.row_count), columns = sizes(product.columns),
                    depth = sizes(product.depth), row_stride = sizes(axes.row_stride),
                    along_k = sizes(b_strides[last - 1]), along_n = sizes(b_strides[last]);
  write_blocking(plan, code);
  code.line(fmt::format("const ProductSizes sizes{{/*rows*/ {}, /*columns*/ {}, /*depth*/ {}}};", rows,
                        columns, depth));
  if (!batch.is_one()) batch.open(out, code, "", epilogue.named_axes(), b_strides, true);
  code.line(epilogue.declaration());
  code.line(fmt::format("const IntegerRows<{}> left{{{}, /*stride*/ {}, /*zero*/ {}}};",
                        kernel_type(problem.operands[0].element), batch.a(), row_stride, a_zero));
  code.line(fmt::format("const IntegerMatrix<{}> right{{{}, /*strides*/ {}, {}, /*zero*/ {}}};",
                        kernel_type(problem.operands[1].element), batch.b(b_strides), along_k, along_n,
                        b_zero));
  // Threads are given entries; where there is one, it gives them pieces.
  code.line(fmt::format("multiply_integers{}({}, sizes, left, right, blocking, {}, epilogue);",
                        in_tiles(plan, true, writer), batch.is_one() ? threads_argument(out) : "nullptr",
                        batch.of_part("sides", words)));
  if (!batch.is_one()) batch.close(code);
  out.body = code.text();
}

void call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const Product product(problem);
  (is_packed(problem) ? call_packed : call_computed)(product, problem, plan, writer);
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (!is_packed(problem)) return "the right side is no constant matrix, or zero points are computed";
  return cuda_refuse_unless_bytes(problem, machine);
}

/// Rows may be as many as a run has; entries of a batch are launches of their own.
bool cuda_takes_formulas(const ir::Problem& problem) {
  const Product product(problem);
  return std::all_of(product.axes.batch.begin(), product.axes.batch.end(),
                     [&](std::size_t axis) { return product.out[axis].is_constant(); }) &&
         fits_32_bits(problem);
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  std::int64_t entries = 1;
  for (const std::size_t axis : product.axes.batch) entries *= product.out[axis];
  return {planned(gcrt::plan_gemm(machine.gpu, Precision::kInt8, product.axes.row_count, product.columns,
                                  product.depth, 1, true),
                  machine, entries)};
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const Product product(problem);
  const ir::Dim rows = product.axes.row_count;
  const ZeroPoints zero = zero_points(writer);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/product/gemm_integer.h"};
  const KernelTensor a = writer.operand(0, "a");
  const std::int64_t stride = gcrt::integer_weight_stride(product.depth);
  const IntegerWeights packed = integer_rows(*writer.constant(1), product_matrices(product.b), zero, stride);
  integer_parameters(writer, packed, "gemm", "b", "zero point times sums of rows");
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1);
  const std::string split = split_argument(
      writer, plan, rows * (ir::ceil_div(product.columns, 4) * 4),
      gcrt::gemm_counters(tile_of(plan), ir::highest(rows), product.columns, 1, splits_of(plan)));
  note_plan(writer, plan, Precision::kInt8);
  CodeText code(1);
  const BatchLoops batch = open_batch_loops(product, code, writer.call().sizes);
  code.line(epilogue.declaration());
  std::vector<ir::Dim> steps = {product.axes.row_stride};
  for (const std::size_t axis : product.axes.batch) steps.push_back(product.along_a(axis));
  code.line(fmt::format(
      "gemm_integer<Tile::{}>(queue, /*rows, columns, depth*/ {}, {}, {}, {}, {}, b, {}, offsets, {},",
      tile_name(tile_of(plan)), out.sizes.as_int(rows), product.columns, product.depth,
      copied(copied_in(a, steps), batch.a), out.sizes(product.axes.row_stride), stride, split));
  code.line("    epilogue);");
  for (int i = 0; i < batch.loops; ++i) code.close();
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_product_integer() {
  static const KernelFamily family = {"product.integer",
                                      ir::Kind::kProduct,
                                      refuses,
                                      {{{.takes_formulas = takes_dense_formulas,
                                         .needs = needs_dense_rows,
                                         .fields = integer_fields(),
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = cuda_refuses,
                                         .takes_formulas = cuda_takes_formulas,
                                         .needs = needs_dense_rows,
                                         .fields = tile_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call}}}};
  return family;
}

}  // namespace gcompile
