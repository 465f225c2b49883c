// suppress.lines: boxes that overlap those with the highest scores, one class of an image after the other; CUDA: a block
// for each class. It takes everything.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/calls/library_support.h"
#include "codegen/loops/c_types.h"
#include "gcrt/cpu/suppress_plan.h"
#include "gcrt/cuda/suppress_plan.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

using Work = ir::SuppressWork;

ir::Dim lines_of(const ir::Problem& problem) { return problem.shape(1)[0] * problem.shape(1)[1]; }

/// Lines that may run at the same time, each with candidates of its own.
std::int64_t parts_of(const ir::Problem& problem, const Machine& machine) {
  constexpr std::int64_t kMostParts = 8;
  if (machine.smallest_scratch) return 1;
  return std::clamp(ir::highest(lines_of(problem)), std::int64_t{1}, kMostParts);
}

std::int64_t scratch_words(const ir::Problem& problem, const Machine& machine, bool on_device) {
  const std::int64_t lines = ir::highest(lines_of(problem)), boxes = ir::highest(problem.shape(1)[2]);
  if (on_device) return gcrt::suppress_device_words(lines, boxes);
  const std::int64_t most = ir::highest(std::get<Work>(problem.work).most);
  return gcrt::suppress_words(lines, boxes, most, parts_of(problem, machine));
}

/// Scores are looked at, and a box that is kept takes a walk through a heap and a comparison with all kept before.
std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  constexpr std::int64_t kScorePicoseconds = 1'500, kKeptPicoseconds = 60'000;
  PlannedCost only;
  only.cost.picoseconds = ir::element_count(problem.shape(1)) * kScorePicoseconds +
                          lines_of(problem) * std::get<Work>(problem.work).most * kKeptPicoseconds;
  only.cost.scratch = scratch_words(problem, machine, false) * 4;
  only.cost.code_key = "suppress";
  return {only};
}

/// A block takes a turn for each box that it keeps, in which its threads compare all others.
std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  constexpr std::int64_t kTurnPicoseconds = 1'000'000, kThreads = 512;
  PlannedCost only = cuda_streaming_plan(problem, machine).at(0);
  const std::int64_t rounds = 1 + problem.shape(1)[2] / kThreads;
  only.cost.picoseconds += std::get<Work>(problem.work).most * kTurnPicoseconds * rounds;
  only.cost.scratch = scratch_words(problem, machine, true) * 4;
  only.cost.launches = gcrt::kSuppressLaunches;
  return {only};
}

/// A literal where the model says the number, else the parameter that points to it; `none` without an operand.
std::string given(int operand, const std::string& word, const std::string& none, CallWriter& writer) {
  if (!writer.has_operand(operand)) return none;
  if (const ir::Tensor* const known = writer.constant(operand)) return literal(known->at(0));
  writer.operand(operand, word);
  return word;
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<Work>(problem.work);
  const bool on_device = writer.on_device();
  KernelCall& out = writer.call();
  out.headers = {on_device ? "gcrt/cuda/suppress.h" : "gcrt/cpu/suppress.h"};
  writer.operand(0, "boxes");
  writer.operand(1, "scores");
  const std::string most = given(Work::kMost, "most", "nullptr", writer),
                    overlap = given(Work::kOverlap, "overlap", "0.0f", writer),
                    score = given(Work::kScore, "score", "0.0f", writer);
  writer.result(0, "selected");
  if (writer.has_result(1)) {
    writer.result(1, "count");
  } else {
    writer.scratch(bytes_of(ir::ElementType::kInt64, 1), "count", kernel_type(ir::ElementType::kInt64));
  }
  writer.scratch(scratch_words(problem, writer.machine(), on_device) * 4, "scratch", "std::int32_t");
  const ir::Shape& scores = problem.shape(1);
  CodeText code(1);
  code.line(fmt::format("const SuppressShape shape{{/*batch, classes, boxes, most*/ {}}};",
                        out.sizes.list({scores[0], scores[1], scores[2], work.most})));
  code.line(fmt::format(
      "const SuppressLimits limits{{/*overlap, score, has_score, most of a run*/ {}, {}, {}, {}}};", overlap,
      score, writer.has_operand(Work::kScore), most));
  code.line(fmt::format("suppress<{}>({}, shape, limits, boxes, scores, selected, count, scratch{});",
                        work.is_centered ? "CenteredBoxes" : "CornerBoxes",
                        on_device ? "queue" : threads_argument(out),
                        on_device ? "" : fmt::format(", /*parts*/ {}", parts_of(problem, writer.machine()))));
  out.body = code.text();
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine&) {
  if (ir::highest(lines_of(problem)) > INT32_MAX) return "2^31 classes";
  if (ir::highest(problem.shape(1)[2]) >= 1 << 30) return "2^30 boxes";
  return std::nullopt;
}

bool cuda_takes_formulas(const ir::Problem& problem) { return !cuda_refuses(ir::at_highest(problem), {}); }

}  // namespace

const KernelFamily& family_suppress_lines() {
  static const KernelFamily family = {
      "suppress.lines",
      ir::Kind::kSuppress,
      refuse_half,
      {{{.takes_formulas = takes_all_formulas, .needs = needs_row_major, .plans = plans, .call = call},
        {.refuses = cuda_refuses,
         .takes_formulas = cuda_takes_formulas,
         .needs = needs_row_major,
         .plans = cuda_plans,
         .call = call}}}};
  return family;
}

}  // namespace gcompile
