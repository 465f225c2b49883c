#include "codegen/loops/cuda/cuda_kernel_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

using Worker = CudaLoopPlan::Worker;

constexpr int kWarpThreads = 32;

/// Threads of a block of a kernel in which every thread works alone: small grids are spread over more blocks.
int block_threads(std::int64_t workers) { return workers >= 65536 ? 256 : workers >= 8192 ? 128 : 64; }

}  // namespace

bool is_small(ir::Dim size) {
  constexpr std::int64_t kLimit = INT32_MAX / 2;
  return ir::lowest(size) > -kLimit && ir::highest(size) < kLimit;
}

CudaKernelWriter::CudaKernelWriter(std::vector<CudaParameter> parameters, bool checked, SizeParameters& sizes)
    : parameters_(std::move(parameters)), checked_(checked), sizes_(sizes) {
  if (checked_) parameters_.push_back({"int* trap", kTrap, "queue.trap"});
  parameters_.push_back({"float* workspace", kWorkspace, kWorkspace});
  parameters_.push_back({"std::uint32_t* counters", kCounters, "queue.counters"});
  parameters_.push_back({"int parts", kParts, kParts});
}

void CudaKernelWriter::add_threads(const std::vector<PrintedNest>& parts, const std::string& suffix,
                                   bool guarded) {
  ir::Dim total = 0;
  std::set<std::string> names;
  std::set<std::size_t> mentioned;
  for (const PrintedNest& part : parts) {
    total += part.plan.workers;
    names.insert(part.parameters.begin(), part.parameters.end());
    mentioned.insert(part.sizes.begin(), part.sizes.end());
  }
  const int threads = block_threads(ir::typical(total));
  CodeText code(1);
  if (guarded && checked_) code.line("if (*trap != 0) return;");
  const bool narrow = is_small(total) && std::all_of(parts.begin(), parts.end(), [](const PrintedNest& part) {
                        return part.counter == "int";
                      });
  const std::string type = narrow ? "int" : "std::int64_t";
  ir::Dim first = 0;
  for (const PrintedNest& part : parts) {
    const ir::Dim count = part.plan.workers;
    if (parts.size() == 1) {
      code.line(fmt::format("const {0} {1} = global_thread<{0}>();", type, part.worker));
      if (content(count) % threads != 0)
        code.line(fmt::format("if ({} >= {}) return;", part.worker, sizes_(count)));
      code.append(part.body);
    } else {
      if (first == 0) code.line(fmt::format("const {0} thread = global_thread<{0}>();", type));
      const std::string begin = sizes_(first), end = sizes_(first + count);
      code.open(first == 0 ? fmt::format("if (thread < {}) {{", end)
                           : fmt::format("if (thread >= {} && thread < {}) {{", begin, end));
      const std::string place = first == 0 ? "thread" : fmt::format("thread - {}", begin);
      code.line(part.counter == type ? fmt::format("const {} {} = {};", type, part.worker, place)
                                     : fmt::format("const {0} {1} = static_cast<{0}>({2});", part.counter,
                                                   part.worker, place));
      code.append(part.body, 1);
      code.close();
    }
    first += ir::ceil_div(count, threads) * threads;
  }
  if (guarded && checked_) names.insert(kTrap);
  mentioned.merge(sizes_.take_mentioned());
  // One part has as many blocks as its workers fill.
  add(suffix, code.plain(), {std::move(names), std::move(mentioned), narrow},
      parts.size() == 1 ? total : first, threads, threads, "0");
}

void CudaKernelWriter::add_groups(const PrintedNest& part, const std::string& suffix, bool guarded) {
  const CudaLoopPlan& plan = part.plan;
  const bool warp = plan.worker == Worker::kWarp;
  const int threads = warp ? block_threads(ir::typical(plan.workers) * kWarpThreads) : plan.threads;
  const int rows = threads / plan.threads;
  CodeText code(1);
  if (guarded && checked_) code.line("if (*trap != 0) return;");
  std::string shared = "0";
  if (plan.worker != Worker::kTile) code.line(fmt::format("auto group = make_group<{}>();", plan.threads));
  if (warp) {
    code.line(
        fmt::format("const {0} {1} = global_thread<{0}>() / {2};", part.counter, part.worker, kWarpThreads));
    // Who leaves has waited as well.
    if (content(plan.workers) % rows != 0)
      code.line(fmt::format("if ({} >= {}) return{};", part.worker, sizes_(plan.workers),
                            plan.awaits_itself() ? " await_previous_grid()" : ""));
  } else {
    const SharedRows& rows_of = plan.shared;
    code.line(fmt::format("const {0} {1} = static_cast<{0}>(blockIdx.x){2};", part.counter, part.worker,
                          rows_of.is_empty()  ? std::string()
                          : rows_of.is_open() ? " / parts"
                                              : fmt::format(" / {}", rows_of.parts())));
    shared = part.shared.empty() ? fmt::format("Group<{}>::kScratchBytes", plan.threads) : part.shared;
  }
  code.append(part.body);
  std::set<std::string> names = part.parameters;
  if (guarded && checked_) names.insert(kTrap);
  std::set<std::size_t> mentioned = part.sizes;
  mentioned.merge(sizes_.take_mentioned());
  const Named named = {std::move(names), std::move(mentioned), part.counter == "int", plan.awaits_itself()};
  if (plan.shared.is_empty()) {
    add(suffix, code.plain(), named, plan.workers, rows, threads, shared);
    return;
  }
  add(suffix, code.plain(), named, shared_blocks(plan.shared),
      ir::typical(plan.workers) * plan.shared.parts(), threads, shared);
}

std::string CudaKernelWriter::shared_blocks(const SharedRows& rows) {
  if (!rows.is_open()) return fmt::format("{}", ir::typical(rows.rows) * rows.parts());
  const std::string count = sizes_(rows.rows), elements = sizes_(rows.count);
  sizes_.take_mentioned();
  if (!has_parts_) {
    launches_ +=
        fmt::format("  const int parts = row_parts({}, {}, /*blocks*/ {}, /*elements of a part*/ {});\n",
                    count, elements, rows.blocks, rows.least);
  }
  has_parts_ = true;
  return fmt::format("static_cast<unsigned>({}) * static_cast<unsigned>(parts)", count);
}

CudaLoops CudaKernelWriter::finish() {
  CudaLoops loops;
  loops.device = std::move(device_);
  loops.launches = std::move(launches_);
  loops.count = count_;
  loops.blocks = blocks_;
  loops.headers = {"gcrt/cuda/device/loops.h"};
  return loops;
}

void CudaKernelWriter::add(const std::string& suffix, const std::string& body, const Named& named,
                           ir::Dim workers, std::int64_t each, int threads, const std::string& shared) {
  // A grid without blocks is not launched.
  const std::string blocks = workers.is_constant() ? fmt::format("{}", ir::ceil_div(workers, each))
                                                   : fmt::format("blocks_for({}, {})", sizes_(workers), each);
  sizes_.take_mentioned();
  add(suffix, body, named, blocks, ir::typical(ir::ceil_div(workers, each)), threads, shared);
}

void CudaKernelWriter::add(const std::string& suffix, const std::string& body, const Named& named,
                           const std::string& blocks, std::int64_t typical_blocks, int threads,
                           const std::string& shared) {
  std::string declarations, arguments;
  const auto declare = [&](const std::string& declaration) {
    declarations += (declarations.empty() ? "" : ", ") + declaration;
  };
  for (const CudaParameter& p : parameters_) {
    if (named.parameters.count(p.name) == 0) continue;
    declare(p.declaration);
    arguments += ", " + p.argument;
  }
  for (const std::size_t size : named.sizes) {
    const std::string name = SizeParameters::name(size);
    declare(fmt::format("{} {}", named.narrow ? "int" : "std::int64_t", name));
    arguments += named.narrow ? fmt::format(", static_cast<int>({})", name) : ", " + name;
  }
  const Text name = Text(Symbol::kKernel) + "_kernel" + suffix;
  device_ += fmt::format("GCRT_GLOBAL({}) void ", threads) + name +
             fmt::format("({}) {{\n{}{}}}\n", declarations,
                         named.awaits_itself ? "" : "  await_previous_grid();\n", body);
  launches_ += fmt::format("  launch_overlapping(queue, {}, {}, {}, ", blocks, threads, shared) + name +
               fmt::format("{});\n", arguments);
  if (count_++ == 0) blocks_ = typical_blocks;
}

}  // namespace gcompile
