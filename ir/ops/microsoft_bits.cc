// com.microsoft: MatMulNBits, a product by weights of 2, 4 or 8 bits that are packed along the depth.
// Operands: A (..., K), B uint8 (N, blocks, block_size * bits / 8) with the first element in the lowest bits,
// scales (N, blocks), then where given zero points (packed as B, (N, ceil(blocks * bits / 8)), or unpacked in
// the type of A), g_idx, bias (N). Source: the schema in ONNX Runtime's ContribOperators.md. accuracy_level
// says how coarsely A may be rounded: 4 allows int8, per block and row. Whether that is done is decided
// later, by price (passes/graph/round_rows.cc); the types of 16 bits that 2 and 3 allow are not used.

#include <fmt/format.h>

#include "ir/ops/matmul_blocks.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

struct Packed {
  std::int64_t depth, columns, bits, block;
  explicit Packed(const Attributes& attributes)
      : depth(attributes.int_of("K")),
        columns(attributes.int_of("N")),
        bits(attributes.int_of("bits")),
        block(attributes.int_of("block_size")) {}

  std::int64_t blocks() const { return ceil_div(depth, block); }
  std::int64_t blob() const { return block * bits / 8; }
  std::int64_t zero_bytes() const { return ceil_div(blocks() * bits, 8); }  // of a column
  std::int64_t middle() const { return std::int64_t{1} << (bits - 1); }
  /// Element i of integers that lie side by side, less the middle of their range.
  std::int8_t at(const std::byte* bytes, std::int64_t i) const {
    const auto byte = static_cast<std::uint32_t>(bytes[i * bits / 8]);
    const std::uint32_t value = byte >> (i * bits % 8) & ((1u << bits) - 1);
    return static_cast<std::int8_t>(static_cast<std::int64_t>(value) - middle());
  }
};

void require_count(const NodeView& node, int i, std::int64_t count, std::string_view what) {
  if (node.operand(i).count() == count) return;
  operator_error(fmt::format("the {} must have {} elements, not {}", what, count, node.operand(i).count()));
}

void check_packed(const NodeView& node, const Packed& p) {
  if (p.bits != 2 && p.bits != 4 && p.bits != 8) {
    operator_error(fmt::format("weights of {} bits are not supported", p.bits), "2, 4 and 8 bits are");
  }
  if (p.depth < 1 || p.columns < 1) operator_error("K and N must be positive");
  if (p.block < 16 || (p.block & (p.block - 1)) != 0) {
    operator_error(fmt::format("the block size {} must be a power of two, 16 at least", p.block));
  }
  if (node.attributes().int_of("weight_prepacked") != 0) {
    operator_error("weights prepacked for a GPU cannot be read", "export the model without prepacking");
  }
  if (node.element(1) != ElementType::kUInt8) operator_error("B must be uint8");
  require_count(node, 1, p.columns * p.blocks() * p.blob(), "weights");
  require_count(node, 2, p.columns * p.blocks(), "scales");
  if (node.has_operand(3)) {
    const bool packed = node.element(3) == ElementType::kUInt8;
    require_count(node, 3, p.columns * (packed ? p.zero_bytes() : p.blocks()), "zero points");
    if (!packed && !is_float(node.element(3))) operator_error("the zero points must be uint8 or floats");
  }
}

/// Behind folding.
void check_constants(const NodeView& node, const Packed& p) {
  for (const int i : {1, 2, 3}) {
    if (node.has_operand(i) && !node.constant(i)) {
      operator_error("weights, scales and zero points must be constants");
    }
  }
  if (!node.has_operand(4)) return;
  const Tensor* groups = node.constant(4);
  for (std::int64_t k = 0; k < p.depth; ++k) {
    if (!groups || groups->count() < p.depth || groups->int_at(k) != k / p.block) {
      operator_error("groups of rows that are not neighbours (g_idx) are not supported",
                     "quantise the model without reordering by activations");
    }
  }
}

void infer(InferContext& context) {
  const Packed p(context.attributes());
  require_float(context, 0);
  check_packed(context, p);
  Shape y = context.shape(0);
  if (y.empty() || y.back() != p.depth) {
    operator_error(fmt::format("A of shape {} must end in K = {}", to_string(y), p.depth));
  }
  if (context.has_operand(5)) require_count(context, 5, p.columns, "bias");
  y.back() = p.columns;
  context.set_result(0, context.element(0), std::move(y));
}

/// (K, N) of the packed weights.
Tensor unpacked_weights(const Tensor& packed, const Packed& p) {
  Tensor out(TensorType{ElementType::kInt8, {p.depth, p.columns}});
  auto* to = reinterpret_cast<std::int8_t*>(out.mutable_bytes().data());
  constexpr std::int64_t kTile = 64;  // columns written side by side
  for (std::int64_t begin = 0; begin < p.columns; begin += kTile) {
    const std::int64_t end = std::min(p.columns, begin + kTile);
    for (std::int64_t k = 0; k < p.depth; ++k) {
      for (std::int64_t n = begin; n < end; ++n) {
        const std::byte* column = packed.bytes().data() + n * p.blocks() * p.blob();
        to[k * p.columns + n] = p.at(column, k);  // blocks are whole bytes: k counts through them
      }
    }
  }
  return out;
}

/// (blocks, N) of an operand (N, blocks), by the element at (n, block).
template <class T, class Element>
Tensor by_blocks(ElementType type, const Packed& p, Element element) {
  Tensor out(TensorType{type, {p.blocks(), p.columns}});
  auto* to = reinterpret_cast<T*>(out.mutable_bytes().data());
  for (std::int64_t b = 0; b < p.blocks(); ++b) {
    for (std::int64_t n = 0; n < p.columns; ++n) *to++ = static_cast<T>(element(n, b));
  }
  return out;
}

/// Zero points less the middle, which is what an omitted one is.
Tensor zero_points(const Tensor& given, const Packed& p) {
  if (given.element() == ElementType::kUInt8) {
    return by_blocks<std::int8_t>(ElementType::kInt8, p, [&](std::int64_t n, std::int64_t b) {
      return p.at(given.bytes().data() + n * p.zero_bytes(), b);
    });
  }
  return by_blocks<float>(ElementType::kFloat32, p, [&](std::int64_t n, std::int64_t b) {
    return given.real_at(n * p.blocks() + b) - static_cast<double>(p.middle());
  });
}

bool decompose(RewriteContext& context) {
  const Packed p(context.attributes());
  check_constants(context, p);
  const Tensor& scales = *context.constant(2);
  const Tensor by_columns = by_blocks<float>(ElementType::kFloat32, p, [&](std::int64_t n, std::int64_t b) {
    return scales.real_at(n * p.blocks() + b);
  });
  const ElementType type = context.element(0);
  const Shape result = context.result(0).shape;
  Shape rows = context.shape(0);
  if (rows.size() < 2) rows.insert(rows.begin(), 1);
  const ValueId a = emit_reshape(context, context.operand_id(0), rows);
  std::vector<ValueId> operands = {
      emit_cast(context, a, ElementType::kFloat32),
      context.constant(unpacked_weights(*context.constant(1), p), context.operand_id(1)),
      context.constant(by_columns, context.operand_id(2))};
  if (context.has_operand(3)) {
    operands.push_back(context.constant(zero_points(*context.constant(3), p), context.operand_id(3)));
  }
  constexpr std::int64_t kBytes = 4;
  const bool may_round = context.attributes().int_of("accuracy_level") == kBytes;
  Attributes attributes;
  attributes.set("block_size", p.block);
  attributes.set("rounding",
                 static_cast<std::int64_t>(may_round ? RowRounding::kAllowed : RowRounding::kNone));
  ValueId y = context.emit("MatMulBlocks", std::move(operands), attributes);
  if (context.has_operand(5)) {
    const ValueId bias = emit_reshape(context, context.operand_id(5), {p.columns});
    y = context.emit("Add", {y, emit_cast(context, bias, ElementType::kFloat32)});
  }
  context.replace_result(0, emit_reshape(context, emit_cast(context, y, type), result));
  return true;
}

}  // namespace

const Operator& operator_MatMulNBits() {
  static const Operator op = {
      .name = "MatMulNBits",
      .domain = "com.microsoft",
      .versions = {1},
      .operands = {3, 6},
      .attributes = {{"K", AttributeKind::kInt, std::nullopt, true},
                     {"N", AttributeKind::kInt, std::nullopt, true},
                     {"accuracy_level", AttributeKind::kInt, std::int64_t{0}},
                     {"bits", AttributeKind::kInt, std::int64_t{4}},
                     {"block_size", AttributeKind::kInt, std::nullopt, true},
                     {"weight_prepacked", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "matrix product by constant weights of 2, 4 or 8 bits with a scale for each block of rows",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
