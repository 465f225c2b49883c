// product.decode: floats by weights of 4 or 8 bits with scales for blocks of rows,
// which are decoded in registers.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/kinds/batch_items.h"
#include "codegen/kinds/packed_weights.h"

namespace gcompile {
namespace {

constexpr std::int64_t kFewRows = 4;  // gcrt/cpu/product/decode.h, kDecodedRows

Refusal refuses(const ir::Problem& problem) {
  if (product_work(problem).rounding == ir::RowRounding::kDone) return "rows that are rounded to int8";
  return refuse_unless_packed_weights(problem);
}

/// Whether some run may have few rows.
bool may_be_few(ir::Dim rows) { return ir::lowest(rows) <= kFewRows; }

std::int64_t prepared_bytes(const ir::Problem& problem) {
  const Product product(problem);
  if (!may_be_few(product.axes.row_count)) return 0;
  const std::int64_t rows = std::min(ir::highest(product.axes.row_count), kFewRows), depth = product.depth;
  // Whole words, and a sum for each chunk, which has at least a word where there are several.
  return rows * (depth + 8 + depth / 4 + 1) * 4;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const bool few = packed_weights_work(problem).rows <= kFewRows;
  PlannedCost only;
  only.plan = packed_weights_plan(problem, machine);
  only.cost.picoseconds =
      machine.picoseconds(problem.multiply_adds(), packed_weights_bytes(problem), few ? 0.5 : 0.65);
  only.cost.scratch = prepared_bytes(problem);
  only.cost.code_key = fmt::format("decode{}", bits_of_weights(problem));
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const Product product(problem);
  const ProductAxes& axes = product.axes;
  const bool few = may_be_few(axes.row_count);
  KernelCall& out = writer.call();
  const std::string rows = out.sizes(axes.row_count), row_stride = out.sizes(axes.row_stride);
  out.headers = {"gcrt/cpu/product/decode.h"};
  writer.operand(0, "a");
  const std::string weights = packed_weights_parameters(problem, writer);
  const ir::Problem largest = ir::at_highest(problem);
  const std::int64_t bytes = few ? prepared_bytes(problem) : 0;
  const std::int64_t time = plans(largest, writer.machine()).front().cost.picoseconds;
  const BatchItems batch(product, batch_parts(largest, bytes, time, writer.machine()), out.sizes);
  const std::string prepared = batch.of_part("prepared", bytes / 4);
  if (few) writer.scratch(batch.elements(bytes), "prepared", "float");
  const EpilogueWriter epilogue(writer, axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  code.line(weights);
  const std::string tile = dense_tile(plan);
  const auto open = [&] {
    write_blocking(plan, code);
    batch.open(out, code, fmt::format("gemm_work_items<{}>({}, {}, blocking)", tile, rows, product.columns),
               epilogue.named_axes(), ir::Shape(product.b.size(), 0), few);
  };
  if (!batch.is_one()) open();
  if (few) {
    code.line(fmt::format("prepare_rows({}, {}, {}, {}, weights, {});", rows, product.depth, batch.a(),
                          row_stride, prepared));
  }
  code.line(epilogue.declaration());
  if (batch.is_one()) open();
  code.line(fmt::format("gemm_decoded<{}>({}, {}, {}, {}, {}, weights, {}, blocking, epilogue, begin, end);",
                        tile, rows, product.columns, product.depth, batch.a(), row_stride,
                        few ? prepared : "nullptr"));
  batch.close(code);
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_product_decode() {
  static const KernelFamily family = {"product.decode",
                                      ir::Kind::kProduct,
                                      refuses,
                                      {{{.takes_formulas = takes_dense_formulas,
                                         .needs = needs_dense_rows,
                                         .fields = dense_fields(),
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = refuse_packed_weights_on_cuda}}}};
  return family;
}

}  // namespace gcompile
