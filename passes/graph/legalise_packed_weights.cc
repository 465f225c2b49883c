// Packed weights that no kernel of the target decodes where it multiplies become floats:
//   MatMulBlocks(a, w, scale, zero) -> MatMul(a, (w - zero) * scale)
// The plain loops take every product, but term by term: widened weights are read faster.

#include <fmt/format.h>

#include "base/interrupt.h"
#include "ir/ops/matmul_blocks.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

/// Times that packed weights may take of what floats take, for the memory that they save.
constexpr std::int64_t kWorthIts = 4;

const ir::ProductWork* blocks_of(const ir::Form& form) {
  const ir::Work* work = ir::work_of(form);
  const auto* product = work ? std::get_if<ir::ProductWork>(work) : nullptr;
  return product && product->block > 0 ? product : nullptr;
}

/// Whether the kernels decode them.
bool is_served(const ir::Problem& packed, const ir::KernelPrices& prices) {
  ir::Problem wide = packed;
  wide.work = ir::ProductWork{};
  wide.operands.resize(2);
  wide.operands[1].element = ir::ElementType::kFloat32;
  const ir::Price price = prices.price(packed), other = prices.price(wide);
  if (!price.picoseconds || !other.picoseconds) return price.picoseconds.has_value();
  return *price.picoseconds <= kWorthIts * *other.picoseconds;
}

}  // namespace

bool legalise_packed_weights(ir::Graph& graph, PassContext& pass) {
  const ir::KernelPrices* prices = pass.options().prices;
  bool changed = false;
  for (const ir::NodeId id : graph.nodes()) {
    poll_interrupt();
    if (prices == nullptr || !graph.node(id).op->lower) continue;
    const ir::Form form = ir::form_of(graph, id);
    const ir::ProductWork* work = blocks_of(form);
    ir::RewriteContext context(graph, id, 0);
    if (work == nullptr || !context.constant(1) || !context.constant(2)) continue;
    const bool has_zeros = context.has_operand(3);
    if (has_zeros && !context.constant(3)) continue;
    const auto row_major = [&](ir::ValueId v) { return ir::row_major_strides(graph.value(v).type.shape); };
    if (work->rounding == ir::RowRounding::kDone) continue;  // was priced when that was decided
    if (is_served(*ir::problem_of(graph, id, form, row_major, false), *prices)) continue;
    ir::Tensor floats = ir::decoded(*context.constant(1), *context.constant(2),
                                    has_zeros ? context.constant(3) : nullptr, work->block);
    pass.did(graph.node(id).name,
             fmt::format("no kernel of the target decodes its weights: as float32 they take {} bytes",
                         floats.type().bytes()));
    const ir::ValueId wide = context.constant(std::move(floats), context.operand_id(1));
    context.replace_result(0, context.emit("MatMul", {context.operand_id(0), wide}));
    graph.erase_node(id);
    changed = true;
  }
  return changed;
}

}  // namespace gcompile::passes
