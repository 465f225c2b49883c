// scan.lines: running sums and products, one line after the other; CUDA: lines in blocks whose sums are carried.

#include <fmt/format.h>

#include "codegen/calls/library_support.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::ScanWork>(problem.work);
  const Lines lines(problem.shape(0), work.axis);
  writer.call().headers = {writer.on_device() ? "gcrt/cuda/scan.h" : "gcrt/cpu/scan.h"};
  writer.operand(0, "x");
  writer.result(0, "y");
  const char* const function = work.is_product ? "cumulative_product" : "cumulative_sum";
  const std::string sizes = writer.call().sizes.list({lines.outer, lines.extent, lines.inner});
  if (!writer.on_device()) {
    writer.call().body = fmt::format(
        "  const ScanShape shape{{/*outer, extent, inner*/ {}, /*exclusive*/ {}, /*reverse*/ {}}};\n"
        "  {}(shape, x, y, {});\n",
        sizes, work.exclusive, work.reverse, function, threads_argument(writer.call()));
    return;
  }
  writer.call().body =
      fmt::format("  {}({}/*outer, extent, inner*/ {}, /*exclusive*/ {}, /*reverse*/ {}, x, y);\n", function,
                  writer.queue_argument(), sizes, work.exclusive, work.reverse);
  // The plan is that of cumulative() in gcrt/cuda/scan.h: a thread takes a short line or one of many lines, and a block
  // a long one.
  constexpr std::int64_t kManyLines = 8192, kShortLine = 64, kLineThreads = 128, kScanThreads = 1024;
  const std::int64_t count = ir::typical(lines.outer * lines.inner), extent = ir::typical(lines.extent);
  const bool is_of_thread = extent <= kShortLine || count >= kManyLines;
  const std::int64_t blocks = is_of_thread ? (count + kLineThreads - 1) / kLineThreads : count;
  const std::int64_t rounds = is_of_thread ? extent : (extent + kScanThreads - 1) / kScanThreads;
  note_line_walks(writer.device(), {blocks, 1, static_cast<double>(rounds)}, 0);
}

}  // namespace

const KernelFamily& family_scan_lines() {
  static const KernelFamily family = {"scan.lines",
                                      ir::Kind::kScan,
                                      refuse_half,
                                      {{{.takes_formulas = takes_all_formulas,
                                         .needs = needs_row_major,
                                         .plans = streaming_plan,
                                         .call = call},
                                        {.takes_formulas = takes_all_formulas,
                                         .needs = needs_row_major,
                                         .plans = cuda_streaming_plan,
                                         .call = call}}}};
  return family;
}

}  // namespace gcompile
