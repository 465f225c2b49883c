// topk.sort: the k first of every line by selection or sorting; ties go to the smaller position.

#include <fmt/format.h>

#include "codegen/calls/library_support.h"
#include "gcrt/cuda/sort_plan.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::TopKWork>(problem.work);
  const Lines lines(problem.shape(0), work.axis);
  writer.call().headers = {writer.on_device() ? "gcrt/cuda/library.h" : "gcrt/cpu/library.h"};
  writer.operand(0, "x");
  top_k_results(problem, writer);
  SizeParameters& sizes = writer.call().sizes;
  std::string all = sizes.list({lines.outer, lines.extent, lines.inner, work.k});
  if (writer.on_device()) {  // where lengths are ints
    all = fmt::format("{}, {}, {}, {}", sizes(lines.outer), sizes.as_int(lines.extent), sizes(lines.inner),
                      sizes.as_int(work.k));
  }
  writer.call().body = fmt::format("  top_k<{}>({}/*outer, extent, inner, k*/ {}, x, values, positions);\n",
                                   work.largest, writer.queue_argument(), all);
  if (!writer.on_device()) return;
  // A block has a line: it looks at eight bits of all keys at a time, and gathers the best at last.
  const std::int64_t count = ir::typical(lines.outer * lines.inner), extent = ir::typical(lines.extent);
  const std::int64_t bytes = bits_of(problem.operands[0].element) / 8;
  const bool is_sorted_whole = extent <= gcrt::kSortInBlock;
  const std::int64_t walks = is_sorted_whole ? 1 : bytes + 1;
  constexpr std::int64_t kThreads = 1024;
  const double rounds =
      is_sorted_whole ? 1 : static_cast<double>(walks * ((extent + kThreads - 1) / kThreads));
  note_line_walks(writer.device(), {count, walks, rounds}, count * extent * bytes);
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine&) {
  const Lines lines(problem.shape(0), std::get<ir::TopKWork>(problem.work).axis);
  if (lines.extent >= 1 << 30) return "lines of 2^30 elements";
  if (lines.outer * lines.inner > INT32_MAX) return "2^31 lines";
  return std::nullopt;
}

bool cuda_takes_formulas(const ir::Problem& problem) { return !cuda_refuses(ir::at_highest(problem), {}); }

}  // namespace

const KernelFamily& family_topk_sort() {
  static const KernelFamily family = {"topk.sort",
                                      ir::Kind::kTopK,
                                      refuse_half,
                                      {{{.takes_formulas = takes_all_formulas,
                                         .needs = needs_row_major,
                                         .plans = streaming_plan,
                                         .call = call},
                                        {.refuses = cuda_refuses,
                                         .takes_formulas = cuda_takes_formulas,
                                         .needs = needs_row_major,
                                         .plans = cuda_streaming_plan,
                                         .call = call}}}};
  return family;
}

}  // namespace gcompile
