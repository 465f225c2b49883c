// scan.lines: running sums, one line after the other; CUDA: lines in blocks whose sums are carried.

#include <fmt/format.h>

#include "codegen/kernels/library_support.h"

namespace gcompile {
namespace {

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ScanWork>(problem.work);
  const Lines lines(problem.shape(0), work.axis);
  writer.call().headers = {writer.on_device() ? "gcrt/cuda/scan.h" : "gcrt/cpu/library.h"};
  writer.operand(0, "x");
  writer.result(0, "y");
  writer.call().body = fmt::format(
      "  cumulative_sum({}/*outer, extent, inner*/ {}, /*exclusive*/ {}, /*reverse*/ {}, x, y);\n",
      writer.queue_argument(), writer.call().sizes.list({lines.outer, lines.extent, lines.inner}),
      work.exclusive, work.reverse);
}

}  // namespace

const KernelFamily& family_scan_lines() {
  static const KernelFamily family = {
      "scan.lines",
      ir::Kind::kScan,
      refuse_half,
      {{{.takes_formulas = takes_all_formulas,
         .needs = needs_row_major,
         .plans = streaming_plan,
         .call = call},
        {.needs = needs_row_major, .plans = cuda_streaming_plan, .call = call}}}};
  return family;
}

}  // namespace gcompile
