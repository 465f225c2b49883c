// linear_attention.loops: step after step as the definition says, columns of values at once.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/calls/cuda_time.h"
#include "codegen/calls/library_support.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

using ir::LinearAttentionWork;

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  constexpr double kEfficiency = 0.2;  // every multiply-add loads
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), kEfficiency);
  only.cost.code_key = "linear_attention";
  return {only};
}

/// A thread walks the steps of a column: the time is that of its chain of loads.
std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  constexpr std::int64_t kTermPicoseconds = 20'000;
  const auto& work = std::get<LinearAttentionWork>(problem.work);
  PlannedCost only = plans(problem, machine).front();
  const std::int64_t terms = (work.results() / work.heads + 2) * work.size;
  only.cost.picoseconds = streaming_picoseconds(problem, machine) + work.steps * terms * kTermPicoseconds;
  only.cost.time.latency = static_cast<double>(only.cost.picoseconds) / 1e6;
  return {only};
}

/// How many numbers an optional operand has for each step, one or more.
std::int64_t numbers_of_step(const ir::Problem& problem, int operand) {
  const auto at = static_cast<std::size_t>(operand);
  return at < problem.operands.size() && problem.operands[at].present ? problem.shape(at).back() : ir::Dim(1);
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<LinearAttentionWork>(problem.work);
  KernelCall& out = writer.call();
  out.headers = {writer.on_device() ? "gcrt/cuda/attention/linear_attention.h"
                                    : "gcrt/cpu/linear_attention.h"};
  std::vector<std::string> tensors;
  const auto add_operand = [&](int i, const char* name) {
    if (writer.has_operand(i)) writer.operand(i, name);
    tensors.emplace_back(writer.has_operand(i) ? name : "nullptr");
  };
  const auto add_result = [&](int i, const char* name) {
    const ir::Shape& shape = problem.results[i].shape;
    if (writer.has_result(i)) {
      writer.result(i, name);
    } else {
      writer.scratch(bytes_of(ir::ElementType::kFloat32, ir::highest(ir::element_count(shape))), name,
                     "float");
    }
    tensors.emplace_back(name);
  };
  add_operand(0, "q");
  add_operand(1, "k");
  add_operand(2, "v");
  add_operand(LinearAttentionWork::kPast, "past");
  add_operand(LinearAttentionWork::kFactors, "factors");
  add_operand(LinearAttentionWork::kRates, "rates");
  add_result(0, "state");
  add_result(1, "y");
  const bool is_fixed = ir::are_constant(problem);
  const std::string batch_and_steps = out.sizes.list({work.batch, work.steps});
  CodeText code(1);
  code.line(fmt::format(
      "{} LinearAttentionShape shape{{/*batch, steps*/ {}, /*heads of queries, keys, states, "
      "results*/ "
      "{}, {}, {}, {}, /*sizes*/ {}, {}, /*factors*/ {}, /*rates*/ {}, /*scale*/ {}}};",
      is_fixed ? "constexpr" : "const", batch_and_steps, work.query_heads, work.key_heads, work.heads,
      work.results(), work.size, work.value_size,
      numbers_of_step(problem, LinearAttentionWork::kFactors) == work.heads * work.size ? work.size : 1,
      numbers_of_step(problem, LinearAttentionWork::kRates),
      literal(ir::Scalar::of_real(ir::ElementType::kFloat32, static_cast<double>(work.scale)))));
  code.line(fmt::format("const LinearAttentionTensors<float> tensors{{{}}};", fmt::join(tensors, ", ")));
  if (writer.on_device()) {
    code.line("linear_attention(queue, shape, tensors);");
  } else {
    call_in_parallel(out, code, out.sizes(work.batch * work.heads),
                     "linear_attention(shape, tensors, begin, end)");
  }
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_linear_attention_loops() {
  static const KernelFamily family = {
      "linear_attention.loops",
      ir::Kind::kLinearAttention,
      nullptr,
      {{{.needs = needs_row_major, .plans = plans, .call = call},
        {.refuses = refuse_beyond_32_bits, .needs = needs_row_major, .plans = cuda_plans, .call = call}}}};
  return family;
}

}  // namespace gcompile
