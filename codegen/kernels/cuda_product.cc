#include "codegen/kernels/cuda_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "gcrt/cuda/hopper_model.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

constexpr std::int64_t kTensorMapAlignment = 16;  // bytes, of the address in a tensor map

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Elements from one column of a packed B to the next.
std::int64_t packed_column(const Product& product) { return round_up(product.depth, 16); }

/// Strides of B as the kernel reads it.
ir::Shape strides_of_b(const ir::Problem& problem, const Product& product) {
  return problem.operands[1].constant ? product.packed_strides(product.columns * packed_column(product))
                                      : problem.operands[1].strides;
}

/// Of k and n.
std::pair<std::int64_t, std::int64_t> steps_of_b(const ir::Problem& problem, const Product& product) {
  if (problem.operands[1].constant) return {1, packed_column(product)};
  const ir::Shape& strides = problem.operands[1].strides;
  return {strides[product.b.size() - 2], strides[product.b.size() - 1]};
}

/// Operands a, which is returned, and b; a constant b is packed in what the precision stores.
KernelTensor operands(const Product& product, CallWriter& writer, Precision stored) {
  KernelTensor a = writer.operand(0, "a");
  if (const ir::Tensor* b = writer.constant(1)) {
    packed_weights(
        writer, pack_rows(*b, product_matrices(product.b), packed_column(product), facts_of(stored).weight),
        "gemm", "b", stored);
  } else {
    writer.operand(1, "b");
  }
  return a;
}

/// The call of `kernel`, within the loops that the host walks. `split`: empty where it has no such argument.
void write_body(const ir::Problem& problem, const Product& product, const ProductBatch& batch,
                const EpilogueWriter& epilogue, const std::string& kernel, bool is_dense,
                const std::string& split, CallWriter& writer) {
  const ir::Shape b_strides = strides_of_b(problem, product);
  CodeText code(1);
  std::string a_pointer = "a", b_pointer = "b";
  for (const int axis : batch.host_axes) {
    const auto at = static_cast<std::size_t>(axis);
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, product.out[at]));
    if (const std::int64_t step = product.along_a(at)) a_pointer += fmt::format(" + {} * b{}", step, axis);
    if (const std::int64_t step = product.along_b(b_strides, at))
      b_pointer += fmt::format(" + {} * b{}", step, axis);
  }
  code.line(epilogue.declaration());
  std::string entries = "GemmBatch{}";
  if (batch.entries > 1) {
    const bool two = batch.grid_axes.size() == 2;
    const auto inner = static_cast<std::size_t>(batch.grid_axes.back());
    const auto outer = static_cast<std::size_t>(batch.grid_axes.front());
    entries = fmt::format(
        "GemmBatch{{/*count, inner*/ {}, {}, /*steps of a*/ {}, {}, /*steps of b*/ {}, {}}}", batch.entries,
        product.out[inner], two ? product.along_a(outer) : ir::Dim(), product.along_a(inner),
        two ? product.along_b(b_strides, outer) : ir::Dim(), product.along_b(b_strides, inner));
  }
  const auto [step_k, step_n] = steps_of_b(problem, product);
  const std::string steps =
      is_dense ? fmt::format("{}", step_n) : fmt::format("/*strides of k, n*/ {}, {}", step_k, step_n);
  const std::string operands =
      fmt::format("queue, /*rows, columns, depth*/ {}, {}, {}, {}, {}, {}, {},", product.axes.row_count,
                  product.columns, product.depth, a_pointer, product.axes.row_stride, b_pointer, steps);
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
  for (std::size_t axis = product.axes.batch; axis-- > 0;) {
    if (product.out[axis] == 1) continue;
    std::vector<int>& list = grid_axes.size() < 2 ? grid_axes : host_axes;
    list.insert(list.begin(), static_cast<int>(axis));
  }
  for (const int axis : grid_axes) entries *= product.out[static_cast<std::size_t>(axis)];
  for (const int axis : host_axes) host_entries *= product.out[static_cast<std::size_t>(axis)];
}

PlannedCost product_plan(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  const ProductBatch batch(product);
  const Precision precision = precision_of(problem, machine);
  const gcrt::Plan plan =
      problem.operands[1].constant
          ? gcrt::plan_gemm(machine.gpu, precision, product.axes.row_count, product.columns, product.depth,
                            batch.entries, true)
          : gcrt::plan_tiles(machine.gpu, precision, product.axes.row_count, product.columns, product.depth,
                             batch.entries, true, gcrt::activation_bytes(precision));
  return planned(plan, batch.host_entries, batch.entries);
}

bool is_gemv(const ir::Problem& problem, const Machine& machine) {
  return gcrt::is_gemv(tile_of(product_plan(problem, machine).plan));
}

namespace {

/// The rest of a call by gcrt's own tiles, behind the operands.
void write_tile_call(const ir::Problem& problem, const Product& product, const ProductBatch& batch,
                     const Plan& plan, Precision precision, CallWriter& writer) {
  writer.call().headers = {"gcrt/cuda/gemm.h"};
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1,
                                batch.grid_axes);
  const std::string split = split_argument(
      writer, splits_of(plan),
      gcrt::gemm_workspace_size(product.axes.row_count, product.columns, batch.entries, splits_of(plan)));
  note_plan(writer.call(), plan, precision);
  const bool is_dense =
      problem.operands[1].constant || steps_of_b(problem, product).first == 1 || product.depth == 1;
  const std::string kernel = fmt::format("gemm{}<{}, Tile::{}>", is_dense ? "" : "_strided",
                                         precision_argument(precision), tile_name(tile_of(plan)));
  write_body(problem, product, batch, epilogue, kernel, is_dense, split, writer);
}

const char* tile_name(gcrt::WgmmaTile tile) {
  switch (tile) {
    case gcrt::WgmmaTile::k64x64:
      return "k64x64";
    case gcrt::WgmmaTile::k64x128:
      return "k64x128";
    case gcrt::WgmmaTile::k128x64:
      return "k128x64";
    case gcrt::WgmmaTile::k128x128:
      return "k128x128";
    case gcrt::WgmmaTile::k128x256:
      return "k128x256";
  }
  GC_CHECK(false);
}

}  // namespace

void write_tensor_core_product(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const Product product(problem);
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  operands(product, writer, precision);
  write_tile_call(problem, product, ProductBatch(product), plan, precision, writer);
}

void write_warpgroup_product(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const Product product(problem);
  const ProductBatch batch(product);
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  if (operands(product, writer, precision).alignment < kTensorMapAlignment) {
    // Where the matrix begins is known only here. The weights are the same.
    return write_tile_call(problem, product, batch, product_plan(problem, writer.machine()).plan, precision,
                           writer);
  }
  writer.call().headers = {"gcrt/cuda/hopper_gemm.h"};
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1,
                                batch.grid_axes);
  const char* const tile = tile_name(static_cast<gcrt::WgmmaTile>(plan.fields.at(0)));
  const std::int64_t cluster = plan.fields.at(1);
  writer.call().choice =
      fmt::format("wgmma {}{}, {}", tile + 1, cluster > 1 ? fmt::format(", clusters of {}", cluster) : "",
                  facts_of(precision).name);
  write_body(problem, product, batch, epilogue,
             fmt::format("gemm_wgmma<{}, WgmmaTile::{}, /*cluster*/ {}>", precision_argument(precision), tile,
                         cluster),
             true, "", writer);
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
  call.headers.insert(call.headers.begin(), "gcrt/cuda/cublaslt.h");
  call.is_fixed = true;
  writer.scratch(gcrt::cublaslt_workspace_size(product.axes.row_count, product.columns, batch.entries) * 4,
                 "workspace", "float");
  call.choice = "cuBLASLt";
  call.products_per_clock = gcrt::products_per_clock(machine.gpu, precision);
  write_body(problem, product, batch, epilogue,
             fmt::format("gemm_cublaslt<{}>", precision_argument(precision)), false, "workspace", writer);
}

int library_launches(const ir::Problem& problem) {
  const Product product(problem);
  const ProductBatch batch(product);
  const std::int64_t calls =
      batch.grid_axes.size() == 2 ? product.out[static_cast<std::size_t>(batch.grid_axes[0])] : ir::Dim(1);
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
