#include "codegen/kinds/cuda_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Elements from one column of a packed B to the next.
std::int64_t packed_column(const Product& product) { return round_up(product.depth, 16); }

/// Floats that the sums of all entries, rows and columns take.
ir::Dim floats_of_part(const Product& product, const ProductBatch& batch) {
  return batch.entries * product.axes.row_count * (ir::ceil_div(product.columns, 4) * 4);
}

/// Strides of B as the kernel reads it.
ir::Shape strides_of_b(const ir::Problem& problem, const Product& product) {
  return problem.operands[1].constant ? product.packed_strides(product.columns * packed_column(product))
                                      : problem.operands[1].strides;
}

/// The steps along k and n.
std::pair<ir::Dim, ir::Dim> steps_of_b(const ir::Problem& problem, const Product& product) {
  if (problem.operands[1].constant) return {1, packed_column(product)};
  const ir::Shape& strides = problem.operands[1].strides;
  return {strides[product.b.size() - 2], strides[product.b.size() - 1]};
}

/// Both operands as the kernel reads them.
struct Operands {
  KernelTensor a, b;
};
/// Adds both; a constant b is packed in what the precision stores.
Operands operands(const Product& product, CallWriter& writer, Precision stored) {
  Operands out;
  if (writer.made_rows().empty()) out.a = writer.operand(0, "a");
  if (const ir::Tensor* b = writer.constant(1)) {
    weights_in_format(
        writer, pack_rows(*b, product_matrices(product.b), packed_column(product), facts_of(stored).weight),
        "gemm", "b", stored);
  } else {
    out.b = writer.operand(1, "b");
  }
  return out;
}

/// What each copy of a and of b moves (copied_in(), weights_in()); empty: the kernel takes pointers.
struct CopyWidths {
  std::string a, b;
};
CopyWidths copy_widths(const ir::Problem& problem, const Product& product, const Operands& operands,
                       bool is_dense) {
  const ir::Shape b_strides = strides_of_b(problem, product);
  std::vector<ir::Dim> steps_a = {product.axes.row_stride}, steps_b = {steps_of_b(problem, product).second};
  for (const std::size_t axis : product.axes.batch) {
    steps_a.push_back(product.along_a(axis));
    steps_b.push_back(product.along_b(b_strides, axis));
  }
  // Packed weights lie in whole units of 64 bytes.
  const std::string b = problem.operands[1].constant ? "weights_in<16>" : copied_in(operands.b, steps_b);
  return {copied_in(operands.a, steps_a), is_dense ? b : ""};
}

/// The call of `kernel`, within the loops that the host walks. `split`: empty where it has no such argument.
void write_body(const ir::Problem& problem, const Product& product, const ProductBatch& batch,
                const EpilogueWriter& epilogue, const std::string& kernel, bool is_dense,
                const CopyWidths& widths, const std::string& split, CallWriter& writer) {
  const ir::Shape b_strides = strides_of_b(problem, product);
  SizeParameters& sizes = writer.call().sizes;
  CodeText code(1);
  std::string a_pointer = "a", b_pointer = "b";
  for (const int axis : batch.host_axes) {
    const auto at = static_cast<std::size_t>(axis);
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, product.out[at]));
    if (const ir::Dim step = product.along_a(at); step != 0)
      a_pointer += fmt::format(" + {} * b{}", sizes(step), axis);
    if (const ir::Dim step = product.along_b(b_strides, at); step != 0)
      b_pointer += fmt::format(" + {} * b{}", sizes(step), axis);
  }
  a_pointer = copied(widths.a, a_pointer);
  b_pointer = copied(widths.b, b_pointer);
  code.line(epilogue.declaration());
  std::string entries = "GemmBatch{}";
  if (batch.entries != 1) {
    const bool two = batch.grid_axes.size() == 2;
    const auto inner = static_cast<std::size_t>(batch.grid_axes.back());
    const auto outer = static_cast<std::size_t>(batch.grid_axes.front());
    const std::string counts[] = {sizes.as_int(batch.entries), sizes.as_int(product.out[inner])};
    const std::string of_a[] = {sizes(two ? product.along_a(outer) : ir::Dim()),
                                sizes(product.along_a(inner))};
    const std::string of_b[] = {sizes(two ? product.along_b(b_strides, outer) : ir::Dim()),
                                sizes(product.along_b(b_strides, inner))};
    entries =
        fmt::format("GemmBatch{{/*count, inner*/ {}, {}, /*steps of a*/ {}, {}, /*steps of b*/ {}, {}}}",
                    counts[0], counts[1], of_a[0], of_a[1], of_b[0], of_b[1]);
  }
  const auto [along_k, along_n] = steps_of_b(problem, product);
  const std::string step_k = sizes(is_dense ? ir::Dim() : along_k), step_n = sizes(along_n);
  const std::string row_count = sizes.as_int(product.axes.row_count), columns = sizes.as_int(product.columns);
  const std::string extents = fmt::format("{}, {}, {}", row_count, columns, sizes.as_int(product.depth));
  if (!writer.made_rows().empty()) {
    code.line(Text("const ") + Symbol::kKernel + "_rows rows = " + writer.made_rows() + ";");
    code.line(fmt::format("{}(queue, /*rows, columns, depth*/ {}, rows, {}, {},", kernel, extents, b_pointer,
                          step_n));
    code.line("    epilogue);");
    writer.call().body = code.text();
    return;
  }
  const std::string steps = is_dense ? step_n : fmt::format("/*strides of k, n*/ {}, {}", step_k, step_n);
  const std::string operands = fmt::format("queue, /*rows, columns, depth*/ {}, {}, {}, {}, {},", extents,
                                           a_pointer, sizes(product.axes.row_stride), b_pointer, steps);
  if (split.empty()) {
    code.line(kernel + "(");
    code.line(fmt::format("    {} {}, epilogue);", operands, entries));
  } else {
    code.line(fmt::format("{}({}", kernel, operands));
    code.line(fmt::format("    {}, {}, epilogue);", entries, split));
  }
  for (std::size_t i = 0; i < batch.host_axes.size(); ++i) code.close();
  writer.call().body = code.text();
}

}  // namespace

ProductBatch::ProductBatch(const Product& product) {
  for (auto axis = product.axes.batch.rbegin(); axis != product.axes.batch.rend(); ++axis) {
    std::vector<int>& list = grid_axes.size() < 2 ? grid_axes : host_axes;
    list.insert(list.begin(), static_cast<int>(*axis));
  }
  for (const int axis : grid_axes) entries *= product.out[axis];
  for (const int axis : host_axes) host_entries *= product.out[axis];
}

bool takes_open_products(const ir::Problem& problem) {
  const Product product(problem);
  const ProductBatch batch(product);
  return batch.host_entries.is_constant() && ir::highest(batch.entries) <= INT32_MAX && fits_32_bits(problem);
}

PlannedCost product_plan(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  const ProductBatch batch(product);
  const Precision precision = precision_of(problem, machine);
  const bool is_packed = problem.operands[1].constant.has_value(), is_open = problem.stands_for_formulas;
  const gcrt::OperandBytes bytes = {element_bytes(problem, 0),
                                    is_packed ? gcrt::weight_bytes(precision) : element_bytes(problem, 1)};
  // A depth of the run may be too short for parts.
  const gcrt::Plan plan =
      is_packed && !is_open
          ? gcrt::plan_gemm(machine.gpu, precision, product.axes.row_count, product.columns, product.depth,
                            batch.entries, true, bytes)
          : gcrt::plan_tiles(machine.gpu, precision, product.axes.row_count, product.columns, product.depth,
                             batch.entries, is_packed || !is_open, bytes);
  return planned(plan, machine, batch.host_entries, batch.entries);
}

bool takes_made_rows(const ir::Problem& problem, const Machine&) {
  constexpr std::int64_t kMostBytes = 32 * 1024;
  if (problem.stands_for_formulas || !are_constant(problem)) return false;
  const Product product(problem);
  const ProductBatch batch(product);
  return batch.entries == 1 && batch.host_entries == 1 && product.depth % 4 == 0 &&
         product.axes.row_stride == product.depth && product.axes.row_count * product.depth * 4 <= kMostBytes;
}

bool is_gemv(const ir::Problem& problem, const Machine& machine) {
  return gcrt::is_gemv(tile_of(product_plan(problem, machine).plan));
}

namespace {

/// The rest of a call by gcrt's own tiles, behind the operands.
void write_tile_call(const ir::Problem& problem, const Product& product, const ProductBatch& batch,
                     const Operands& operands, const KernelPlan& plan, Precision precision,
                     CallWriter& writer) {
  const bool makes_rows = !writer.made_rows().empty();
  std::vector<std::string>& headers = writer.call().headers;
  headers.insert(headers.begin(),
                 makes_rows ? "gcrt/cuda/product/gemv_of_rows.h" : "gcrt/cuda/product/gemm.h");
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1,
                                batch.grid_axes);
  const std::string split = split_argument(
      writer, plan, floats_of_part(product, batch),
      gcrt::gemm_counters(tile_of(plan), ir::highest(product.axes.row_count), ir::highest(product.columns),
                          ir::highest(batch.entries), splits_of(plan)));
  const std::int64_t launches =
      gcrt::product_launches(writer.machine().gpu, ir::highest(batch.entries), splits_of(plan));
  writer.device().launches = std::max(writer.device().launches, narrow(batch.host_entries * launches));
  note_plan(writer, plan, precision);
  const bool is_dense =
      problem.operands[1].constant || steps_of_b(problem, product).first == 1 || product.depth == 1;
  const bool has_any_rows = problem.operands[1].constant && !product.axes.row_count.is_constant();
  const std::string kernel = fmt::format("{}<{}, Tile::{}>",
                                         makes_rows     ? "gemv_of_rows"
                                         : !is_dense    ? "gemm_strided"
                                         : has_any_rows ? "gemm_any_rows"
                                                        : "gemm",
                                         precision_argument(precision), tile_name(tile_of(plan)));
  write_body(problem, product, batch, epilogue, kernel, is_dense,
             copy_widths(problem, product, operands, is_dense), split, writer);
}

}  // namespace

void write_tensor_core_product(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const Product product(problem);
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  const Operands given = operands(product, writer, precision);
  write_tile_call(problem, product, ProductBatch(product), given, plan, precision, writer);
}

void write_warpgroup_product(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const Product product(problem);
  const ProductBatch batch(product);
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  const Operands given = operands(product, writer, precision);
  if (given.a.alignment < kTensorMapAlignment) {
    // Where the matrix begins is known only here. The weights are the same.
    return write_tile_call(problem, product, batch, given, product_plan(problem, writer.machine()).plan,
                           precision, writer);
  }
  writer.call().headers = {"gcrt/cuda/product/hopper_gemm.h"};
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1,
                                batch.grid_axes);
  write_body(problem, product, batch, epilogue,
             fmt::format("gemm_wgmma<{}>", wgmma_arguments(writer, plan, precision)), true, {}, "", writer);
}

void write_library_product(const ir::Problem& problem, CallWriter& writer) {
  const Product product(problem);
  const ProductBatch batch(product);
  const Machine& machine = writer.machine();
  const Precision precision = precision_of(problem, machine);
  warn_of_precision(problem, writer);
  operands(product, writer, Precision::kFp32);  // weights of 32 bits
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1,
                                batch.grid_axes);
  KernelCall& call = writer.call();
  call.headers.insert(call.headers.begin(), "gcrt/cuda/product/cublaslt.h");
  DeviceCall& device = writer.device();
  device.is_fixed = true;
  writer.scratch(gcrt::cublaslt_workspace_size(product.axes.row_count, product.columns, batch.entries) * 4,
                 "workspace", "float");
  device.choice = "cuBLASLt";
  device.products_per_clock = gcrt::products_per_clock(machine.gpu, precision);
  write_body(problem, product, batch, epilogue,
             fmt::format("gemm_cublaslt<{}>", precision_argument(precision)), false, {}, "workspace", writer);
}

int library_launches(const ir::Problem& problem) {
  const Product product(problem);
  const ProductBatch batch(product);
  const std::int64_t calls = batch.grid_axes.size() == 2 ? product.out[batch.grid_axes[0]] : ir::Dim(1);
  return narrow(batch.host_entries * (calls + gcrt::ceil_div(batch.entries, gcrt::kMaxGridZ)));
}

Refusal refuse_library(const ir::Problem& problem) {
  const Product product(problem);
  if (product.axes.row_count * product.columns * product.depth == 0) return "no elements";
  if (product.axes.row_stride < product.depth) return "rows of the left side overlap";
  const auto [step_k, step_n] = steps_of_b(problem, product);
  const bool fits = (step_k == 1 && step_n >= product.depth) || (step_n == 1 && step_k >= product.columns);
  if (!fits) return "no axis of the right side is contiguous";
  return std::nullopt;
}

}  // namespace gcompile
