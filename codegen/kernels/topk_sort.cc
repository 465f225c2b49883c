// topk.sort: the k first of every line by selection or sorting; ties go to the smaller position.

#include <fmt/format.h>

#include "codegen/kernels/library_support.h"

namespace gcompile {
namespace {

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::TopKWork>(problem.work);
  const Lines lines(problem.shape(0), work.axis);
  writer.call().headers = {writer.on_device() ? "gcrt/cuda/library.h" : "gcrt/cpu/library.h"};
  writer.operand(0, "x");
  top_k_results(problem, writer);
  const std::string sizes = writer.call().sizes.list({lines.outer, lines.extent, lines.inner, work.k});
  writer.call().body = fmt::format("  top_k<{}>({}/*outer, extent, inner, k*/ {}, x, values, positions);\n",
                                   work.largest, writer.queue_argument(), sizes);
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine&) {
  const Lines lines(problem.shape(0), std::get<ir::TopKWork>(problem.work).axis);
  if (lines.extent >= 1 << 30) return "lines of 2^30 elements";
  if (lines.outer * lines.inner > INT32_MAX) return "2^31 lines";
  return std::nullopt;
}

}  // namespace

const KernelFamily& family_topk_sort() {
  static const KernelFamily family = {
      "topk.sort",
      ir::Kind::kTopK,
      refuse_half,
      {{{.takes_formulas = takes_all_formulas,
         .needs = needs_row_major,
         .plans = streaming_plan,
         .call = call},
        {.refuses = cuda_refuses, .needs = needs_row_major, .plans = cuda_streaming_plan, .call = call}}}};
  return family;
}

}  // namespace gcompile
