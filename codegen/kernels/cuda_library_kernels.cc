// Calls on CUDA of kernels with their own control: recurrences, TopK, scatters, running sums.

#include <fmt/format.h>

#include "codegen/kernels/cuda_shape.h"
#include "codegen/kernels/kernel_call.h"
#include "codegen/kernels/recurrent_call.h"
#include "gcrt/cuda/rnn_plan.h"
#include "gcrt/cuda/scatter_plan.h"

namespace gcompile {

using ir::NodeId;

namespace {

/// [D][gates * H][I] -> [D][gates][P][K], where units are padded to P and inputs to K.
Packing pack_input_weights(const RecurrentCall& call, std::int64_t units) {
  const ir::Recurrence& r = call.sizes();
  MatrixView view;
  view.matrices = r.directions * call.gates();
  view.matrix_step = r.hidden * r.inputs;
  view.columns = r.hidden;
  view.column_step = view.inner = r.inputs;
  return pack_rows(call.input_weights(), view, (r.inputs + 15) / 16 * 16, ir::ElementType::kFloat32, units);
}

/// [D][gates * H][H] -> [D][H][gates][P]: for each direction and state a row of gates, each padded to P.
Packing pack_state_weights(const RecurrentCall& call, std::int64_t units) {
  const ir::Recurrence& r = call.sizes();
  std::vector<Packing> rows;
  MatrixView view;
  view.matrices = call.gates();
  view.matrix_step = r.hidden * r.hidden;
  view.columns = 1;
  view.inner = view.inner_step = r.hidden;
  for (int direction = 0; direction < r.directions; ++direction) {
    for (std::int64_t state = 0; state < r.hidden; ++state) {
      view.taps = {direction * call.gates() * r.hidden * r.hidden + state};
      rows.push_back(pack_rows(call.state_weights(), view, units));
    }
  }
  return pack_together(std::move(rows));
}

}  // namespace

KernelCall KernelBuilder::cuda_recurrent(NodeId id) {
  KernelCall call;
  call.headers = {"gcrt/cuda/rnn.h"};
  RecurrentCall recurrent(*this, call, id);
  const ir::Recurrence& r = recurrent.sizes();
  const int gates = recurrent.gates();
  const gcrt::RnnShape shape{narrow(r.steps),  narrow(r.batch), narrow(r.inputs),
                             narrow(r.hidden), r.directions,    r.reverse_first};
  if (shape.hidden > gcrt::kRnnMostUnits) {
    ir::operator_error(
        fmt::format("recurrences of more than {} hidden units have no CUDA kernel", gcrt::kRnnMostUnits));
  }
  const bool is_reset_first = call.family == "gru" && !recurrent.linear_before_reset();
  const gcrt::RnnPlan plan = gcrt::plan_rnn(shape, gates, is_reset_first);
  if (gcrt::ceil_div(shape.batch, plan.batch_tile) > UINT16_MAX)
    ir::operator_error("a recurrence of that many sequences has no CUDA kernel");
  const gcrt::Plan product = gcrt::plan_rnn_input(device_, shape, gates, plan);
  const std::int64_t units = gcrt::rnn_row_units(shape.hidden);
  recurrent.weights(pack_input_weights(recurrent, units), pack_state_weights(recurrent, units));
  recurrent.rest(units);
  scratch_parameter(call, gcrt::rnn_scratch_floats(shape, gates, plan) * 4, "scratch", "float");
  const std::string split = split_argument(
      call, product.splits,
      gcrt::gemm_workspace_size(r.batch * plan.chunk_steps, gates * units, r.directions, product.splits));
  call.launches = narrow(gcrt::rnn_launches(shape, plan, product.splits));
  call.microseconds = gcrt::rnn_microseconds(device_, shape, gates, plan, product);

  CodeText code(1);
  code.line(recurrent.shape_line());
  code.line(recurrent.options_line());
  code.line(fmt::format("constexpr bool kIsUsual = is_usual(options, 0, {0}) && is_usual(options, 1, {0});",
                        recurrent.functions()));
  code.line(fmt::format("{}{}<Tile::{}, RnnTile</*batch_tile, kept*/ {}, {}>, kIsUsual>(queue, shape,",
                        call.family, recurrent.linear_before_reset() ? "_linear" : "",
                        tile_name(product.tile), plan.batch_tile, plan.kept));
  code.line(fmt::format("    {}, options,", recurrent.operands()));
  code.line(fmt::format("    /*chunk_steps*/ {}, {});", plan.chunk_steps, split));
  call.body = code.text();
  return call;
}

void KernelBuilder::scatter_on_device(KernelCall& call, bool replaces, std::int64_t targets,
                                      std::int64_t updates) {
  constexpr std::int64_t kMost = INT32_MAX;
  if (targets >= kMost || updates >= kMost)
    ir::operator_error("scatters of 2^31 places or updates have no CUDA kernel");
  const std::int64_t words = gcrt::scatter_scratch_words(replaces, targets, updates);
  scratch_parameter(call, std::max<std::int64_t>(1, words) * 4, "scratch", "std::uint32_t");
  call.launches = gcrt::scatter_launches(replaces, targets, updates);
  call.traps = true;
}

KernelCall KernelBuilder::cuda_library(NodeId id, const ir::LibraryForm& form) {
  if (form.kernel == "lstm" || form.kernel == "gru" || form.kernel == "rnn") return cuda_recurrent(id);
  if (form.kernel == "topk") return top_k(id);
  if (form.kernel == "scatter_nd" || form.kernel == "scatter_elements") return scatter(id);
  if (form.kernel == "cumsum") return cumulative_sum(id);
  ir::operator_error(fmt::format("{} has no kernel for --target cuda", node(id).op->name));
}

}  // namespace gcompile
