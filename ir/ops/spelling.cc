// Operators in the spelling of ONNX and ONNX Runtime:
//   ConvTranspose(pads = [.., -p]) -> ConvTranspose(output_padding = [p])
//   ConvInteger(x, w, p, [q, q, ...]) -> ConvInteger(x, w, p, q), for it takes one zero point of the weights
//   only; ConvInteger(x, w, p, q) -> ConvInteger(x, w, p) - q * ConvInteger(x, 1, p) with several
//   MatMulBlocks -> com.microsoft.MatMulNBits

#include "ir/ops/spelling.h"

#include <algorithm>
#include <optional>

#include "ir/graph/operator.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// A pad below 0 at the end is what the import makes of output_padding.
bool spell_conv_transpose(RewriteContext& context) {
  std::vector<std::int64_t> pads = context.attributes().ints_of("pads"), extra;
  for (std::size_t i = pads.size() / 2; i < pads.size(); ++i) {
    extra.push_back(std::max<std::int64_t>(0, -pads[i]));
    pads[i] += extra.back();
  }
  if (std::all_of(extra.begin(), extra.end(), [](std::int64_t more) { return more == 0; })) return false;
  context.mutable_attributes().set("pads", pads);
  context.mutable_attributes().set("output_padding", extra);
  return false;
}

/// The one number that all elements are.
std::optional<std::int64_t> only_number(const Tensor& tensor) {
  for (std::int64_t i = 1; i < tensor.count(); ++i) {
    if (tensor.int_at(i) != tensor.int_at(0)) return std::nullopt;
  }
  return tensor.count() == 0 ? std::nullopt : std::optional(tensor.int_at(0));
}

Tensor ones(const TensorType& type) { return Tensor::filled(type, Scalar::of_integer(type.element, 1)); }

/// sum((x - p)(w - q)) = sum((x - p) w) - q sum(x - p).
bool spell_conv_integer(RewriteContext& context) {
  if (!context.has_operand(3) || context.shape(3).empty()) return false;
  const Tensor* zeros = context.constant(3);
  if (const auto number = zeros ? only_number(*zeros) : std::nullopt) {
    const Scalar zero = Scalar::of_integer(zeros->element(), *number);
    context.set_operand(3, context.constant(Tensor::scalar(zero), context.operand_id(3)));
    return false;
  }
  const Attributes attributes = context.attributes();
  const auto convolved = [&](ValueId weights) {
    std::vector<ValueId> operands = {context.operand_id(0), weights};
    if (context.has_operand(2)) operands.push_back(context.operand_id(2));
    return context.emit("ConvInteger", std::move(operands), attributes);
  };
  const ValueId sums = convolved(context.operand_id(1));
  const ValueId inputs = convolved(context.constant(ones(context.operand(1))));
  Shape channels(context.shape(0).size() - 1, 1);
  channels[0] = context.shape(3)[0];
  const ValueId zero =
      emit_reshape(context, emit_cast(context, context.operand_id(3), ElementType::kInt32), channels);
  context.replace_result(0, context.emit("Sub", {sums, context.emit("Mul", {inputs, zero})}));
  return true;
}

/// What MatMulNBits packs: unsigned numbers of `bits` bits, `block` of a column behind each other.
struct PackedBlocks {
  std::int64_t bits, block, depth, columns;
  std::int64_t blocks() const { return ceil_div(depth, block); }
};

/// Row-major (columns, count) of numbers, the least significant bits of a byte first;
/// rows begin in new bytes.
template <class F>
Tensor packed(const Shape& shape, std::int64_t columns, std::int64_t count, std::int64_t bits, F number) {
  Tensor out(TensorType{ElementType::kUInt8, shape});
  const std::int64_t each = 8 / bits, width = ceil_div(count, each);
  auto* bytes = reinterpret_cast<std::uint8_t*>(out.mutable_bytes().data());
  for (std::int64_t n = 0; n < columns; ++n) {
    for (std::int64_t i = 0; i < count; ++i) {
      bytes[n * width + i / each] |= static_cast<std::uint8_t>(number(n, i) << (i % each * bits));
    }
  }
  return out;
}

/// Blocks that MatMulNBits takes: a power of two from 16 on.
bool is_block(std::int64_t block) { return block >= 16 && (block & (block - 1)) == 0; }

bool spell_blocks(RewriteContext& context) {
  const Tensor *weights = context.constant(1), *scales = context.constant(2), *zeros = context.constant(3);
  const std::int64_t block = context.attributes().int_of("block_size");
  if (!weights || !scales || (context.has_operand(3) && !zeros) || !is_block(block)) return false;
  std::int64_t low = 0, high = 0;
  for (const Tensor* tensor : {weights, zeros}) {
    for (std::int64_t i = 0; tensor && i < tensor->count(); ++i) {
      const double number = tensor->real_at(i);
      if (number != static_cast<double>(static_cast<std::int64_t>(number))) return false;
      low = std::min(low, static_cast<std::int64_t>(number));
      high = std::max(high, static_cast<std::int64_t>(number));
    }
  }
  PackedBlocks p{low >= -8 && high < 8 ? 4 : 8, block, weights->shape()[0], weights->shape()[1]};
  if (low < -128 || high > 127) return false;
  const std::int64_t middle = std::int64_t{1} << (p.bits - 1);
  const std::int64_t padded = p.blocks() * block;
  const ValueId codes =
      context.constant(packed({p.columns, p.blocks(), block * p.bits / 8}, p.columns, padded, p.bits,
                              [&](std::int64_t n, std::int64_t k) {
                                return k < p.depth ? weights->int_at(k * p.columns + n) + middle : middle;
                              }),
                       context.operand_id(1));
  Tensor by_columns(TensorType{ElementType::kFloat32, {p.columns, p.blocks()}});
  for (std::int64_t n = 0; n < p.columns; ++n) {
    for (std::int64_t b = 0; b < p.blocks(); ++b)
      by_columns.set(n * p.blocks() + b, scales->at(b * p.columns + n));
  }
  std::vector<ValueId> operands = {context.operand_id(0), codes,
                                   context.constant(std::move(by_columns), context.operand_id(2))};
  if (zeros) {
    const std::int64_t width = ceil_div(p.blocks() * p.bits, 8);
    operands.push_back(context.constant(
        packed({p.columns, width}, p.columns, p.blocks(), p.bits,
               [&](std::int64_t n, std::int64_t b) {
                 return static_cast<std::int64_t>(zeros->real_at(b * p.columns + n)) + middle;
               }),
        context.operand_id(3)));
  }
  Attributes attributes;
  attributes.set("K", p.depth);
  attributes.set("N", p.columns);
  attributes.set("bits", p.bits);
  attributes.set("block_size", block);
  constexpr std::int64_t kBytes = 4;
  if (context.attributes().int_of("rounding") != 0) attributes.set("accuracy_level", kBytes);
  const Operator& op = *find_operator("com.microsoft", "MatMulNBits");
  complete_attributes(op, attributes);
  Graph& graph = context.mutable_graph();
  const NodeId id = graph.add_node(op, std::move(operands), std::move(attributes), 1, context.node().name);
  infer_node(graph, id);
  context.replace_result(0, graph.node(id).results[0]);
  return true;
}

bool spell(RewriteContext& context, const Operator& op) {
  struct Row {
    std::string_view domain, name;
    bool (*spell)(RewriteContext&);
  };
  static constexpr Row kRows[] = {{"", "ConvInteger", spell_conv_integer},
                                  {"", "ConvTranspose", spell_conv_transpose},
                                  {"gcompile", "MatMulBlocks", spell_blocks}};
  for (const Row& row : kRows) {
    if (op.domain == row.domain && op.name == row.name) return row.spell(context);
  }
  return false;
}

}  // namespace

void spell_as_onnx(Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    for (Graph& branch : graph.node(id).subgraphs) spell_as_onnx(branch);
    if (graph.node(id).form) continue;
    RewriteContext context(graph, id, 0);
    if (spell(context, *graph.node(id).op)) graph.erase_node(id);
  }
  graph.erase_unused_constants();
}

}  // namespace gcompile::ir
