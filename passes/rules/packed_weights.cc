// Weights of 4 and 8 bits stay packed (DESIGN law 15): a product by the result of DequantizeLinear becomes
// one whose kernel decodes them, with scales for blocks of rows, for columns, or for all.

#include <cmath>

#include "ir/ops/support.h"
#include "passes/rules/quantised.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

/// DequantizeLinear of a constant matrix, as its product sees it: rows along the depth.
struct PackedWeights {
  const Tensor *integers, *scales, *zeros;  // zeros: nullptr for 0
  bool transposed = false;                  // the constant has the columns first
  int scale_axis = -1;                      // of the constant; -1: one scale
  std::int64_t block = 0;                   // along scale_axis; 0: a scale each

  std::int64_t rows() const { return integers->shape()[transposed ? 1 : 0]; }
  std::int64_t columns() const { return integers->shape()[transposed ? 0 : 1]; }
  bool along_rows() const { return scale_axis == (transposed ? 1 : 0); }
  /// Rows that share a scale.
  std::int64_t block_rows() const { return block > 0 && along_rows() ? std::min(block, rows()) : rows(); }
  std::int64_t block_count() const { return (rows() + block_rows() - 1) / block_rows(); }
  /// Position of the scale of a column in a block of rows.
  std::int64_t scale_at(std::int64_t row_block, std::int64_t column) const {
    if (scale_axis < 0) return 0;
    if (block == 0) return column;
    return transposed ? column * block_count() + row_block : row_block * columns() + column;
  }
};

bool is_packed(ElementType type) {
  return is_byte(type) || type == ElementType::kInt4 || type == ElementType::kUInt4;
}

PackedWeights packed_weights(const Match& match) {
  const ir::Node& node = match.node("w");
  const ir::Graph& graph = match.graph();
  PackedWeights w{graph.constant(node.operands[0]), graph.constant(node.operands[1]), nullptr};
  if (node.operands.size() > 2 && node.operands[2].valid()) w.zeros = graph.constant(node.operands[2]);
  w.transposed = match.has("transposed");
  if (!w.scales || w.scales->count() == 1) return w;
  w.scale_axis = static_cast<int>(node.attributes.int_of("axis"));
  if (w.scale_axis < 0) w.scale_axis += 2;
  w.block = node.attributes.int_of("block_size");
  return w;
}

std::string guard_product(const Match& match) {
  const ElementType type = match.result_type().element;
  if (!ir::is_float(type) || type == ElementType::kFloat64) return "the product is not one of small floats";
  const ir::Node& node = match.node("w");
  const ir::Graph& graph = match.graph();
  const ir::TensorType& packed = graph.value(node.operands[0]).type;
  if (packed.rank() != 2 || packed.count() == 0) return "the right operand is no matrix";
  if (!is_packed(packed.element)) return "the weights have other than 4 or 8 bits";
  for (const ValueId operand : node.operands) {
    if (operand.valid() && !graph.constant(operand)) return "the weights, a scale or zero point are computed";
  }
  const PackedWeights w = packed_weights(match);
  for (std::int64_t i = 0; i < w.scales->count(); ++i) {
    if (!std::isfinite(w.scales->real_at(i))) return "a scale is not finite";
  }
  if (w.scale_axis >= 0 && w.along_rows() && w.block == 0) return "every row has a scale";
  if (w.scale_axis >= 0 && !w.along_rows() && w.block > 1) return "scales are shared along the columns";
  return "";
}

/// The middle of an unsigned type's range, which is taken off; 0 for signed types.
std::int64_t middle_of(ElementType type) {
  return type == ElementType::kUInt8 ? 128 : type == ElementType::kUInt4 ? 8 : 0;
}

/// Calls f(i, element) for all elements, in order.
template <class F>
void for_each_integer(const Tensor& tensor, F f) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.bytes().data());
  const bool is_nibble = ir::bits_of(tensor.element()) == 4, is_signed = ir::is_signed(tensor.element());
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    int value = is_nibble ? bytes[i / 2] >> (i % 2 * 4) & 15 : bytes[i];
    if (is_signed && value >= (is_nibble ? 8 : 128)) value -= is_nibble ? 16 : 256;
    f(i, value);
  }
}

/// int8 (K, N).
Tensor centred_weights(const PackedWeights& w) {
  Tensor out(ir::TensorType{ElementType::kInt8, {w.rows(), w.columns()}});
  auto* to = reinterpret_cast<std::int8_t*>(out.mutable_bytes().data());
  const std::int64_t middle = middle_of(w.integers->element()), inner = w.integers->shape()[1];
  std::int64_t line = 0, at = 0;
  for_each_integer(*w.integers, [&](std::int64_t, int value) {
    to[w.transposed ? at * w.columns() + line : line * inner + at] = static_cast<std::int8_t>(value - middle);
    if (++at == inner) {
      at = 0;
      ++line;
    }
  });
  return out;
}

/// (blocks, N) by the element at (block, column).
template <class Element>
Tensor by_blocks(ElementType type, const PackedWeights& w, Element element) {
  Tensor out(ir::TensorType{type, {w.block_count(), w.columns()}});
  for (std::int64_t b = 0; b < w.block_count(); ++b) {
    for (std::int64_t n = 0; n < w.columns(); ++n) out.set(b * w.columns() + n, element(w.scale_at(b, n)));
  }
  return out;
}

ValueId cast_to(Rewriter& rewriter, ValueId value, ElementType type) {
  if (rewriter.type_of(value).element == type) return value;
  ir::Attributes attributes;
  attributes.set("to", ir::onnx_number_of(type));
  return rewriter.emit("Cast", {value}, std::move(attributes));
}

ValueId build_product(Rewriter& rewriter) {
  const PackedWeights w = packed_weights(rewriter);
  const std::int64_t middle = middle_of(w.integers->element());
  std::vector<ValueId> operands = {cast_to(rewriter, rewriter.value("x"), ElementType::kFloat32)};
  operands.push_back(rewriter.add_constant(centred_weights(w), "integers"));
  operands.push_back(rewriter.add_constant(by_blocks(ElementType::kFloat32, w,
                                                     [&](std::int64_t at) {
                                                       return ir::Scalar::of_real(ElementType::kFloat32,
                                                                                  w.scales->real_at(at));
                                                     }),
                                           "scale"));
  const auto zero = [&](std::int64_t at) { return (w.zeros ? w.zeros->int_at(at) : 0) - middle; };
  bool all_zero = true;
  for (std::int64_t i = 0; i < w.scales->count(); ++i) all_zero = all_zero && zero(i) == 0;
  if (!all_zero) {
    operands.push_back(rewriter.add_constant(by_blocks(ElementType::kInt8, w, [&](std::int64_t at) {
      return ir::Scalar::of_integer(ElementType::kInt8, zero(at));
    })));
  }
  ir::Attributes attributes;
  attributes.set("block_size", w.block_rows());
  const ValueId y = rewriter.emit("MatMulBlocks", std::move(operands), std::move(attributes));
  return cast_to(rewriter, y, rewriter.result_type().element);
}

}  // namespace

const RuleTable& block_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
    const Pattern w =
        op("DequantizeLinear", {any("integers"), any("scale"), any("zero").optional()}, "w").shared();
    return RuleTable{
        // x DQ(w) -> x w with the scales in the kernel
        {"matmul-of-packed-weights", tier, op("MatMul", {any("x"), w}), guard_product, build_product},
        // x DQ(w)' -> x w' with the scales in the kernel
        {"matmul-of-packed-columns", tier,
         op("MatMul", {any("x"), op("Transpose", {w}, "transposed").shared()}), guard_product, build_product},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes
