// product.decode: floats by weights of 4 or 8 bits with scales for blocks of rows, which are decoded in
// registers. What is packed in 4 bits follows from the values: all lie in [-8, 7].

#include <fmt/format.h>

#include "codegen/kernels/dense_plan.h"
#include "codegen/kernels/image_weights.h"
#include "codegen/kernels/word_packing.h"

namespace gcompile {
namespace {

constexpr std::int64_t kFewRows = 4;       // gcrt/cpu/decode.h, kDecodedRows
constexpr std::int64_t kWordColumns = 32;  // of a panel
constexpr std::size_t kItemColumns = 1;    // field of a dense plan

const ir::ProductWork& work_of(const ir::Problem& problem) { return std::get<ir::ProductWork>(problem.work); }

bool has_zeros(const ir::Problem& problem) {
  return problem.operands.size() > 3 && problem.operands[3].present;
}

int bits_of(const ir::Problem& problem) {
  const ir::ConstantFacts& facts = *problem.operands[1].constant;
  return facts.low >= -8 && facts.high <= 7 ? 4 : 8;
}

/// Rows that share a scale, of which a word of 32 bits has no part.
std::int64_t block_of(const ir::Problem& problem) {
  return std::min(work_of(problem).block, std::max<std::int64_t>(1, problem.shape(0).back()));
}

std::int64_t blocks_of(const ir::Problem& problem) { return problem.shape(2)[0]; }

Refusal refuses(const ir::Problem& problem) {
  if (work_of(problem).block == 0) return "weights without scales of their own";
  for (std::size_t i = 1; i < problem.operands.size(); ++i) {
    if (problem.operands[i].present && !problem.operands[i].constant)
      return "weights that only the run knows";
  }
  const int depth = 32 / bits_of(problem);
  if (blocks_of(problem) > 1 && block_of(problem) % depth != 0) {
    return fmt::format("blocks of {} rows, which are not a multiple of {}", block_of(problem), depth);
  }
  return std::nullopt;
}

Refusal cuda_refuses(const ir::Problem&, const Machine&) { return "on CUDA packed weights are made floats"; }

/// Of the packed words, scales and zero points.
std::int64_t packed_bytes(const ir::Problem& problem) {
  const Product product(problem);
  const std::int64_t columns = (product.columns + 31) / 32 * 32;
  const std::int64_t zero_bytes = has_zeros(problem) ? bits_of(problem.operands[3].element) / 8 : 0;
  return columns * (product.depth * bits_of(problem) / 8 + blocks_of(problem) * (4 + zero_bytes));
}

DenseWork decode_work(const ir::Problem& problem) {
  DenseWork work = dense_work(Product(problem), 4);
  work.right_bytes = packed_bytes(problem);
  return work;
}

std::int64_t prepared_bytes(const ir::Problem& problem) {
  const Product product(problem);
  if (product.axes.row_count > kFewRows) return 0;
  // Whole words, and a sum for each chunk, which has at least a word where there are several.
  return product.axes.row_count * (product.depth + 8 + product.depth / 4 + 1) * 4;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const DenseWork work = decode_work(problem);
  PlannedCost only;
  only.plan = dense_plan(work, machine);
  std::int64_t& item_columns = only.plan.fields[kItemColumns];
  item_columns = (item_columns + kWordColumns - 1) / kWordColumns * kWordColumns;
  const std::int64_t bytes = work.right_bytes + work.left_bytes +
                             ir::TensorType{problem.results[0].element, problem.results[0].shape}.bytes();
  only.cost.picoseconds =
      machine.picoseconds(problem.multiply_adds(), bytes, work.rows > kFewRows ? 0.65 : 0.5);
  only.cost.scratch = prepared_bytes(problem);
  only.cost.code_key = fmt::format("decode{}", bits_of(problem));
  return {only};
}

void call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const Product product(problem);
  const ProductAxes& axes = product.axes;
  const bool few = axes.row_count <= kFewRows;
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/decode.h"};
  out.threaded = true;
  writer.operand(0, "a");
  writer.packed(1, pack_words(*writer.constant(1), bits_of(problem)),
                fmt::format("{} bits, packed for gemm", bits_of(problem)), "b", "std::uint32_t");
  writer.packed(2, pack_wide_panels(*writer.constant(2)), "packed for gemm", "scales");
  std::string zero_type = "void", zeros = "nullptr";
  if (has_zeros(problem)) {
    zero_type = problem.operands[3].element == ir::ElementType::kInt8 ? "std::int8_t" : "float";
    zeros = "zeros";
    writer.packed(3, pack_wide_panels(*writer.constant(3)), "packed for gemm", "zeros", zero_type);
  }
  if (few) writer.scratch(prepared_bytes(problem), "prepared", "float");
  const EpilogueWriter epilogue(writer, axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  code.line(fmt::format("const BlockWeights<{}, {}> weights{{b, scales, {}, /*rows of a block*/ {}}};",
                        bits_of(problem), zero_type, zeros, block_of(problem)));
  const BatchLoops batch = open_batch_loops(product, code);
  if (few) {
    code.line(fmt::format("prepare_rows({}, {}, {}, {}, weights, prepared);", axes.row_count, product.depth,
                          batch.a, axes.row_stride));
  }
  code.line(epilogue.declaration());
  write_dense_plan(plan, code);
  call_in_parallel(
      code, fmt::format("gemm_work_items<Tile>({}, {}, blocking)", axes.row_count, product.columns),
      fmt::format("gemm_decoded<Tile>({}, {}, {}, {}, {}, weights, {}, blocking, epilogue, begin, end)",
                  axes.row_count, product.columns, product.depth, batch.a, axes.row_stride,
                  few ? "prepared" : "nullptr"));
  for (int i = 0; i < batch.loops; ++i) code.close();
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_product_decode() {
  static const KernelFamily family = {
      "product.decode",
      ir::Kind::kProduct,
      refuses,
      {{{.needs = needs_dense_rows, .fields = dense_fields(), .plans = plans, .call = call},
        {.refuses = cuda_refuses}}}};
  return family;
}

}  // namespace gcompile
