// product.decode_integer: rows that are rounded to int8 for each block, by weights of 4 or 8 bits with scales
// for blocks of rows, with exact sums in int32.

#include <fmt/format.h>

#include "codegen/kinds/batch_items.h"
#include "codegen/kinds/packed_weights.h"

namespace gcompile {
namespace {

constexpr std::int64_t kGroup = 8;  // gcrt/cpu/product/decode_int8.h: bytes of A that are written together
constexpr std::int64_t kMost = 1 << 16;  // products of 255 * 127 that fit an int32
constexpr std::int64_t kFewRows = 8;     // that are not worth threads before those of the product

Refusal refuses(const ir::Problem& problem) {
  if (Refusal other = refuse_unless_packed_weights(problem)) return other;
  if (product_work(problem).rounding != ir::RowRounding::kDone) return "rows that are not to be rounded";
  const std::int64_t block = rows_of_block(problem);
  if (blocks_of_weights(problem) > 1 && block % kGroup != 0) {
    return fmt::format("blocks of {} rows, which are not a multiple of {}", block, kGroup);
  }
  if (block > kMost) return fmt::format("blocks of {} rows, whose sums may not fit 32 bits", block);
  return std::nullopt;
}

/// Bytes of all rounded rows: bytes in whole groups, then a scale and a sum for each block.
std::int64_t rounded_bytes(const ir::Problem& problem) {
  const Product product(problem);
  const std::int64_t values = (product.depth + kGroup - 1) / kGroup * kGroup;
  return ir::highest(product.axes.row_count) * (values + 2 * 4 * blocks_of_weights(problem));
}

/// The share of the peak of floats. Measured with AVX2, for one row as for many: 53 and 40 multiply-adds in a
/// nanosecond where floats do 24 to 40; decoding and adding take the rest.
double efficiency(const ir::Problem& problem, const Machine& machine) {
  return (bits_of_weights(problem) == 4 ? 0.63 : 0.5) * machine.level.byte_rate;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.plan = packed_weights_plan(problem, machine);
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), packed_weights_bytes(problem),
                                              efficiency(problem, machine));
  only.cost.scratch = rounded_bytes(problem);
  only.cost.code_key = fmt::format("decode_integer{}", bits_of_weights(problem));
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const Product product(problem);
  const ProductAxes& axes = product.axes;
  KernelCall& out = writer.call();
  const std::string rows = out.sizes(axes.row_count), row_stride = out.sizes(axes.row_stride);
  out.headers = {"gcrt/cpu/product/decode_int8.h"};
  writer.operand(0, "a");
  const std::string weights = packed_weights_parameters(problem, writer);
  const ir::Problem largest = ir::at_highest(problem);
  const std::int64_t bytes = rounded_bytes(problem);
  const std::int64_t time = plans(largest, writer.machine()).front().cost.picoseconds;
  const BatchItems batch(product, batch_parts(largest, bytes, time, writer.machine()), out.sizes);
  const std::string rounded = batch.of_part("rounded", bytes);
  writer.scratch(batch.elements(bytes), "rounded", "std::int8_t");
  const EpilogueWriter epilogue(writer, axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  code.line(weights);
  const std::string tile = dense_tile(plan);
  const auto open = [&] {
    write_blocking(plan, code);
    batch.open(out, code, fmt::format("gemm_work_items<{}>({}, {}, blocking)", tile, rows, product.columns),
               epilogue.named_axes(), ir::Shape(product.b.size(), 0), true);
  };
  const auto rounding = [&](const std::string& range) {
    return fmt::format("round_rows({}, {}, {}, weights, {}, {})", product.depth, batch.a(), row_stride,
                       rounded, range);
  };
  if (!batch.is_one()) open();
  if (!batch.is_one() || ir::highest(axes.row_count) <= kFewRows) {
    code.line(rounding("0, " + rows) + ";");
  } else {
    call_in_parallel(out, code, rows, rounding("begin, end"));
  }
  code.line(epilogue.declaration());
  if (batch.is_one()) open();
  code.line(fmt::format("gemm_rounded<{}>({}, {}, {}, weights, {}, blocking, epilogue, begin, end);", tile,
                        rows, product.columns, product.depth, rounded));
  batch.close(code);
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_product_decode_integer() {
  static const KernelFamily family = {"product.decode_integer",
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
