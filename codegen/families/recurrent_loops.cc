// recurrent.loops: LSTM, GRU and RNN by their definition, a unit at a time: of every floating type, with
// weights of the run, of every size.

#include <fmt/format.h>

#include "codegen/calls/cuda_time.h"
#include "codegen/calls/library_support.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/kinds/recurrent_operands.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

constexpr std::int64_t kRows = 4;  // kRnnSequenceRows of gcrt/rnn_sequence.h

/// Layout 1 and 16-bit floats are rewritten before kernels are asked.
Refusal refuses(const ir::Problem& problem) {
  if (std::get<ir::RecurrentWork>(problem.work).batch_first) return "layout 1";
  return refuse_half(problem);
}

PlannedCost with_scratch(const ir::RecurrentWork& work, ir::ElementType element) {
  PlannedCost out;
  out.cost.scratch = bytes_of(element, ir::highest(work.directions * work.batch * work.hidden * kRows));
  out.cost.code_key = "recurrence_by_definition";
  return out;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only = with_scratch(std::get<ir::RecurrentWork>(problem.work), problem.operands[0].element);
  constexpr double kEfficiency = 0.05;  // every dot product ends in a sum across lanes
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), kEfficiency);
  return {only};
}

/// A block of threads walks the steps of a sequence: the time is that of its chain of loads.
std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::RecurrentWork>(problem.work);
  constexpr std::int64_t kThreads = 256;
  constexpr std::int64_t kStepPicoseconds = 10'000'000, kTermPicoseconds = 20'000;
  const std::int64_t terms =
      (work.hidden + kThreads - 1) / kThreads * gates_of(work.cell) * (work.inputs + work.hidden);
  PlannedCost only = with_scratch(work, problem.operands[0].element);
  only.cost.picoseconds =
      streaming_picoseconds(problem, machine) + work.steps * (kStepPicoseconds + terms * kTermPicoseconds);
  only.cost.time.latency = static_cast<double>(only.cost.picoseconds) / 1e6;
  return {only};
}

const char* cell_of(const ir::RecurrentWork& work) {
  switch (work.cell) {
    case ir::RecurrentCell::kLstm:
      return "LstmByDefinition";
    case ir::RecurrentCell::kGru:
      return "GruByDefinition";
    case ir::RecurrentCell::kRnn:
      return "RnnByDefinition";
  }
  GC_CHECK(false);
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::RecurrentWork>(problem.work);
  const ir::ElementType element = problem.operands[0].element;
  KernelCall& out = writer.call();
  out.headers = {writer.on_device() ? "gcrt/cuda/rnn_loops.h" : "gcrt/cpu/rnn_loops.h"};
  RecurrentOperands recurrent(problem, writer);
  recurrent.as_they_lie();
  writer.scratch(with_scratch(work, element).cost.scratch, "scratch", kernel_type(element));
  CodeText code(1);
  code.line(recurrent.shape_line());
  code.line(recurrent.options_line());
  code.line(fmt::format("static_assert(kRnnSequenceRows == {});", kRows));
  code.line(fmt::format("const auto tensors = {};", recurrent.operands()));
  if (writer.on_device()) {
    code.line(fmt::format("recurrence_by_definition<{}>(queue, shape, tensors, options);", cell_of(work)));
    out.body = code.text();
    return;
  }
  call_in_parallel(
      out, code, out.sizes(work.directions * work.batch),
      fmt::format("recurrence_by_definition<{}>(shape, tensors, options, begin, end)", cell_of(work)));
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_recurrent_loops() {
  static const KernelFamily family = {
      "recurrent.loops",
      ir::Kind::kRecurrent,
      refuses,
      {{{.takes_formulas = takes_all_formulas, .needs = needs_row_major, .plans = plans, .call = call},
        {.refuses = refuse_beyond_32_bits,
         .takes_formulas = fits_32_bits,
         .needs = needs_row_major,
         .plans = cuda_plans,
         .call = call}}}};
  return family;
}

}  // namespace gcompile
