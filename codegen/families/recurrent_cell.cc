// recurrent.cell: LSTM, GRU and RNN: the products of the inputs of many steps as one, then step by step.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/calls/library_support.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/kinds/recurrent_operands.h"
#include "gcrt/cuda/rnn_plan.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  const auto& work = std::get<ir::RecurrentWork>(problem.work);
  if (Refusal element = refuse_unless_float32(problem)) return element;
  if (work.batch_first) return "layout 1";
  for (const std::size_t i : {1u, 2u, 3u, 7u}) {
    if (i >= problem.operands.size()) break;
    const ir::ProblemOperand& operand = problem.operands[i];
    if (operand.present && !operand.constant) return "weights that only the run knows";
  }
  return std::nullopt;
}

std::int64_t padded_units(const ir::RecurrentWork& r) { return (r.hidden + 15) / 16 * 16; }

/// [D][gates * H][depth] -> [D][gates][P / 16][depth][16]
Packing pack_gates(const ir::RecurrentWork& r, const ir::Tensor& tensor, std::int64_t depth) {
  MatrixView view;
  view.matrices = r.directions * gates_of(r.cell);
  view.matrix_step = r.hidden * depth;
  view.columns = r.hidden;
  view.column_step = view.inner = depth;
  return pack_panels(tensor, view);
}

/// Steps whose X * W is one product. Rows beyond 96 gain nothing; the sums wait in scratch, which stays below
/// the size of the result unless that holds less than a few steps.
std::int64_t steps_per_block(const ir::RecurrentWork& r) {
  const std::int64_t batch = std::max<std::int64_t>(1, r.batch), steps = r.steps;
  const std::int64_t result = steps * r.directions * batch * r.hidden;
  const std::int64_t fits =
      result / std::max<std::int64_t>(1, padded_units(r) * batch * gates_of(r.cell)) - 1;
  constexpr std::int64_t kFewSteps = 4;
  return std::max<std::int64_t>(1, std::min({steps, 96 / batch, std::max(kFewSteps, fits)}));
}

ir::Dim scratch_bytes(const ir::RecurrentWork& r, std::int64_t block) {
  return padded_units(r) * r.batch * (gates_of(r.cell) * (block + 1) + 3) * 4;
}

PlannedCost with_block(const ir::Problem& problem, const Machine& machine, std::int64_t block,
                       double efficiency) {
  const auto& work = std::get<ir::RecurrentWork>(problem.work);
  PlannedCost out;
  out.plan.fields = {block};
  out.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), efficiency);
  out.cost.scratch = scratch_bytes(work, block);
  out.cost.code_key = function_of(work.cell);
  return out;
}

constexpr std::array<const char*, 1> kFields = {"steps at once"};

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const std::int64_t block = steps_per_block(std::get<ir::RecurrentWork>(problem.work));
  std::vector<PlannedCost> out = {with_block(problem, machine, block, 0.4)};
  if (block > 1) out.push_back(with_block(problem, machine, 1, 0.3));
  return out;
}

void call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const auto& r = std::get<ir::RecurrentWork>(problem.work);
  // Scratch is that of the largest sizes, whatever is typical; a run takes as many steps at once as it holds.
  const bool is_fixed = ir::are_constant(problem);
  const std::int64_t block =
      is_fixed ? plan.fields[0] : plans(ir::at_highest(problem), writer.machine()).front().plan.fields[0];
  const std::int64_t scratch = ir::highest(scratch_bytes(r, block));
  const int gates = gates_of(r.cell);
  writer.call().headers = {"gcrt/cpu/rnn.h"};
  RecurrentOperands recurrent(problem, writer);
  recurrent.weights(pack_gates(r, *writer.constant(1), r.inputs),
                    pack_gates(r, *writer.constant(2), r.hidden));
  recurrent.rest(padded_units(r));
  writer.scratch(scratch, "scratch", "float");
  const std::string at_once = is_fixed ? fmt::format("{}", block)
                                       : fmt::format("rnn_steps_at_once(shape, {}, {})", gates, scratch / 4);
  CodeText code(1);
  code.line(recurrent.shape_line());
  if (is_fixed) {
    code.line(
        fmt::format("static_assert(rnn_scratch_floats(shape, {}, {}) * 4 <= {});", gates, block, scratch));
  }
  code.line(recurrent.options_line());
  code.line(fmt::format("{}(shape, {}, options, /*steps at once*/ {});", function_of(r.cell),
                        recurrent.operands(), at_once));
  writer.call().body = code.text();
}

/// [D][gates * H][I] -> [D][gates][P][K], where units are padded to P and inputs to K.
Packing pack_input_weights(const ir::RecurrentWork& r, const ir::Tensor& w, std::int64_t units) {
  MatrixView view;
  view.matrices = r.directions * gates_of(r.cell);
  view.matrix_step = r.hidden * r.inputs;
  view.columns = r.hidden;
  view.column_step = view.inner = r.inputs;
  return pack_rows(w, view, (r.inputs + 15) / 16 * 16, ir::ElementType::kFloat32, units);
}

/// [D][gates * H][H] -> [D][H][gates][P]: for each direction and state a row of gates, each padded to P.
Packing pack_state_weights(const ir::RecurrentWork& r, const ir::Tensor& w, std::int64_t units) {
  std::vector<Packing> rows;
  MatrixView view;
  view.matrices = gates_of(r.cell);
  view.matrix_step = r.hidden * r.hidden;
  view.columns = 1;
  view.inner = view.inner_step = r.hidden;
  for (int direction = 0; direction < r.directions; ++direction) {
    for (std::int64_t state = 0; state < r.hidden; ++state) {
      view.taps = {direction * view.matrices * r.hidden * r.hidden + state};
      rows.push_back(pack_rows(w, view, units));
    }
  }
  return pack_together(std::move(rows));
}

struct CudaPlans {
  gcrt::RnnShape shape;
  gcrt::RnnPlan plan;
  gcrt::Plan product;
  CudaPlans(const ir::RecurrentWork& r, const Machine& machine)
      : shape{narrow(r.steps),  narrow(r.batch), narrow(r.inputs),
              narrow(r.hidden), r.directions,    r.reverse_first},
        plan(gcrt::plan_rnn(shape, gates_of(r.cell),
                            r.cell == ir::RecurrentCell::kGru && !r.linear_before_reset)),
        product(gcrt::plan_rnn_input(machine.gpu, shape, gates_of(r.cell), plan)) {}
};

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  const auto& r = std::get<ir::RecurrentWork>(problem.work);
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (r.hidden > gcrt::kRnnMostUnits) return fmt::format("more than {} hidden units", gcrt::kRnnMostUnits);
  const CudaPlans plans(r, machine);
  if (gcrt::ceil_div(plans.shape.batch, plans.plan.batch_tile) > UINT16_MAX) return "too many sequences";
  return std::nullopt;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const auto& r = std::get<ir::RecurrentWork>(problem.work);
  const CudaPlans plans(r, machine);
  PlannedCost out = planned(plans.product, machine, 1);
  out.cost.launches = narrow(gcrt::rnn_launches(plans.shape, plans.plan));
  out.cost.time.latency =
      gcrt::rnn_microseconds(machine.gpu, plans.shape, gates_of(r.cell), plans.plan, plans.product);
  out.cost.picoseconds = picoseconds_of(out.cost.time);
  return {out};
}

void cuda_call(const ir::Problem& problem, const KernelPlan& chosen, CallWriter& writer) {
  const auto& r = std::get<ir::RecurrentWork>(problem.work);
  const int gates = gates_of(r.cell);
  const CudaPlans plans(r, writer.machine());
  const gcrt::RnnPlan& plan = plans.plan;
  const std::int64_t units = gcrt::rnn_row_units(plans.shape.hidden);
  writer.call().headers = {"gcrt/cuda/rnn.h"};
  RecurrentOperands recurrent(problem, writer);
  recurrent.weights(pack_input_weights(r, *writer.constant(1), units),
                    pack_state_weights(r, *writer.constant(2), units));
  recurrent.rest(units);
  writer.scratch(gcrt::rnn_scratch_floats(plans.shape, gates, plan) * 4, "scratch", "float");
  const std::string split = split_argument(
      writer, chosen, r.directions * r.batch * plan.chunk_steps * (gcrt::ceil_div(gates * units, 4) * 4),
      gcrt::gemm_counters(tile_of(chosen), r.batch * plan.chunk_steps, gates * units, r.directions,
                          splits_of(chosen)));
  CodeText code(1);
  code.line(recurrent.shape_line());
  code.line(recurrent.options_line());
  code.line(fmt::format("constexpr bool kIsUsual = is_usual(options, 0, {0}) && is_usual(options, 1, {0});",
                        functions_of(r.cell)));
  code.line(fmt::format("{}{}<Tile::{}, RnnTile</*batch_tile, kept*/ {}, {}>, kIsUsual>(queue, shape,",
                        function_of(r.cell), r.linear_before_reset ? "_linear" : "",
                        tile_name(tile_of(chosen)), plan.batch_tile, plan.kept));
  code.line(fmt::format("    {}, options,", recurrent.operands()));
  code.line(fmt::format("    /*chunk_steps*/ {}, {});", plan.chunk_steps, split));
  writer.call().body = code.text();
}

}  // namespace

const KernelFamily& family_recurrent_cell() {
  static const KernelFamily family = {"recurrent.cell",
                                      ir::Kind::kRecurrent,
                                      refuses,
                                      {{{.takes_formulas = takes_all_formulas,
                                         .needs = needs_row_major,
                                         .fields = kFields,
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = cuda_refuses,
                                         .needs = needs_row_major,
                                         .fields = tile_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call}}}};
  return family;
}

}  // namespace gcompile
